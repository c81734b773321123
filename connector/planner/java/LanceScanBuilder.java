package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownOffset;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Collects what Spark pushes to one scan. */
final class LanceScanBuilder extends SampledBuilder implements SupportsPushDownV2Filters, SupportsPushDownRequiredColumns,
    SupportsPushDownLimit, SupportsPushDownOffset, SupportsPushDownTopN, SupportsPushDownAggregates {
  private static final List ROW_ADDRESS = Collections.singletonList("_rowaddr");
  private final Map options;
  private final Facts facts;
  private StructType schema;
  private Predicate[] taken = new Predicate[0];
  private Summary summary;
  private Aggregates aggregates;
  private boolean keepsAverages;

  LanceScanBuilder(StructType schema, Map options, Facts facts) {
    this.schema = schema;
    this.options = options;
    this.facts = facts;
    options.put("__lance.snapshot", facts.snapshot());
    int parallelism = SparkContext$.MODULE$.getOrCreate().defaultParallelism();
    options.put("__lance.parallelism", String.valueOf(Math.max(parallelism, 1)));
  }

  /** Rows are drawn by their addresses: every scan with the same seed has the same ones, however many tasks read. */
  boolean pushSample(double lower, double upper, boolean withReplacement, long seed, int run) {
    if (withReplacement || !facts.isFilterable(ROW_ADDRESS)) return false;
    options.put("__lance.sample", Python.json(Arrays.asList(new Object[] {
        "SAMPLE", Double.valueOf(lower), Double.valueOf(upper), String.valueOf(seed), Integer.valueOf(run)})));
    return true;
  }

  /** Takes predicates that Python evaluates exactly as Spark does, and returns the others. */
  public Predicate[] pushPredicates(Predicate[] predicates) {
    Predicates encoder = new Predicates(facts, true);
    List mine = new ArrayList();
    List rest = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      (encoder.encode(predicates[i]) == null ? rest : mine).add(predicates[i]);
    }
    taken = (Predicate[]) mine.toArray(new Predicate[0]);
    String all = encoder.conjunction(taken);
    if (all != null) options.put("__lance.predicate", all);
    return (Predicate[]) rest.toArray(new Predicate[0]);
  }

  public Predicate[] pushedPredicates() { return taken; }
  public void pruneColumns(StructType required) { schema = required; }

  public boolean pushLimit(int limit) {
    options.put("__lance.limit", String.valueOf(limit));
    return true;
  }

  /** Without a filter all tasks together yield at most the limit; with one each task may, and Spark counts again. */
  public boolean isPartiallyPushed() { return !isUnfiltered() || options.containsKey("__lance.order"); }

  private boolean isUnfiltered() { return taken.length == 0 && !options.containsKey("__lance.sample") && facts.exact(); }

  /** Skips rows before the limit applies, if there is one: rows of the table, and not the one that summarizes them. */
  public boolean pushOffset(int offset) {
    if (summary != null || isPartiallyPushed()) return false;
    options.put("__lance.offset", String.valueOf(offset));
    return true;
  }

  /** Each task yields its first rows; Spark sorts them once more. */
  public boolean pushTopN(SortOrder[] orders, int limit) {
    List columns = new ArrayList();
    for (int i = 0; i < orders.length; i++) {
      if (!(orders[i].expression() instanceof NamedReference)) return false;
      String[] path = ((NamedReference) orders[i].expression()).fieldNames();
      if (path.length != 1 || path[0].indexOf('.') >= 0 || !facts.isFilterable(Arrays.asList(path))) return false;
      columns.add(Arrays.asList(new Object[] {path[0], Boolean.valueOf(orders[i].direction() == SortDirection.ASCENDING),
          Boolean.valueOf(orders[i].nullOrdering() == NullOrdering.NULLS_FIRST)}));
    }
    options.put("__lance.order", Python.json(columns));
    return pushLimit(limit);
  }

  private Summary summary(Aggregation aggregation) {
    if (aggregation.groupByExpressions().length > 0 || !isUnfiltered()) return null;
    if (summary == null) summary = Summary.of(aggregation.aggregateExpressions(), options, facts);
    return summary;
  }

  public boolean supportCompletePushDown(Aggregation aggregation) {
    if (summary(aggregation) != null) return true;
    keepsAverages |= Aggregates.mayOverflow(aggregation, facts);
    return false;
  }

  public boolean pushAggregation(Aggregation aggregation) {
    if (summary(aggregation) != null) return true;
    boolean isOffered = !keepsAverages && facts.isAggregated() && Aggregates.enabled();
    aggregates = isOffered ? Aggregates.of(aggregation, facts) : null;
    if (aggregates == null) return false;
    options.put("__lance.aggregates", aggregates.form);
    schema = aggregates.schema;
    return true;
  }

  public Scan build() {
    if (summary != null) return summary;
    return new LanceScan(schema, options, facts, taken, aggregates);
  }
}
