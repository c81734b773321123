package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/** One scan, around Spark's PythonScan. Scans that read the same are equal, so Spark runs one of them. */
final class LanceScan implements SupportsReportStatistics, SupportsRuntimeV2Filtering {
  private static final int MAX_SHOWN = 1000;

  /** A sample is trusted so far: tables of which it shows no row are not broadcast however large they are. */
  private static final double LEAST_SHARE = 0.125;

  final StructType schema;
  final Map options;
  private final Facts facts;
  private final Predicate[] predicates;
  private final Aggregates aggregates;
  private final GroupLimit groupLimit;
  private final LanceBatch batch = new LanceBatch(this);
  private final Map grouped = new HashMap();
  private String runtime;
  private Map plan;
  private boolean isPlanned;
  private boolean isStreamed;
  private double share = -1;

  /** The last parameter is null if tasks return rows. */
  LanceScan(StructType schema, Map options, Facts facts, Predicate[] predicates, Aggregates aggregates) {
    this(schema, options, facts, predicates, aggregates, null);
  }

  private LanceScan(
      StructType schema, Map options, Facts facts, Predicate[] predicates, Aggregates aggregates, GroupLimit groupLimit) {
    this.schema = schema;
    this.options = options;
    this.facts = facts;
    this.predicates = predicates;
    this.aggregates = aggregates;
    this.groupLimit = groupLimit;
  }

  /** The same relation of some of its columns. */
  static DataSourceV2ScanRelation narrowed(DataSourceV2ScanRelation relation, List output) {
    Set names = new HashSet();
    for (int i = 0; i < output.size(); i++) names.add(((Attribute) output.get(i)).name());
    return ((LanceScan) relation.scan()).narrowed(names).in(relation, Trees.seq(output));
  }

  /** A relation that has this scan, with these columns. */
  DataSourceV2ScanRelation in(DataSourceV2ScanRelation relation, Seq output) {
    Object[] old = new Object[] {relation.scan(), relation.output()};
    return (DataSourceV2ScanRelation) Trees.replaced(relation, old, new Object[] {this, output});
  }

  /** A plan that has this scan in a relation. */
  LogicalPlan in(LogicalPlan plan, DataSourceV2ScanRelation relation) {
    return (LogicalPlan) plan.transformDown(new Exchange(relation, in(relation, relation.output())));
  }

  /** Returns all rows if this returns the first of each group: another query may want the others. */
  private LanceScan narrowed(Set names) {
    StructType some = new StructType();
    for (int i = 0; i < schema.length(); i++) if (names.contains(schema.apply(i).name())) some = some.add(schema.apply(i));
    if (groupLimit == null) return new LanceScan(some, options, facts, predicates, aggregates);
    Map unlimited = new HashMap(options);
    unlimited.remove("__lance.first");
    return new LanceScan(some, unlimited, facts, predicates, null);
  }

  /** The same scan that returns equal rows of a task once; null if it cannot, or does already. */
  LanceScan distinct() {
    Aggregates groups = isBound() ? null : Aggregates.distinct(schema, facts);
    return groups == null ? null : grouped(schema, groups);
  }

  /** What its tasks compute for an aggregation, while it is gathered. */
  States states(List substitutions) { return new States(facts, substitutions); }

  /** The scan whose tasks return groups, which is planned once: an adaptive execution makes its plan several times. */
  synchronized LanceScan grouped(StructType columns, Aggregates groups) {
    Object key = Arrays.asList(new Object[] {columns, groups.form});
    LanceScan known = (LanceScan) grouped.get(key);
    if (known != null) return known;
    Map all = new HashMap(options);
    all.put("__lance.aggregates", groups.form);
    LanceScan made = new LanceScan(columns, all, facts, predicates, groups);
    grouped.put(key, made);
    return made;
  }

  /** The same scan that need not return rows but the first of each group; null if it cannot, or does already. */
  LanceScan first(GroupLimit limit) {
    if (isBound() || !limit.isComparedIn(this)) return null;
    Map limited = new HashMap(options);
    limited.put("__lance.first", limit.form);
    return new LanceScan(schema, limited, facts, predicates, null, limit);
  }

  /** The same scan that skips the rows without the keys of other scans, which the driver reads; see ReadKeys. */
  LanceScan keyed(List keys) {
    Map all = new HashMap(options);
    all.put("__lance.keys", Python.json(keys));
    LanceScan made = new LanceScan(schema, all, facts, predicates, aggregates, groupLimit);
    made.share = share;
    return made;
  }

  /** Whether the driver reads a column of its rows as tasks do, in less time than it takes to start these. */
  boolean isReadByDriver(String column) {
    if (isBound() || isSampled() || !isFilterable(column) || plan() == null) return false;
    Set names = Predicates.columns(predicates);
    names.add(column);
    return plannedRows() <= RuntimeFilters.MAX_KEYS && plannedBytes(names) <= facts.jobBytes();
  }

  /** The rows of the planned tasks, if the driver reads them in less time than a task takes to start; else null. */
  List driverRows() {
    if (!DriverRows.areRead(facts.isAggregated() && !isStreamed, plannedRows(), planned("fragments"))) return null;
    Set names = Predicates.columns(predicates);
    names.addAll(Arrays.asList(schema.fieldNames()));
    long limit = returnsFewer() ? DriverRows.MOST_BYTES : DriverRows.MOST_RETURNED_BYTES;
    if (plannedBytes(names) > Math.min(facts.jobBytes(), limit)) return null;
    Map found = Python.hint("rows", asked(), schema);
    return found == null ? null : (List) found.get("rows");
  }

  /** Whether tasks may return fewer rows than they look at. */
  private boolean returnsFewer() {
    boolean isFiltered = hasChoice() || runtime != null || options.containsKey("__lance.keys");
    return isFiltered || isAggregated() || groupLimit != null || options.containsKey("__lance.order");
  }

  private double plannedBytes(Set columns) {
    return facts.rows() == 0 ? 0 : facts.sizeInBytes(columns) * ((double) plannedRows() / facts.rows());
  }

  /** The table and its version, for messages; and what tells this version from another of its number. */
  String name() { return facts.name(); }
  String trace() { return facts.trace(); }

  /** Whether tasks cannot be asked to return fewer rows. */
  boolean isBound() {
    boolean isChanged = isAggregated() || groupLimit != null || hasChosen();
    return isChanged || isStreamed || isRowLevel() || !facts.isAggregated();
  }

  public StructType readSchema() { return schema; }

  /** Approximate size in bytes of the columns in all rows. */
  long columnBytes() { return facts.sizeInBytes(schema); }

  public CustomMetric[] supportedCustomMetrics() { return Metrics.and(Python.source().source().createPythonMetrics()); }

  public CustomTaskMetric[] reportDriverMetrics() {
    if (isStreamed || plan() == null) return new CustomTaskMetric[0];
    return Metrics.of(planned("fragments"), facts.fragments(), plannedRows(), facts.rows());
  }

  /** Known without a plan: Spark asks while it plans the operators above the scan. */
  public Scan.ColumnarSupportMode columnarSupportMode() {
    return Columns.areReachable() ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  public String description() {
    String filters = PredicateText.of(predicates);
    if (filters.length() > MAX_SHOWN) filters = filters.substring(0, MAX_SHOWN) + "...]";
    String reads = aggregates == null ? schema.simpleString() : aggregates.shown;
    return Python.NAME + " " + facts.name() + ", reads: " + reads + ", filters: " + filters
        + shownKeys() + shown("sample") + shown("limit") + shown("offset") + shown("order")
        + (groupLimit == null ? "" : ", first: " + groupLimit.shown) + tasks();
  }

  /** What tasks will read; empty if a worker plans them. */
  private String tasks() {
    if (isStreamed || plan() == null) return "";
    return ", fragments: " + planned("fragments") + " of " + facts.fragments()
        + ", rows: " + plannedRows() + " of " + facts.rows();
  }

  /** The rows that tasks will read, if the driver plans them, else all. */
  double plannedOrAllRows() { return isStreamed || plan() == null ? facts.rows() : plannedRows(); }

  boolean isAggregated() { return aggregates != null; }

  /** Number of the columns by which tasks group rows. */
  int groups() { return aggregates.groups; }

  /** The share of the rows that tasks read which passes the filters, as a sample has it; 1 if nothing is known. */
  synchronized double share() {
    if (share < 0) {
      Map found = hasChoice() ? once("share") : null;
      double sampled = found == null ? 0 : ((Number) found.get("sampled")).doubleValue();
      share = sampled == 0 ? 1 : Math.max(((Number) found.get("passed")).doubleValue(), 1) / sampled;
    }
    return share;
  }

  /** Whether a filter tests more than that there is a value. */
  private boolean hasChoice() {
    if (isSampled()) return true;
    for (int i = 0; i < predicates.length; i++) if (!predicates[i].name().equals("IS_NOT_NULL")) return true;
    return false;
  }

  /** Tasks count deleted rows, too. */
  private long plannedRows() { return Math.min(facts.rows(), planned("rows")); }

  private long planned(String what) { return ((Number) plan.get(what)).longValue(); }

  private String shownKeys() {
    Object given = options.get("__lance.keys");
    if (given == null) return "";
    StringBuilder all = new StringBuilder();
    for (Iterator keys = Python.list((String) given).iterator(); keys.hasNext(); ) {
      Map one = (Map) keys.next();
      all.append(all.length() == 0 ? ", keys: [" : ", ");
      all.append(one.get("column")).append(" IN ").append(one.get("key")).append(" of ").append(one.get("table"));
    }
    return all.append("]").toString();
  }

  private String shown(String what) {
    Object value = options.get("__lance." + what);
    return value == null ? "" : ", " + what + ": " + value;
  }

  /** The rows to be returned: fewer than the table has if the tasks skip some, or a sample has shown that filters do. */
  public synchronized Statistics estimateStatistics() {
    double rows = plannedOrAllRows() * (share < 0 ? 1 : Math.max(share, LEAST_SHARE));
    double part = facts.rows() == 0 ? 1 : rows / facts.rows();
    return new LanceStatistics((long) rows, Math.max((long) (facts.sizeInBytes(schema) * part), 1));
  }

  /** The tasks, as the driver's Python process plans them; null if it does not. */
  synchronized Map plan() {
    if (!isPlanned) {
      plan = runtime == null ? once("plan") : Python.askDriver("plan", asked(), schema);
      isPlanned = true;
    }
    return plan;
  }

  private Map asked() {
    return runtime == null ? options : Python.merged(options, Collections.singletonMap("__lance.runtime", runtime));
  }

  /** Asks once in a query, whose plan may have the same scan several times. */
  private Map once(String question) {
    Map known = Versions.known();
    if (known == null) return ask(question);
    synchronized (known) {
      Object asked = Arrays.asList(new Object[] {question, options, schema});
      if (!known.containsKey(asked)) known.put(asked, ask(question));
      return (Map) known.get(asked);
    }
  }

  /** A plan may have an error to tell; a sample is of use only. */
  private Map ask(String question) {
    return question.equals("plan") ? Python.askDriver(question, options, schema) : Python.hint(question, options, schema);
  }

  /** Whether all rows are read: nothing that was pushed skips rows. */
  boolean readsAllRows() { return predicates.length == 0 && !isSampled() && !hasChosen(); }

  private boolean isSampled() { return options.containsKey("__lance.sample"); }

  /** Whether it returns the first rows only. */
  private boolean hasChosen() { return options.containsKey("__lance.limit") || options.containsKey("__lance.offset"); }

  /** Whether this finds the rows that a DELETE, UPDATE or MERGE changes. */
  boolean isRowLevel() { return options.containsKey("__lance.row_level"); }

  /**
   * Columns by which a running join may skip rows: those of the groups, if rows are grouped or the first of each group are
   * returned. There are none if a limit has already chosen rows, or if rows are changed: Spark would scan the table once
   * more to find the rows to skip, which MatchedRows avoids. Spark looks columns up by name, so names that it cannot
   * distinguish are left out.
   */
  public NamedReference[] filterAttributes() {
    List found = new ArrayList();
    StructField[] fields = schema.fields();
    boolean isChosen = hasChosen() || isRowLevel();
    for (int i = 0; i < fields.length && !isChosen; i++) {
      boolean keepsGroups = groupLimit == null || groupLimit.keys.contains(fields[i].name());
      boolean isKey = aggregates == null || aggregates.keys.contains(fields[i].name());
      if (keepsGroups && isKey && isFilterable(fields[i].name())) found.add(Expressions.column(quoted(fields[i].name())));
    }
    return (NamedReference[]) found.toArray(new NamedReference[0]);
  }

  private boolean isUnique(String name) {
    int found = 0;
    boolean caseSensitive = SQLConf$.MODULE$.get().caseSensitiveAnalysis();
    String[] names = schema.fieldNames();
    for (int i = 0; i < names.length; i++) {
      if (caseSensitive ? names[i].equals(name) : names[i].equalsIgnoreCase(name)) found++;
    }
    return found == 1;
  }

  static String quoted(String name) { return "`" + name.replace("`", "``") + "`"; }

  /** Whether predicates over a column mean the same in Python and in Spark. */
  boolean isFilterable(String column) { return isUnique(column) && facts.isFilterable(Arrays.asList(new String[] {column})); }

  /** Predicates that may be ignored: of large ones only the bounds are kept. One of one key too many is incomplete. */
  public void filter(Predicate[] predicates) {
    List small = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      int values = predicates[i].children().length - 1;
      if (values <= RuntimeFilters.MAX_KEYS) small.add(predicates[i]);
      else if (values > RuntimeFilters.MAX_KEYS + 1) small.addAll(RuntimeBounds.of(predicates[i]));
    }
    String found = new Predicates(facts).conjunction((Predicate[]) small.toArray(new Predicate[0]));
    if (found == null) return;
    synchronized (this) {
      runtime = found;
      isPlanned = false;
    }
    batch.forget();
  }

  public Batch toBatch() { return batch; }

  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    isStreamed = true;
    return LanceStream.of(this, checkpointLocation);
  }

  /** Returns an answer to a question about a stream of this scan. */
  Map askStream(Map question) {
    return Python.demand("stream", Python.merged(options, Collections.singletonMap("__lance.stream", Python.json(question))), schema);
  }

  /** Returns Spark's batch of tasks that Python has planned. Both arguments are encoded. */
  Batch planned(String function, List encoded) {
    PythonDataSourceV2 source = Python.source();
    List partitions = new ArrayList();
    for (int i = 0; i < encoded.size(); i++) partitions.add(Base64.getDecoder().decode((String) encoded.get(i)));
    source.setReadInfo(new PythonDataSourceReadInfo(
        Base64.getDecoder().decode(function), scala.jdk.javaapi.CollectionConverters.asScala(partitions).toSeq()));
    return python(source).toBatch();
  }

  /** Has an own source: Spark keeps one reader per source, which would answer other queries with the rows of this one.
   * */
  PythonScan python(PythonDataSourceV2 source) {
    return new PythonScan(source, Python.NAME, schema, new CaseInsensitiveStringMap(options), new Filter[0]);
  }

  public boolean equals(Object other) {
    return other instanceof LanceScan && ((LanceScan) other).schema.equals(schema)
        && ((LanceScan) other).options.equals(options);
  }

  public int hashCode() { return options.hashCode(); }
}

/** Plans in the driver's Python process if it answers, else in a worker; reads as any Python data source. */
final class LanceBatch implements Batch {
  private final LanceScan scan;
  private Batch planned;

  LanceBatch(LanceScan scan) { this.scan = scan; }

  /** Tasks that were planned before Spark pushed runtime filters. */
  synchronized void forget() { planned = null; }

  private synchronized Batch planned() {
    if (planned != null) return planned;
    Map plan = scan.plan();
    List rows = plan == null ? null : scan.driverRows();
    if (rows != null) planned = new DriverRows(rows);
    else if (plan == null) planned = scan.python(Python.source()).toBatch();
    else planned = scan.planned((String) plan.get("function"), (List) plan.get("partitions"));
    return planned;
  }

  public InputPartition[] planInputPartitions() { return planned().planInputPartitions(); }

  public PartitionReaderFactory createReaderFactory() {
    PartitionReaderFactory factory = planned().createReaderFactory();
    return Columns.areReachable() && !(factory instanceof DriverRows) ? new Columns(factory) : factory;
  }

  public boolean equals(Object other) { return other instanceof LanceBatch && ((LanceBatch) other).scan.equals(scan); }
  public int hashCode() { return scan.hashCode(); }
}

final class LanceStatistics implements Statistics {
  private final long rows;
  private final long size;

  LanceStatistics(long rows, long size) {
    this.rows = rows;
    this.size = size;
  }

  public OptionalLong numRows() { return OptionalLong.of(rows); }
  public OptionalLong sizeInBytes() { return OptionalLong.of(size); }
}
