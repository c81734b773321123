package lance;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/**
 * Spark's session catalog, in which Lance tables have their stored columns, ALTER TABLE and time travel. Tables of
 * other formats and views are unchanged. It is opt-in: spark.sql.catalog.spark_catalog names it.
 */
public class SessionCatalog extends DelegatingCatalogExtension {
  /** Returns the entry of a Lance table; null for all others. If the session catalog is replaced, Spark hands out
   * V1Table for all. */
  private static CatalogTable entry(Table table) {
    if (!(table instanceof V1Table) || !DefaultSource.enabled()) return null;
    CatalogTable entry = ((V1Table) table).v1Table();
    boolean isView = entry.tableType().name().endsWith("VIEW");
    return !isView && entry.provider().isDefined() && Staging.isOurs(entry.provider()) ? entry : null;
  }

  private static Map options(Table table, CatalogTable entry) {
    Map given = new HashMap(table.properties());
    given.put(TableCatalog.PROP_PROVIDER, Python.NAME);
    given.put("path", new Path(entry.location()).toString());
    return DefaultSource.declared(given);
  }

  /** A table that is only declared has the columns of the catalog until rows are written. */
  private Table known(Table table, String name, String version) {
    CatalogTable entry = entry(table);
    if (entry == null) return null;
    Commands.install();
    Map options = options(table, entry);
    if (version != null) options.put(name, version);
    boolean isThere = Boolean.TRUE.equals(Python.ask("exists", options, null).get("exists"));
    if (!isThere && version == null) return new LanceTable(table.schema(), options, null, true);
    options.put(Evolution.ENTRY, new TableIdentifier(entry.identifier().table(), entry.identifier().database()).quotedString());
    Evolution.addHeld(options);
    Facts facts = Facts.of(options, null);
    return Evolution.table(name() + "." + entry.identifier().table(), facts.schema(), options, facts, table.properties());
  }

  public Table loadTable(Identifier id) throws NoSuchTableException {
    Table table = super.loadTable(id);
    Table known = known(table, null, null);
    return known == null ? table : known;
  }

  /** VERSION AS OF: a number, or a tag. */
  public Table loadTable(Identifier id, String version) throws NoSuchTableException {
    Table known = known(super.loadTable(id), version.matches("[0-9]+") ? "version" : "tag", version);
    return known == null ? super.loadTable(id, version) : known;
  }

  /** TIMESTAMP AS OF, in microseconds. */
  public Table loadTable(Identifier id, long micros) throws NoSuchTableException {
    Table known = known(super.loadTable(id), "timestamp", String.valueOf(micros));
    return known == null ? super.loadTable(id, micros) : known;
  }

  public Table createTable(Identifier id, Column[] columns, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    super.createTable(id, columns, partitions, properties);
    return created(id);
  }

  private Table created(Identifier id) {
    try {
      return loadTable(id);
    } catch (NoSuchTableException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Columns are the table's, and the catalog follows; properties are the catalog's. */
  public Table alterTable(Identifier id, TableChange[] changes) throws NoSuchTableException {
    Table table = loadTable(id);
    if (table instanceof NamedTable && Evolution.isUnderWay()) {
      Evolution.alter((NamedTable) table, changes);
      return loadTable(id);
    }
    List ofColumns = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      boolean isProperty = changes[i] instanceof TableChange.SetProperty || changes[i] instanceof TableChange.RemoveProperty;
      if (!isProperty) ofColumns.add(changes[i]);
    }
    if (!(table instanceof NamedTable) || ofColumns.isEmpty()) return super.alterTable(id, changes);
    if (ofColumns.size() < changes.length) {
      throw new UnsupportedOperationException("Columns and properties of " + id + " cannot be altered in one statement;"
          + " nothing was changed: write one for each");
    }
    NamedTable altered = (NamedTable) table;
    Catalog.alter(altered, changes);
    StructType schema = Facts.of(altered.options, null).schema();
    SparkSession session = (SparkSession) SparkSession.active();
    session.sessionState().catalog().alterTableSchema(Staging.identifier(id), schema);
    invalidateTable(id);
    return loadTable(id);
  }
}
