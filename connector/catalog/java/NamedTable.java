package lance;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.spark.sql.catalyst.analysis.IndexAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchIndexException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.catalog.index.SupportsIndex;
import org.apache.spark.sql.connector.catalog.index.TableIndex;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/** A table of a catalog of Lance tables: it has the columns and properties of its version, and a name. */
class NamedTable extends LanceTable implements TruncatableTable, SupportsIndex {
  private final String name;
  private final Map properties;
  private final String id;

  /** A table to be created has no facts yet. */
  NamedTable(String name, StructType schema, Map options, Facts facts, Map properties) {
    super(schema, options, facts, true);
    this.name = name;
    this.properties = properties;
    this.id = Identities.of(facts);
  }

  public String name() { return name; }
  public String id() { return id; }
  public Map properties() { return properties; }
  public Constraint[] constraints() { return Keys.of(schema()); }
  boolean isAltered() { return true; }
  LanceTable renewed(Facts facts) { return new NamedTable(name, schema(), options, facts, properties); }

  /** Deletes all rows, in one version. */
  public boolean truncateTable() {
    Catalog.act("truncate", options, Collections.emptyMap(), null);
    Caches.refresh((String) options.get("path"));
    return true;
  }

  /** Does what the procedure create_index does; the options of the statement are its arguments. */
  public void createIndex(String index, NamedReference[] columns, Map columnsProperties, Map given) {
    if (columns.length != 1) throw refused(index, "is of one column, not of " + columns.length);
    if (!((Map) columnsProperties.getOrDefault(columns[0], Collections.emptyMap())).isEmpty()) {
      throw refused(index, "has no options of its column");
    }
    Map arguments = new LinkedHashMap(Collections.singletonMap("index_type", "ZONEMAP"));
    for (Object entry : given.entrySet()) {
      String key = ((String) ((Map.Entry) entry).getKey()).toLowerCase(Locale.ROOT);
      String value = (String) ((Map.Entry) entry).getValue();
      boolean isReserved = Arrays.asList("column", "name", "replace", "index_type").contains(key);
      if (isReserved) throw refused(index, "has the option " + key + ", which is a part of the statement");
      if (key.equals(SupportsIndex.PROP_TYPE)) arguments.put("index_type", value);
      else if (value.matches("-?[0-9]{1,18}")) arguments.put(key, Long.valueOf(value));
      else if (value.matches("[0-9]{0,9}[.][0-9]{1,18}")) arguments.put(key, Double.valueOf(value));
      else if (value.matches("(?i)true|false")) arguments.put(key, Boolean.valueOf(value));
      else arguments.put(key, value);
    }
    if (indexExists(index)) Platform.throwException(new IndexAlreadyExistsException(index, name, Option.empty()));
    arguments.put("column", columns[0].describe());
    arguments.put("name", index);
    arguments.put("replace", Boolean.FALSE);
    run("create_index", arguments);
  }

  public void dropIndex(String index) {
    if (!indexExists(index)) Platform.throwException(new NoSuchIndexException(index, name, Option.empty()));
    run("drop_index", Collections.singletonMap("name", index));
  }

  public boolean indexExists(String index) {
    for (Object each : indices()) if (((Map) each).get("name").equals(index)) return true;
    return false;
  }

  public TableIndex[] listIndexes() {
    List all = indices();
    TableIndex[] made = new TableIndex[all.size()];
    for (int i = 0; i < made.length; i++) {
      Map each = (Map) all.get(i);
      List fields = (List) each.get("fields");
      NamedReference[] columns = new NamedReference[fields.size()];
      for (int j = 0; j < columns.length; j++) columns[j] = Expressions.column((String) fields.get(j));
      made[i] = new TableIndex((String) each.get("name"), (String) each.get("type"), columns, Collections.emptyMap(),
          new Properties());
    }
    return made;
  }

  private List indices() {
    return (List) Catalog.act("indices", options, Collections.emptyMap(), null).get("indices");
  }

  private void run(String procedure, Map arguments) {
    Map details = new LinkedHashMap();
    details.put("procedure", procedure);
    details.put("arguments", arguments);
    Catalog.act("call", options, details, null);
    Caches.refresh((String) options.get("path"));
  }

  private IllegalArgumentException refused(String index, String why) {
    return new IllegalArgumentException("The index " + index + " of " + name + " " + why + "; nothing was done");
  }

  /** Spark has loaded the version that its own options name; these options are passed on. */
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    Map options = Python.merged(more.asCaseSensitiveMap(), Collections.emptyMap());
    options.remove("versionAsOf");
    options.remove("timestampAsOf");
    return super.newScanBuilder(new CaseInsensitiveStringMap(options));
  }
}

/** A table that a statement creates or replaces. The write makes the version, and nothing is left to do after it. */
final class PlacedTable extends Staged {
  private final NamedTable made;
  private final boolean creates;
  private final boolean isDeclared;
  private final boolean isOthers;
  private boolean isWritten;

  /** The last parameters say whether the statement, or another program, has declared the name of a table without rows. */
  PlacedTable(
      Catalog catalog, Identifier name, NamedTable made, boolean creates, boolean isDeclared, boolean isOthers) {
    super(catalog, name, made, creates);
    this.made = made;
    this.creates = creates;
    this.isDeclared = isDeclared;
    this.isOthers = isOthers;
  }

  public Map properties() { return made.properties(); }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    isWritten = true;
    Map options = Python.merged(info.options().asCaseSensitiveMap(), Collections.singletonMap(
        "__lance.properties", Python.json(made.properties())));
    return super.newWriteBuilder(new WriteInfo(info, options));
  }

  public void commitStagedChanges() {
    if (!isWritten) Catalog.make(made, creates);
    if (isOthers) ((Catalog) catalog).confirm(name, made.options);
  }

  public void abortStagedChanges() {
    if (isDeclared) ((Catalog) catalog).abandon(name);
  }
}
