package lance;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of a catalog of Lance tables: it has the columns and properties of its version, and a name. */
class NamedTable extends LanceTable implements TruncatableTable {
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
  private final boolean isNew;
  private boolean isWritten;

  PlacedTable(Catalog catalog, Identifier name, NamedTable made, boolean isNew) {
    super(catalog, name, made, isNew);
    this.made = made;
    this.isNew = isNew;
  }

  public Map properties() { return made.properties(); }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    isWritten = true;
    Map options = Python.merged(info.options().asCaseSensitiveMap(), Collections.singletonMap(
        "__lance.properties", Python.json(made.properties())));
    return super.newWriteBuilder(new WriteInfo(info, options));
  }

  public void commitStagedChanges() {
    if (!isWritten) Catalog.make(made, isNew);
  }

  public void abortStagedChanges() {}
}
