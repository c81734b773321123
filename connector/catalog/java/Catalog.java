package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A catalog of Lance tables, whose places are those of a directory or of a server. A name without a namespace that has a
 * slash is the path of a table. Python does the work: see connector.catalog.
 */
public class Catalog extends ChangingCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog {
  private static final Logger LOG = LoggerFactory.getLogger(Catalog.class);
  private static final String BRANCH = "branch_";
  private static final String PROCEDURES = "system";
  private static final Set METADATA = new HashSet(Arrays.asList(new String[] {"history", "files", "fragments", "indices",
      "tags", "branches", "refs", "transactions"}));
  private static final Set OF_SPARK = new HashSet(Arrays.asList(new String[] {TableCatalog.PROP_PROVIDER,
      TableCatalog.PROP_LOCATION, TableCatalog.PROP_OWNER, TableCatalog.PROP_EXTERNAL,
      TableCatalog.PROP_IS_MANAGED_LOCATION}));

  private String name;
  private Places places;

  /** The dot in the default name keeps it from being a table of the session catalog. */
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    places = CatalogOptions.places(name, options);
  }

  public String name() { return name; }
  public String[] defaultNamespace() { return new String[0]; }

  public Set capabilities() {
    return new HashSet(Arrays.asList(new TableCatalogCapability[] {TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT,
        TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE}));
  }

  private static boolean isPath(Identifier table) { return table.namespace().length == 0 && isPath(table.name()); }
  private static boolean isPath(Object name) { return ((String) name).indexOf('/') >= 0; }

  Map options(Identifier table) {
    Identifier owner = owner(table);
    if (owner == table) return isPath(table) ? places.options(Places.named(table.name())) : places.options(table);
    Map options = options(owner);
    if (isBranch(table)) options.put("branch", table.name().substring(BRANCH.length()));
    else options.put("metadata_table", metadataTable(table));
    return options;
  }

  private static boolean isBranch(Identifier table) { return table.name().startsWith(BRANCH); }
  private static String metadataTable(Identifier table) { return table.name().toLowerCase(Locale.ROOT); }

  /**
   * The table of a branch or metadata table: t for `t.branch_b` and `t.files`, unless t is a namespace. A table without a
   * namespace is one of the current namespace. Other names are returned as given.
   */
  private Identifier owner(Identifier table) {
    String[] namespace = table.namespace();
    boolean isPart = isBranch(table) || METADATA.contains(metadataTable(table));
    if (!isPart || namespace.length == 0) return table;
    int last = namespace.length - 1;
    Identifier owner = Identifier.of((String[]) Arrays.copyOf(namespace, last), namespace[last]);
    if (isPath(owner) || !isBranch(table) && owner(owner) != owner) return owner;
    if (namespaceExists(namespace)) return table;
    return last == 0 ? Identifier.of(currentNamespace(), owner.name()) : owner;
  }

  /** That of the session if this is its current catalog. */
  private String[] currentNamespace() {
    CatalogManager manager = ((SparkSession) SparkSession.active()).sessionState().catalogManager();
    return manager.currentCatalog().name().equals(name) ? manager.currentNamespace() : new String[0];
  }

  /** The table of a name; refuses branches and metadata tables. */
  private Identifier main(Identifier table) {
    Identifier owner = owner(table);
    return owner == table ? table : main(owner);
  }

  private void refuseBranch(String what, Identifier table) {
    if (owner(table) == table) return;
    throw new UnsupportedOperationException(what + " is for tables, and " + shown(table) + " names a "
        + (isBranch(table) ? "branch" : "metadata table") + "; nothing was changed");
  }

  static Map act(String what, Map options, Map details, StructType schema) {
    if (!DefaultSource.enabled()) {
      throw new UnsupportedOperationException("Catalogs of Lance tables need the planner: set"
          + " spark.lance.planner.enabled to true, or read and write by the path, with format(\"lance\")");
    }
    Map all = new HashMap(options);
    all.put("__lance.action", what);
    all.put("__lance.details", Python.json(details));
    return Python.demand("act", all, schema);
  }

  // Tables

  /** The state of a name: "table", "dropped" (without being purged) or "absent". */
  private String state(Identifier table) { return state(table, options(table)); }

  private String state(Identifier table, Map options) {
    if (!options.containsKey("path")) return "absent";
    return (String) act("find", options, Places.details("by_path", Boolean.valueOf(isPath(main(table)))), null).get("state");
  }

  public boolean tableExists(Identifier table) { return state(table).equals("table"); }

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    List names = (List) contents(namespace).get("tables");
    Identifier[] all = new Identifier[names.size()];
    for (int i = 0; i < all.length; i++) all[i] = Identifier.of(namespace, (String) names.get(i));
    return all;
  }

  public Table loadTable(Identifier table) throws NoSuchTableException { return load(table, options(table)); }

  /** VERSION AS OF: a number, or a tag. */
  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    Map options = options(table);
    options.put(version.matches("[0-9]+") ? "version" : "tag", version);
    return load(table, options);
  }

  /** TIMESTAMP AS OF, in microseconds. */
  public Table loadTable(Identifier table, long micros) throws NoSuchTableException {
    Map options = options(table);
    options.put("timestamp", String.valueOf(micros));
    return load(table, options);
  }

  Table load(Identifier table, Map options) throws NoSuchTableException {
    Commands.install();
    boolean hadPlace = options.containsKey("path");
    if (!hadPlace || !isInQuery(table) && !state(table, options).equals("table")) {
      boolean isOfTable = hadPlace && isNamedInQuery() && owner(table) != table && tableExists(main(table));
      if (isOfTable) Facts.of(options, null); // its error names the branches
      throw noSuch(table);
    }
    Evolution.addHeld(options);
    Facts facts = Facts.of(options, null);
    Map properties = new HashMap((Map) act("describe", options, Collections.emptyMap(), null).get("properties"));
    properties.put(TableCatalog.PROP_PROVIDER, Python.NAME);
    properties.put(TableCatalog.PROP_LOCATION, facts.uri()); // of a branch its own
    return Evolution.table(shown(table), facts.schema(), options, facts, properties);
  }

  /**
   * Whether a query names a path: where Spark hears that there is no table, it looks for files of a format there.
   * `spark.catalog.tableExists` resolves names as well, and has to hear it.
   */
  private boolean isInQuery(Identifier table) { return isPath(main(table)) && isNamedInQuery(); }

  private static boolean isNamedInQuery() {
    return !Callers.contain("sql.classic.Catalog")
        && (Callers.contain("RelationResolution") || Callers.contain("ResolveRelations"));
  }

  /** In a query, Spark takes a missing `lance.t` for files of that format, unless the error is of another class. */
  private NoSuchTableException noSuch(Identifier table) {
    if (table.namespace().length > 0 || !isNamedInQuery()) return new NoSuchTableException(table);
    NoSuchTableException error = new NoSuchTableException(Identifier.of(new String[] {name}, table.name()));
    Platform.throwException(new AnalysisException(error.getCondition(), error.messageParameters()));
    return error;
  }

  private String shown(Identifier table) { return name + "." + table; }

  public Table createTable(Identifier table, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    PlacedTable made = (PlacedTable) stageCreate(table, info);
    boolean isMade = false;
    try {
      made.commitStagedChanges();
      isMade = true;
    } finally {
      if (!isMade) made.abortStagedChanges();
    }
    return made; // as in alterTable
  }

  /** Has the columns of another table, and its properties if it is one of Lance. */
  public Table createTableLike(Identifier table, TableInfo info, Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Map properties = new HashMap(source instanceof NamedTable ? kept(source.properties()) : Collections.emptyMap());
    properties.putAll(info.properties());
    TableInfo.Builder copy = new TableInfo.Builder();
    copy.withColumns(info.columns());
    copy.withPartitions(info.partitions());
    copy.withProperties(properties);
    copy.withConstraints(info.constraints());
    return createTable(table, copy.build());
  }

  public StagedTable stageCreate(Identifier table, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return staged(table, info, false);
  }

  public StagedTable stageReplace(Identifier table, TableInfo info) throws NoSuchTableException, NoSuchNamespaceException {
    if (!tableExists(table)) throw new NoSuchTableException(table);
    return stageCreateOrReplace(table, info);
  }

  public StagedTable stageCreateOrReplace(Identifier table, TableInfo info) throws NoSuchNamespaceException {
    try {
      return staged(table, info, true);
    } catch (TableAlreadyExistsException e) {
      throw new IllegalStateException(e);
    }
  }

  private StagedTable staged(Identifier table, TableInfo info, boolean replaces)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Map properties = info.properties();
    Divisions.refuse(info.partitions());
    refuseBranch("CREATE or REPLACE TABLE", table);
    checkProvider((String) properties.get(TableCatalog.PROP_PROVIDER));
    String state = state(table);
    boolean isThere = state.equals("table");
    if (isThere && !replaces) throw new TableAlreadyExistsException(table);
    if (state.equals("dropped")) throw new IllegalArgumentException(places.remedy(table));
    if (!isPath(table) && !namespaceExists(table.namespace())) throw new NoSuchNamespaceException(table.namespace());
    StructType schema = Keys.declared(
        shown(table), CatalogV2Util.v2ColumnsToStructType(info.columns()), info.constraints());
    NewPlace place = isPath(table)
        ? new NewPlace(placed(table, properties), false) : places.place(table, location(properties));
    NamedTable made = new NamedTable(shown(table), schema, place.options, null, kept(properties));
    return new PlacedTable(this, table, made, !replaces, place.isDeclared, !isThere && !place.isDeclared);
  }

  private static String location(Map properties) { return (String) properties.get(TableCatalog.PROP_LOCATION); }

  private Map placed(Identifier table, Map properties) {
    String path = Places.named(table.name());
    String location = location(properties);
    boolean isThere = location == null || Places.plain(location).equals(path) || Places.named(location).equals(path);
    if (isThere) return places.options(path);
    throw new UnsupportedOperationException("LOCATION: the table is to be at " + path + ", which is its name; leave the"
        + " clause out");
  }

  /** Gives up a table that was declared. A fault of it would take the place of the error that ended the statement. */
  void abandon(Identifier table) {
    try {
      places.abandon(table);
    } catch (Exception e) {
      LOG.warn("the table {} is still declared", shown(table), e);
    }
  }

  /** Checks that a new table has its name. */
  void confirm(Identifier table, Map options) {
    if (!isPath(table)) places.confirm(table, options);
  }

  /** DataFrameWriter names Spark's default provider if its user names none. */
  private void checkProvider(String provider) {
    if (provider == null || provider.equalsIgnoreCase(Python.NAME) || provider.equals(DefaultSource.class.getName())) return;
    if (provider.equals(SQLConf$.MODULE$.get().defaultDataSourceName()) && Saving.isAsking()) return;
    throw new UnsupportedOperationException("The catalog " + name + " has Lance tables only: write USING lance, or create"
        + " a table of " + provider + " in spark_catalog");
  }

  /** The properties without those that Spark adds; it repeats those of OPTIONS (...) with a prefix. */
  private static Map kept(Map properties) {
    Map kept = new HashMap();
    for (Iterator names = properties.keySet().iterator(); names.hasNext(); ) {
      String property = (String) names.next();
      if (OF_SPARK.contains(property) || property.startsWith(TableCatalog.OPTION_PREFIX)) continue;
      kept.put(property, properties.get(property));
    }
    return kept;
  }

  /** Creates a table without rows, or replaces a table by one. */
  static void make(NamedTable table, boolean creates) {
    Map details = new LinkedHashMap();
    details.put("mode", creates ? "create" : "overwrite");
    details.put("properties", table.properties());
    act("create", table.options, details, table.schema());
    if (!creates) Caches.refresh((String) table.options.get("path"));
  }

  public Table alterTable(Identifier table, TableChange[] changes) throws NoSuchTableException {
    if (!tableExists(table)) throw new NoSuchTableException(table);
    if (!isBranch(table)) refuseBranch("ALTER TABLE", table);
    NamedTable known = (NamedTable) loadTable(table);
    if (Evolution.isUnderWay()) {
      Evolution.alter(known, changes);
      return loadTable(table);
    }
    alter(known, changes);
    return known; // Statements ignore it; a fault of another look at the table would be an error of what is done.
  }

  static void alter(NamedTable table, TableChange[] changes) {
    act("alter", table.options, Changes.of(table.name(), changes), null);
    Caches.refresh((String) table.options.get("path"));
  }

  /** The files stay; the table is no longer listed. */
  public boolean dropTable(Identifier table) {
    refuseBranch("DROP TABLE", table);
    if (!tableExists(table)) return false;
    if (isPath(table)) {
      throw new UnsupportedOperationException("A table by its path is in no list from which DROP TABLE could take it:"
          + " DROP TABLE " + shown(table) + " PURGE deletes its files");
    }
    places.drop(table, false);
    return true;
  }

  public boolean purgeTable(Identifier table) {
    refuseBranch("DROP TABLE", table);
    if (!tableExists(table)) return false;
    if (isPath(table)) act("drop", options(table), Places.details("purge", Boolean.TRUE), null);
    else places.drop(table, true);
    return true;
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    refuseBranch("RENAME TO", from);
    refuseBranch("RENAME TO", to);
    if (!tableExists(from)) throw new NoSuchTableException(from);
    if (isPath(from) || isPath(to)) {
      throw new UnsupportedOperationException("RENAME TO changes names in the catalog " + name + ", and " + from + " or "
          + to + " is a path: move the directory");
    }
    if (!state(to).equals("absent")) throw new TableAlreadyExistsException(to);
    if (!namespaceExists(to.namespace())) {
      throw new IllegalArgumentException("There is no namespace " + Arrays.toString(to.namespace()) + " in the catalog "
          + name + " for the table to move to; a new name is written without the catalog");
    }
    places.rename(from, to);
  }

  // Procedures

  private List procedures() {
    return (List) act("procedures", Collections.emptyMap(), Collections.emptyMap(), null).get("procedures");
  }

  public UnboundProcedure loadProcedure(Identifier procedure) {
    List all = procedures();
    List names = new ArrayList();
    for (int i = 0; i < all.size(); i++) {
      Map declared = (Map) all.get(i);
      boolean isNamed = procedure.name().equalsIgnoreCase((String) declared.get("name"));
      if (isNamed && isProcedures(procedure.namespace())) return new CatalogProcedure(this, declared);
      names.add(declared.get("name"));
    }
    return new UnknownProcedure(procedure.name(), "There is no procedure " + shown(procedure) + "; those of " + name + "."
        + PROCEDURES + " are " + String.join(", ", names));
  }

  public Identifier[] listProcedures(String[] namespace) {
    List all = isProcedures(namespace) ? procedures() : Collections.emptyList();
    Identifier[] names = new Identifier[all.size()];
    for (int i = 0; i < names.length; i++) names[i] = Identifier.of(namespace, (String) ((Map) all.get(i)).get("name"));
    return names;
  }

  private static boolean isProcedures(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase(PROCEDURES);
  }

  /** Runs a procedure on a table, whose name may begin with that of this catalog. */
  Map call(String table, Map details) {
    Identifier named = identifier(table);
    if (!tableExists(named)) Platform.throwException(new NoSuchTableException(named));
    if (owner(named) != named && !isBranch(named)) refuseBranch("A procedure", named);
    Map options = options(named);
    if (!options.containsKey("path")) Platform.throwException(new NoSuchTableException(named));
    Map found = act("call", options, details, null);
    Caches.refresh((String) options.get("path"));
    return found;
  }

  private Identifier identifier(String table) {
    List parts = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(
        CatalystSqlParser$.MODULE$.parseMultipartIdentifier(table)));
    if (parts.size() > 1 && ((String) parts.get(0)).equalsIgnoreCase(name)) {
      parts.remove(0);
    } else if (parts.size() == 2 && ((String) parts.get(0)).equalsIgnoreCase(Python.NAME) && isPath(parts.get(1))) {
      parts.remove(0);
    } else if (parts.size() == 1 && !isPath(parts.get(0))) {
      parts.addAll(0, Arrays.asList(currentNamespace()));
    }
    int last = parts.size() - 1;
    return Identifier.of((String[]) parts.subList(0, last).toArray(new String[0]), (String) parts.get(last));
  }

  // Namespaces

  private Map contents(String[] namespace) throws NoSuchNamespaceException {
    Map found = places.contents(namespace);
    if (namespace.length > 0 && Boolean.FALSE.equals(found.get("exists"))) throw new NoSuchNamespaceException(namespace);
    return found;
  }

  public String[][] listNamespaces() throws NoSuchNamespaceException { return listNamespaces(new String[0]); }

  public String[][] listNamespaces(String[] parent) throws NoSuchNamespaceException {
    List names = (List) contents(parent).get("namespaces");
    String[][] all = new String[names.size()][];
    for (int i = 0; i < all.length; i++) {
      all[i] = (String[]) Arrays.copyOf(parent, parent.length + 1);
      all[i][parent.length] = (String) names.get(i);
    }
    return all;
  }

  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 0 || places.exists(namespace);
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    Map found = places.properties(namespace);
    if (found == null) throw new NoSuchNamespaceException(namespace);
    return found;
  }

  public void createNamespace(String[] namespace, Map metadata) throws NamespaceAlreadyExistsException {
    if (namespaceExists(namespace)) throw new NamespaceAlreadyExistsException(namespace);
    Map properties = new HashMap(metadata);
    properties.remove(SupportsNamespaces.PROP_OWNER);
    places.make(namespace, properties);
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    throw new UnsupportedOperationException("Namespaces of the catalog " + name + " cannot be altered; nothing was changed");
  }

  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    if (namespace.length == 0) throw new UnsupportedOperationException("DROP NAMESPACE needs the name of one");
    if (!places.remove(namespace, cascade)) throw new NonEmptyNamespaceException(namespace);
    return true;
  }
}
