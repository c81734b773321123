package lance;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;

/** A leaf of a plan, or groups that HAVING chooses, with an estimate of the rows that joins get of it. */
final class Input {
  /** Assumed where nothing is known: the share of rows that a filter passes, and the share of groups that HAVING keeps. */
  private static final double FILTERED = 0.25;
  private static final double CHOSEN = 0.02;
  private static final double VALUE_BYTES = 8;
  private static final double SMALL = 100000;

  /** Microseconds of a processor per row: read by us with each column, by Spark, grouped once more from shared shuffles. */
  private static final double READING = 0.02;
  private static final double COLUMN = 0.01;
  private static final double SPARK_READING = 0.1;
  private static final double GROUPING = 0.08;

  final LogicalPlan node;
  /** Joins that drop rows of other inputs without a key of this one. */
  final List edges = new ArrayList();
  /** Edges from inputs that filter it while it is read, and from those that only shrink its keys, as it is small. */
  final List filters = new ArrayList();
  final List semijoins = new ArrayList();
  /** Rows that are read. */
  final double read;
  /** Rows that are left by what is known so far. */
  double rows;
  boolean isSelective;
  boolean isDone;
  /** Number of inputs that have to be read for its keys. */
  int sources = 1;

  Input(LogicalPlan node) {
    this.node = node;
    this.read = read(node);
    this.rows = isGroups() ? read * CHOSEN : read;
    this.isSelective = isGroups();
  }

  /** The scan of a table of ours whose rows may be skipped; null for others. */
  LanceScan scan() { return scan(node); }

  static LanceScan scan(LogicalPlan node) {
    boolean isScan = node instanceof DataSourceV2ScanRelation && ((DataSourceV2ScanRelation) node).scan() instanceof LanceScan;
    return isScan ? (LanceScan) ((DataSourceV2ScanRelation) node).scan() : null;
  }

  private boolean isGroups() { return !node.children().isEmpty(); }

  private static double read(LogicalPlan node) {
    double most = 0;
    for (int i = 0; i < node.children().size(); i++) most = Math.max(most, read((LogicalPlan) node.children().apply(i)));
    if (!node.children().isEmpty()) return most;
    if (scan(node) != null) return scan(node).plannedOrAllRows();
    if (node instanceof LocalRelation) return ((LocalRelation) node).data().size();
    return Joins.bytes(node).doubleValue() / (VALUE_BYTES * (1 + node.output().size()));
  }

  /** Whether it is known to have no more rows than are read. */
  boolean isCounted() { return scan() != null && !scan().isAggregated() || node instanceof LocalRelation; }

  /** Whether it has the same rows each time that it is read. */
  boolean isRepeatable() { return isRepeatable(node); }

  private static boolean isRepeatable(LogicalPlan node) {
    if (!node.deterministic()) return false;
    for (int i = 0; i < node.children().size(); i++) {
      if (!isRepeatable((LogicalPlan) node.children().apply(i))) return false;
    }
    if (!node.children().isEmpty()) return true;
    if (node instanceof LogicalRelation) return ((LogicalRelation) node).relation() instanceof HadoopFsRelation;
    return node instanceof LocalRelation || scan(node) != null;
  }

  /** Takes account of the filters that the plan has for it. */
  void estimate(LogicalPlan chain) {
    if (isGroups()) return;
    double share = scan() == null || edges.isEmpty() ? 1 : scan().share();
    for (LogicalPlan plan = chain; plan != node; plan = (LogicalPlan) plan.children().head()) {
      if (plan instanceof Filter && isSelective(((Filter) plan).condition())) share *= FILTERED;
    }
    rows *= share;
    isSelective |= share < 1;
  }

  /** Whether reading it takes hardly any time. */
  boolean isSmall() { return !isGroups() && read <= SMALL; }

  /** Notes that the keys of another input keep a share of its rows. */
  void shrink(Edge edge, List edges, double kept) {
    edges.add(edge);
    edge.kept = kept;
    rows *= kept;
    sources += edge.source.input.sources;
    isSelective = true;
  }

  /** Whether another input has to be read for it, or for the keys that shrink it. */
  boolean isOf(Input other) {
    if (contains(node, other.node)) return true;
    List known = shrunkBy();
    for (int i = 0; i < known.size(); i++) if (((Edge) known.get(i)).source.input.isOf(other)) return true;
    return false;
  }

  private static boolean contains(LogicalPlan plan, LogicalPlan node) {
    if (plan == node) return true;
    for (int i = 0; i < plan.children().size(); i++) {
      if (contains((LogicalPlan) plan.children().apply(i), node)) return true;
    }
    return false;
  }

  /** All edges whose keys its rows are of. */
  List shrunkBy() {
    List all = new ArrayList(filters);
    all.addAll(semijoins);
    return all;
  }

  /** Spark's guess whether a predicate excludes many rows. */
  static boolean isSelective(Expression predicate) { return PartitionPruning$.MODULE$.isLikelySelective(predicate); }

  /** Microseconds of a processor that reading it once more costs. */
  double cost() {
    if (isGroups()) return read * GROUPING;
    return read * (scan() == null ? SPARK_READING : READING + COLUMN * node.output().size());
  }
}
