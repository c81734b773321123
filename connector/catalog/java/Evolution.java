package lance;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * WITH SCHEMA EVOLUTION: while Spark analyzes an INSERT or MERGE, it alters the table to fit the rows to be written.
 * Spark 4.2 asks a table which changes it supports, and casts the rows to the types of the table otherwise.
 *
 * New columns are held: the statement sees the table as if it had them, and the version with its rows adds them. Only the
 * query under analysis sees them; Spark has one planning tracker per query, which is the key here. Other types are
 * refused, since the column of all rows would be rewritten by a version that precedes the one with the rows.
 */
final class Evolution {
  private static final String RULE = "SchemaEvolution";
  static final String ENTRY = "__lance.entry";
  private static final Logger LOG = LoggerFactory.getLogger(Evolution.class);
  static final String NEW_COLUMNS = "__lance.new_columns";
  private static final Map HELD = Collections.synchronizedMap(new WeakHashMap());

  private Evolution() {}

  /** A table that answers Spark's question, if this version of Spark asks it. */
  static NamedTable table(String name, StructType schema, Map options, Facts facts, Map properties) {
    try {
      Constructor constructor = Class.forName("lance.EvolvingTable", true, Evolution.class.getClassLoader())
          .getDeclaredConstructors()[0];
      return (NamedTable) constructor.newInstance(new Object[] {name, schema, options, facts, properties});
    } catch (ClassNotFoundException e) {
      return new NamedTable(name, schema, options, facts, properties);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Whether a rule of Spark's analysis alters a table, rather than a statement of the user. */
  static boolean isUnderWay() { return Callers.contain(RULE); }

  /** Holds new columns, after the table has said that it can have them. */
  static void alter(NamedTable table, TableChange[] changes) {
    Option tracker = QueryPlanningTracker.get();
    for (int i = 0; i < changes.length; i++) {
      if (!supports(changes[i]) || tracker.isEmpty()) throw refusal(table, changes[i]);
    }
    Map details = Changes.of(table.name(), changes);
    Catalog.act("evolve", table.options, details, null);
    hold(tracker.get(), place(table.options), (List) details.get("changes"));
  }

  /** What a statement writes to: a table, or one of its branches. */
  private static Object place(Map options) { return Arrays.asList(new Object[] {options.get("path"), options.get("branch")}); }

  private static void hold(Object tracker, Object place, List columns) {
    synchronized (HELD) {
      Map known = (Map) HELD.get(tracker);
      if (known == null) HELD.put(tracker, known = new HashMap());
      List all = new ArrayList(known.containsKey(place) ? (List) known.get(place) : Collections.emptyList());
      all.addAll(columns);
      known.put(place, all);
    }
  }

  /** Adds the columns that the query under analysis adds to a table to the options of the table. */
  static void addHeld(Map options) {
    Option tracker = QueryPlanningTracker.get();
    if (tracker.isEmpty() || Versions.isNamed(options)) return;
    synchronized (HELD) {
      Map known = (Map) HELD.get(tracker.get());
      List columns = known == null ? null : (List) known.get(place(options));
      if (columns != null && !columns.isEmpty()) options.put(NEW_COLUMNS, Python.json(columns));
    }
  }

  private static RuntimeException refusal(NamedTable table, TableChange change) {
    String column = String.join(".", ((TableChange.ColumnChange) change).fieldNames());
    if (!(change instanceof TableChange.UpdateColumnType)) {
      return new UnsupportedOperationException("WITH SCHEMA EVOLUTION would add the column " + column + " to " + table.name()
          + " outside of a query; nothing was changed: ALTER TABLE adds it");
    }
    DataType from = find(table.schema(), ((TableChange.ColumnChange) change).fieldNames());
    DataType to = ((TableChange.UpdateColumnType) change).newDataType();
    return new UnsupportedOperationException("WITH SCHEMA EVOLUTION adds columns, and would change the column " + column
        + " of " + table.name() + " from " + from.simpleString() + " to " + to.simpleString() + ", which would be a version"
        + " before that with the rows; nothing was changed. Cast the rows to be written: CAST(" + column + " AS " + from.sql()
        + "); or, if that loses values, change the type first: ALTER TABLE ... ALTER COLUMN " + column + " TYPE " + to.sql());
  }

  /** Whether the version with the rows can make a change: new columns only. */
  static boolean supports(TableChange change) { return change instanceof TableChange.AddColumn; }

  /** Lets Spark's own catalog list the columns that a statement has added to one of its tables. */
  static void list(Map options) {
    String table = (String) options.get(ENTRY);
    if (table == null || !options.containsKey(NEW_COLUMNS)) return;
    try {
      SparkSession session = (SparkSession) SparkSession.active();
      TableIdentifier id = session.sessionState().sqlParser().parseTableIdentifier(table);
      Map latest = new HashMap(options);
      latest.remove("__lance.snapshot");
      session.sessionState().catalog().alterTableSchema(id, Facts.of(latest, null).schema());
      session.sessionState().catalog().refreshTable(id);
    } catch (Exception e) {
      // The rows and the columns have landed, and queries see those of the table itself.
      LOG.warn("the catalog does not list the new columns of {}", table, e);
    }
  }

  private static DataType find(DataType type, String[] names) {
    for (int i = 0; i < names.length && type != null; i++) type = step(type, names[i]);
    return type;
  }

  private static DataType step(DataType type, String name) {
    if (type instanceof ArrayType) return ((ArrayType) type).elementType();
    if (type instanceof MapType) return name.equals("key") ? ((MapType) type).keyType() : ((MapType) type).valueType();
    if (!(type instanceof StructType)) return null;
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) if (fields[i].name().equalsIgnoreCase(name)) return fields[i].dataType();
    return null;
  }
}
