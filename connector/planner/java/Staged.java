package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** A table whose rows are written before the catalog says that it is there. */
abstract class Staged implements StagedTable, SupportsWrite {
  protected final TableCatalog catalog;
  protected final Identifier name;
  protected final LanceTable table;
  private final boolean creates;

  /** The last parameter says whether its location must be free; otherwise the rows of the table there are replaced. */
  Staged(TableCatalog catalog, Identifier name, LanceTable table, boolean creates) {
    this.catalog = catalog;
    this.name = name;
    this.table = table;
    this.creates = creates;
  }

  public String name() { return table.name(); }
  public StructType schema() { return table.schema(); }
  public Set capabilities() { return table.capabilities(); }
  public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    Map options = Python.merged(info.options().asCaseSensitiveMap(), Saving.mode(creates));
    WriteBuilder builder = table.newWriteBuilder(new WriteInfo(info, options));
    return creates ? builder : ((SupportsTruncate) builder).truncate();
  }
}

/** A new table. The catalog gets its entry when the write begins, which keeps others from creating it. */
final class MadeTable extends Staged {
  MadeTable(TableCatalog catalog, Identifier name, LanceTable table, boolean creates) {
    super(catalog, name, table, creates);
  }

  public void commitStagedChanges() {}
  public void abortStagedChanges() { catalog.dropTable(name); }
}

/** A Lance table that keeps its location. The write replaces its rows and columns, and the catalog entry follows. */
final class ReplacedTable extends Staged {
  private static final Set KEPT = new HashSet(Arrays.asList(new String[] {TableCatalog.PROP_PROVIDER,
      TableCatalog.PROP_OWNER, TableCatalog.PROP_LOCATION, TableCatalog.PROP_EXTERNAL,
      TableCatalog.PROP_IS_MANAGED_LOCATION}));

  private final SparkSession session;
  private final CatalogTable old;
  private final Map properties;

  ReplacedTable(SparkSession session, TableCatalog catalog, Identifier name, CatalogTable old, Map properties,
      LanceTable table) {
    super(catalog, name, table, false);
    this.session = session;
    this.old = old;
    this.properties = properties;
  }

  public void commitStagedChanges() {
    try {
      TableChange[] changes = changes();
      if (changes.length > 0) catalog.alterTable(name, changes);
      if (!old.schema().equals(schema())) {
        session.sessionState().catalog().alterTableSchema(Staging.identifier(name), schema());
      }
      catalog.invalidateTable(name);
    } catch (Exception e) {
      throw new IllegalStateException("The rows of " + name + " were replaced, but the catalog still has the columns and"
          + " properties from before: run the statement again", e);
    }
  }

  public void abortStagedChanges() {}

  private TableChange[] changes() {
    List all = new ArrayList();
    Map before = CollectionConverters.asJava(old.properties());
    for (Iterator names = before.keySet().iterator(); names.hasNext(); ) {
      String property = (String) names.next();
      if (!KEPT.contains(property) && !properties.containsKey(property)) all.add(TableChange.removeProperty(property));
    }
    for (Iterator names = properties.keySet().iterator(); names.hasNext(); ) {
      String property = (String) names.next();
      Object value = properties.get(property);
      if (!KEPT.contains(property) && !value.equals(before.get(property))) {
        all.add(TableChange.setProperty(property, (String) value));
      }
    }
    return (TableChange[]) all.toArray(new TableChange[0]);
  }
}

/** A table under a temporary name, until it replaces the other one. */
final class SwappedTable extends Staged {
  private final Identifier aside;
  private boolean isDropping;

  SwappedTable(TableCatalog catalog, Identifier name, Identifier aside, LanceTable table) {
    super(catalog, name, table, false);
    this.aside = aside;
  }

  public void commitStagedChanges() {
    isDropping = true;
    try {
      catalog.dropTable(name);
      catalog.renameTable(aside, name);
    } catch (Exception e) {
      throw new IllegalStateException("The table that was to replace " + name + " is written, but is still called " + aside
          + ": drop the old one, and ALTER TABLE " + aside + " RENAME TO " + name.name(), e);
    }
  }

  /** The new files stay, as the old table may already be gone. */
  public void abortStagedChanges() {
    if (!isDropping) catalog.dropTable(aside);
  }
}
