package lance;

import java.net.URI;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The session catalog with staging: a replaced table stays until its replacement is written.
 *
 * A Lance table is replaced in place by one version; earlier versions stay readable. A table at another location, or of
 * another format, is replaced by a table with a temporary name, which is renamed once its rows are written.
 */
final class Staging implements StagingTableCatalog {
  /** Schemes of locations that Hadoop may have no file system for. */
  private static final Set CLOUDS = new HashSet(Arrays.asList(new String[] {"s3", "gs", "az", "abfs", "abfss"}));

  private final SparkSession session;
  private final TableCatalog catalog;
  private final boolean nullable;

  /** The last parameter says whether columns may be null regardless of the query. */
  Staging(SparkSession session, TableCatalog catalog, boolean nullable) {
    this.session = session;
    this.catalog = catalog;
    this.nullable = nullable;
  }

  /** Whether a provider is this source; none stands for Spark's default. */
  static boolean isOurs(Option provider) {
    String name = provider.isEmpty() ? SQLConf$.MODULE$.get().defaultDataSourceName() : (String) provider.get();
    return name.equalsIgnoreCase(Python.NAME) || name.equals(DefaultSource.class.getName());
  }

  /** Whether there is a Lance table at a location, if one is given; the properties are those of the table to be. */
  static boolean isTable(Option location, Map properties) {
    return location.isDefined() && Boolean.TRUE.equals(Python.ask("exists", at(location, properties), null).get("exists"));
  }

  /** Refuses options that tables do not have, and columns that an existing table at a location does not have. No columns
   * stand for all of the table's. The other location is that of a table for which none is given. */
  static void check(Option location, URI other, Map properties, StructType columns) {
    if (columns.isEmpty() || !DefaultSource.enabled()) return;
    if (location.isEmpty()) {
      if (!properties.isEmpty()) isTable(Option.apply(other.toString()), properties);
      return;
    }
    Object misfit = Python.ask("misfit", at(location, properties), columns).get("misfit");
    if (misfit != null) {
      throw new IllegalArgumentException(misfit + ". CREATE TABLE without columns takes those of the table");
    }
  }

  /** The clause OPTIONS as properties of a table. */
  static Map properties(scala.collection.immutable.Map options) {
    Map properties = new HashMap();
    for (Iterator names = CollectionConverters.asJava(options).keySet().iterator(); names.hasNext(); ) {
      String name = (String) names.next();
      properties.put(TableCatalog.OPTION_PREFIX + name, options.apply(name));
    }
    return properties;
  }

  private static Map at(Option location, Map properties) {
    Map entry = entry(properties);
    entry.put("path", location.get());
    return DefaultSource.declared(entry);
  }

  private static Map entry(Map properties) {
    Map all = new HashMap(properties);
    all.put(TableCatalog.PROP_PROVIDER, Python.NAME);
    return all;
  }

  public void initialize(String name, CaseInsensitiveStringMap options) {}
  public String name() { return catalog.name(); }
  public java.util.Set capabilities() { return catalog.capabilities(); }
  public boolean useNullableQuerySchema() { return nullable && catalog.useNullableQuerySchema(); }
  public boolean tableExists(Identifier table) { return catalog.tableExists(table); }
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException { return catalog.listTables(namespace); }
  public Table loadTable(Identifier table) throws NoSuchTableException { return catalog.loadTable(table); }
  public void invalidateTable(Identifier table) { catalog.invalidateTable(table); }
  public boolean dropTable(Identifier table) { return catalog.dropTable(table); }

  public Table alterTable(Identifier table, TableChange[] changes) throws NoSuchTableException {
    return catalog.alterTable(table, changes);
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    catalog.renameTable(from, to);
  }

  public StagedTable stageCreate(Identifier table, Column[] columns, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Option location = Option.apply(properties.get(TableCatalog.PROP_LOCATION));
    if (isTable(location, properties)) {
      throw new IllegalArgumentException("There is a Lance table at " + location.get() + " already: CREATE TABLE " + table
          + " USING lance LOCATION ... without a query takes it into the catalog as it is, whereupon rows can be added;"
          + " CREATE OR REPLACE TABLE, or mode overwrite, replaces its rows. Nothing was changed");
    }
    return new MadeTable(catalog, table, make(table, columns, properties), true);
  }

  public StagedTable stageReplace(Identifier table, Column[] columns, Transform[] partitions, Map properties)
      throws NoSuchTableException, NoSuchNamespaceException {
    CatalogTable old = session.sessionState().catalog().getTableMetadata(identifier(table));
    if (old.tableType().name().endsWith("VIEW")) {
      throw new IllegalArgumentException(table + " is a view: drop it first, or give the table another name");
    }
    boolean isManaged = old.tableType().equals(CatalogTableType$.MODULE$.MANAGED());
    Object given = properties.get(TableCatalog.PROP_LOCATION);
    boolean wasOurs = isOurs(old.provider());
    boolean stays = given == null ? wasOurs : isSame((String) given, old.location());
    if (stays && wasOurs && old.partitionColumnNames().isEmpty() && old.bucketSpec().isEmpty()) {
      Map entry = entry(properties);
      entry.put("path", new Path(old.location()).toString());
      StructType schema = CatalogV2Util.v2ColumnsToStructType(columns);
      LanceTable written = (LanceTable) new DefaultSource().getTable(schema, new Transform[0], entry);
      return new ReplacedTable(session, catalog, table, old, properties, written);
    }
    if (isManaged && given != null && isWithin((String) given, old.location())) {
      throw new IllegalArgumentException("The directory " + given + " goes with the table " + table
          + ", which it was to replace: choose another location. Nothing was changed");
    }
    if (stays && !wasOurs) {
      throw new IllegalArgumentException("At " + given + " are the files of the table " + table + ", which is "
          + old.provider().get() + ": choose another location. Nothing was changed");
    }
    Map kept = new HashMap(properties);
    if (stays && !isManaged) kept.put(TableCatalog.PROP_LOCATION, new Path(old.location()).toString());
    String aside = table.name() + "__replacing_" + UUID.randomUUID().toString().replace("-", "").substring(0, 12);
    Identifier made = Identifier.of(table.namespace(), aside);
    try {
      return new SwappedTable(catalog, table, made, make(made, columns, kept));
    } catch (TableAlreadyExistsException e) {
      throw new IllegalStateException(e);
    }
  }

  public StagedTable stageCreateOrReplace(Identifier table, Column[] columns, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    try {
      if (tableExists(table)) return stageReplace(table, columns, partitions, properties);
      return new MadeTable(catalog, table, make(table, columns, properties), false);
    } catch (NoSuchTableException e) {
      throw new IllegalStateException(e);
    } catch (TableAlreadyExistsException e) {
      throw new IllegalStateException(e);
    }
  }

  private LanceTable make(Identifier table, Column[] columns, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    catalog.createTable(table, columns, new Transform[0], properties);
    try {
      return (LanceTable) catalog.loadTable(table);
    } catch (NoSuchTableException e) {
      throw new IllegalStateException(e);
    } catch (ClassCastException e) {
      catalog.dropTable(table);
      throw new UnsupportedOperationException("Lance tables can be kept by Spark's own session catalog, not by "
          + catalog.getClass().getName() + ": save to a path. Nothing was changed");
    }
  }

  static TableIdentifier identifier(Identifier table) {
    return new TableIdentifier(table.name(), Option.apply(table.namespace()[0]));
  }

  private boolean isSame(String given, URI old) { return qualified(new Path(given)).equals(qualified(new Path(old))); }

  private boolean isWithin(String given, URI old) {
    Path outer = qualified(new Path(old));
    for (Path path = qualified(new Path(given)); path != null; path = path.getParent()) {
      if (path.equals(outer)) return true;
    }
    return false;
  }

  private Path qualified(Path path) {
    URI uri = path.toUri();
    String scheme = uri.getScheme() == null ? "" : uri.getScheme().replaceFirst("^s3[an]$", "s3");
    if (CLOUDS.contains(scheme)) return new Path(scheme, uri.getAuthority(), uri.getPath());
    try {
      return path.getFileSystem(session.sessionState().newHadoopConf()).makeQualified(path);
    } catch (java.io.IOException e) {
      throw new IllegalArgumentException(e);
    }
  }
}
