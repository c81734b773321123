package lance;

import java.lang.reflect.Constructor;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * WITH SCHEMA EVOLUTION: while Spark analyzes an INSERT or MERGE, it alters the table to fit the rows to be written.
 * Columns are added, and types of numbers widened; changes that lose values are refused. Spark 4.2 asks a table which
 * changes it supports, and casts the rows to the types of the table otherwise.
 */
final class Evolution {
  private static final String RULE = "SchemaEvolution";
  private static final String EXPLAIN = "ExplainCommand";

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
  static boolean isUnderWay() { return isCalledBy(RULE); }

  static boolean isCalledBy(String name) {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) if (calls[i].getClassName().contains(name)) return true;
    return false;
  }

  static Map of(String table, StructType schema, TableChange[] changes) {
    if (isCalledBy(EXPLAIN)) {
      throw new UnsupportedOperationException("Spark alters a table while it analyzes a statement WITH SCHEMA EVOLUTION, so"
          + " EXPLAIN of one would change " + table + "; nothing was changed: explain it without the clause, or with a table"
          + " that has the columns");
    }
    for (int i = 0; i < changes.length; i++) {
      if (!(changes[i] instanceof TableChange.UpdateColumnType) || supports(schema, changes[i])) continue;
      TableChange.UpdateColumnType update = (TableChange.UpdateColumnType) changes[i];
      String column = String.join(".", update.fieldNames());
      DataType type = find(schema, update.fieldNames());
      throw new IllegalArgumentException("WITH SCHEMA EVOLUTION would change the column " + column + " of " + table + " from "
          + type.simpleString() + " to " + update.newDataType().simpleString() + ", by which values may be lost; nothing was"
          + " changed. Cast the rows to be written: CAST(" + column + " AS " + type.sql() + ")");
    }
    Map details = Changes.of(table, changes);
    details.put("evolution", Boolean.TRUE);
    return details;
  }

  /** Whether a change keeps all values: a new column, or a wider type of numbers. */
  static boolean supports(StructType schema, TableChange change) {
    if (!(change instanceof TableChange.UpdateColumnType)) return true;
    TableChange.UpdateColumnType update = (TableChange.UpdateColumnType) change;
    DataType from = find(schema, update.fieldNames());
    DataType to = update.newDataType();
    return from instanceof NumericType && to instanceof NumericType && isExact(from, to)
        && Cast$.MODULE$.canUpCast(from, to);
  }

  /** Floating-point types do not have all large integers. */
  private static boolean isExact(DataType from, DataType to) {
    if (from.equals(DataTypes.LongType) || from instanceof DecimalType) return !(to instanceof FloatType
        || to instanceof DoubleType);
    return !(from.equals(DataTypes.IntegerType) && to.equals(DataTypes.FloatType));
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
