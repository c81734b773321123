package lance;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.util.SchemaUtils$;

/** A table for which Spark plans reads and writes. Spark's own wrapper of Python runs in the tasks. */
class LanceTable implements Table, SupportsRead, SupportsWrite, SupportsMetadataColumns, SupportsDeleteV2,
    SupportsRowLevelOperations {
  private static final List PARTIAL = Arrays.asList(new String[] {"version", "tag", "timestamp", "versionAsOf",
      "timestampAsOf", "columns", "filter", "metadata_columns"});

  private final StructType schema;
  final Map options;
  private final boolean written;
  private final boolean isCatalogs;
  private Facts facts;

  /** The last parameter says whether Spark writes it as a table. */
  LanceTable(StructType schema, Map options, Facts facts, boolean written) {
    this.schema = schema;
    this.options = Hadoop.with(options);
    this.facts = facts;
    this.written = written;
    this.isCatalogs = options.containsKey("__lance.catalog");
  }

  public String name() { return Python.NAME; }

  /**
   * The version that the table had when it was loaded; null if it has only been declared. Because it is stated, Spark
   * loads tables of catalogs again for every query. It is not stated while a statement adds columns, which a table loaded
   * again would lack.
   */
  public String version() { return options.containsKey(Evolution.NEW_COLUMNS) ? null : known(); }

  /** The same, while a statement adds columns, too. */
  String known() {
    boolean isThere = facts != null || Boolean.TRUE.equals(Python.ask("exists", options, null).get("exists"));
    return isThere ? loaded().version() : null;
  }

  public StructType schema() { return schema; }

  /** The same table in another version with the same columns. */
  LanceTable renewed(Facts facts) { return new LanceTable(schema, options, facts, written); }

  /** The location of a table of the session catalog, unless its options show only a part of the table. */
  public Map properties() {
    Map all = new HashMap();
    if (!isCatalogs) return all;
    all.put(TableCatalog.PROP_PROVIDER, Python.NAME);
    Map given = all();
    for (int i = 0; i < PARTIAL.size(); i++) if (given.containsKey(PARTIAL.get(i))) return all;
    all.put(TableCatalog.PROP_LOCATION, loaded().uri());
    return all;
  }

  /** Those of Spark's PythonTable, and more. Spark asks for them, too, when a query that reads or writes it starts. */
  public Set capabilities() {
    Set all = new HashSet(Arrays.asList(new TableCapability[] {TableCapability.BATCH_READ,
        TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE,
        TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC}));
    if (!written) all.remove(TableCapability.BATCH_WRITE);
    if (Sinks.isStarting()) Python.demand("check_sink", Sinks.starting(options), schema);
    else if (LanceStream.isChecked()) Python.demand("check_stream", options, schema);
    if (isAltered()) all.add(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);
    else RowLevel.refuseEvolution();
    return all;
  }

  /** Whether its catalog alters the table itself, rather than only the entry of the catalog. */
  boolean isAltered() { return false; }

  public MetadataColumn[] metadataColumns() {
    if (LanceStream.isWithoutMetadata()) return new MetadataColumn[0];
    return new MetadataColumn[] {new RowColumn("_rowid", DataTypes.LongType, false),
        new RowColumn("_rowaddr", DataTypes.LongType, false), new RowColumn("_fragid", DataTypes.IntegerType, false),
        new RowColumn("_row_created_at_version", DataTypes.LongType, true),
        new RowColumn("_row_last_updated_at_version", DataTypes.LongType, true)};
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    Map all = QueryOptions.of(options, more.asCaseSensitiveMap());
    return new LanceScanBuilder(schema, all, facts(all));
  }

  /** Spark loads tables of catalogs again for each query, so they keep the version that was the latest then. */
  Facts facts(Map all) {
    boolean isOwn = all.equals(Python.merged(options, Collections.emptyMap()));
    boolean isNamed = Versions.isNamed(all);
    Facts found = isOwn && isNamed ? loaded() : Versions.ofThisQuery(all, schema, isOwn && isCatalogs ? loaded() : null);
    boolean hasChanged = !isNamed && facts != null && !found.version().equals(facts.version());
    if (isCatalogs && QueryOptions.choose(options, all)) Versions.checkChosen(found);
    if (isCatalogs || hasChanged) Versions.check(found, options);
    return found;
  }

  synchronized Facts loaded() {
    if (facts == null) facts = Facts.of(options, schema);
    return facts;
  }

  /** Refuses columns that differ in case only unless queries can distinguish them, as Spark does for files. */
  public WriteBuilder newWriteBuilder(LogicalWriteInfo given) {
    Object metadata = all().get("metadata_table");
    if (metadata != null) {
      throw new UnsupportedOperationException("'" + metadata + "' is a metadata table of " + all().get("path")
          + " and cannot be written: write the table");
    }
    LogicalWriteInfo info = new WriteInfo(given, given.options().asCaseSensitiveMap(), columns(given.schema()));
    List names = Arrays.asList(info.schema().fieldNames());
    SchemaUtils$.MODULE$.checkColumnNameDuplication(scala.jdk.javaapi.CollectionConverters.asScala(names).toSeq(),
        SQLConf$.MODULE$.get().caseSensitiveAnalysis());
    Map all = QueryOptions.of(options, info.options().asCaseSensitiveMap());
    all.put("__lance.names_checked", "true");
    if (SQLConf$.MODULE$.get().getConfString("spark.speculation", "false").equals("true")) {
      all.put("__lance.speculation", "true");
    }
    Map query = Sinks.queryOf(info);
    if (query != null) return Sinks.builder(this, info, all, query);
    return new RefreshingWriteBuilder(this, info, all);
  }

  /** Spark leaves lengths of char and varchar out of the columns of a query. A table that a catalog has only declared gets
   * them from its declaration. */
  private StructType columns(StructType ofQuery) {
    boolean isDeclared = isCatalogs && Arrays.equals(schema.fieldNames(), ofQuery.fieldNames()) && known() == null;
    return isDeclared ? CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema) : ofQuery;
  }

  /** Whether the driver deletes the rows: it does if it can evaluate the condition on at most one task's worth of data.
   * */
  public boolean canDeleteWhere(Predicate[] predicates) { return Deletion.suits(predicates, schema, facts(all())); }

  public void deleteWhere(Predicate[] predicates) { Deletion.run(predicates, schema, all(), facts(all())); }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    Map all = QueryOptions.of(options, info.options().asCaseSensitiveMap());
    return new RowLevel(schema, all, facts(all), info);
  }

  /** The options by which a search reads the version that the query sees. */
  Map searched() {
    Map all = all();
    Facts found = facts(all);
    all.keySet().removeAll(Arrays.asList("__lance.catalog", "branch", "tag", "timestamp", "versionAsOf", "timestampAsOf"));
    all.put("path", found.uri());
    all.put("version", found.version());
    return all;
  }

  private Map all() { return Python.merged(options, Collections.emptyMap()); }

  /**
   * Tables that read the same are equal, so Spark finds cached data of one for the other. Tables of catalogs must also
   * have the same version: of equal ones Spark keeps the one that it loaded earlier.
   */
  public boolean equals(Object other) {
    if (!(other instanceof LanceTable)) return false;
    LanceTable table = (LanceTable) other;
    return this == table || schema.equals(table.schema) && read().equals(table.read()) && written == table.written
        && (!isCatalogs || Objects.equals(known(), table.known()));
  }

  public int hashCode() { return read().hashCode(); }

  /** The options that decide what is read. */
  private Map read() {
    Map all = Python.merged(options, Collections.emptyMap());
    if (!all.containsKey("timestamp") && !all.containsKey("timestampAsOf")) all.remove("__lance.time_zone");
    return all;
  }

  /** Whether the table is in a directory, or is a branch of the one there. */
  boolean isIn(String directory) {
    Object path = Python.merged(options, Collections.emptyMap()).get("path");
    return path != null && directory != null && main((String) path).equals(main(directory));
  }

  private static String main(String path) {
    java.net.URI place = new Path(path).toUri();
    String plain = place.getAuthority() == null ? place.getPath() : place.getAuthority() + place.getPath();
    int branch = plain.indexOf("/tree/");
    return branch < 0 ? plain : plain.substring(0, branch);
  }
}

/** Metadata columns of rows; hidden until they are named. */
final class RowColumn implements MetadataColumn {
  private final String name;
  private final DataType type;
  private final boolean nullable;

  RowColumn(String name, DataType type, boolean nullable) {
    this.name = name;
    this.type = type;
    this.nullable = nullable;
  }

  public String name() { return name; }
  public DataType dataType() { return type; }
  public boolean isNullable() { return nullable; }
}

/** A write with the options of its table, too. */
final class WriteInfo implements LogicalWriteInfo {
  private final LogicalWriteInfo info;
  private final Map options;
  private final StructType schema;

  WriteInfo(LogicalWriteInfo info, Map options) { this(info, options, info.schema()); }

  WriteInfo(LogicalWriteInfo info, Map options, StructType schema) {
    this.info = info;
    this.options = options;
    this.schema = schema;
  }

  public CaseInsensitiveStringMap options() { return new CaseInsensitiveStringMap(options); }
  public String queryId() { return info.queryId(); }
  public StructType schema() { return schema; }
}
