package lance;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Collects what Spark pushes to one scan. */
final class LanceScanBuilder implements SupportsPushDownV2Filters, SupportsPushDownRequiredColumns, SupportsPushDownLimit,
    SupportsPushDownAggregates {
  private final Map options;
  private final Facts facts;
  private StructType schema;
  private Predicate[] taken = new Predicate[0];
  private int numCounts;

  LanceScanBuilder(StructType schema, Map options, Facts facts) {
    this.schema = schema;
    this.options = options;
    this.facts = facts;
    options.put("__lance.snapshot", facts.snapshot());
    int parallelism = SparkContext$.MODULE$.getOrCreate().defaultParallelism();
    options.put("__lance.parallelism", String.valueOf(Math.max(parallelism, 1)));
  }

  /** Takes what Python evaluates exactly as Spark does, and returns the rest. */
  public Predicate[] pushPredicates(Predicate[] predicates) {
    Predicates encoder = new Predicates(facts);
    List mine = new ArrayList();
    List rest = new ArrayList();
    List terms = new ArrayList();
    terms.add("AND");
    for (int i = 0; i < predicates.length; i++) {
      List term = encoder.encode(predicates[i]);
      (term == null ? rest : mine).add(predicates[i]);
      if (term != null) terms.add(term);
    }
    if (!mine.isEmpty()) options.put("__lance.predicate", Python.json(terms));
    taken = (Predicate[]) mine.toArray(new Predicate[0]);
    return (Predicate[]) rest.toArray(new Predicate[0]);
  }

  public Predicate[] pushedPredicates() { return taken; }
  public void pruneColumns(StructType required) { schema = required; }

  public boolean pushLimit(int limit) {
    options.put("__lance.limit", String.valueOf(limit));
    return true;
  }

  /** A limit holds for each partition; Spark cuts down what they yield together. */
  public boolean isPartiallyPushed() { return true; }

  /** count(*), which the manifest knows. */
  private boolean isCount(Aggregation aggregation) {
    AggregateFunc[] functions = aggregation.aggregateExpressions();
    for (int i = 0; i < functions.length; i++) {
      if (!(functions[i] instanceof CountStar)) return false;
    }
    return aggregation.groupByExpressions().length == 0 && taken.length == 0 && facts.exact();
  }

  public boolean supportCompletePushDown(Aggregation aggregation) { return isCount(aggregation); }

  public boolean pushAggregation(Aggregation aggregation) {
    if (!isCount(aggregation)) return false;
    numCounts = aggregation.aggregateExpressions().length;
    return true;
  }

  public Scan build() {
    return numCounts > 0 ? new CountScan(facts, numCounts) : new LanceScan(schema, options, facts, taken);
  }
}
