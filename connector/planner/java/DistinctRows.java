package lance;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.BitAndAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.BitOrAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.HyperLogLogPlusPlus;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets tasks return each row once to aggregates that equal rows do not change: those of distinct values, minima and
 * maxima. Spark offers sources no aggregates of distinct values.
 */
final class DistinctRows extends Rule {
  public TreeNode apply(TreeNode plan) {
    if (!Aggregates.enabled()) return plan;
    return ((LogicalPlan) plan).transformDownWithSubqueries(new Distinction());
  }

  private static final class Distinction extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) { return plan instanceof Aggregate; }
    public Object apply(Object plan) { return made((Aggregate) plan); }
  }

  /** The plan over a scan of distinct rows; the same plan if it is as it should be. */
  private static LogicalPlan made(Aggregate plan) {
    if (plan.isStreaming() || !ignoresRepetitions(plan)) return plan;
    LogicalPlan below = plan.child();
    while (isOfSingleRows(below)) below = (LogicalPlan) below.children().head();
    if (!(below instanceof DataSourceV2ScanRelation)) return plan;
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) below;
    LanceScan scan = relation.scan() instanceof LanceScan ? ((LanceScan) relation.scan()).distinct() : null;
    return scan == null ? plan : scan.in(plan, relation);
  }

  /** Whether an operator makes equal rows of equal rows. Scans with keys of joins return few rows, if they may. */
  private static boolean isOfSingleRows(LogicalPlan plan) {
    if (!(plan instanceof Project || plan instanceof Filter || plan instanceof Expand)) return false;
    if (plan instanceof Filter && Trees.isPruned(((Filter) plan).condition())) return false;
    Seq all = plan.expressions();
    for (int i = 0; i < all.size(); i++) if (!((Expression) all.apply(i)).deterministic()) return false;
    return true;
  }

  private static boolean ignoresRepetitions(Aggregate plan) {
    Seq all = plan.expressions();
    for (int i = 0; i < all.size(); i++) {
      Expression expression = (Expression) all.apply(i);
      if (!expression.deterministic() || !ignoresRepetitions(expression)) return false;
    }
    return true;
  }

  private static boolean ignoresRepetitions(Expression expression) {
    if (expression instanceof AggregateExpression) {
      AggregateFunction function = ((AggregateExpression) expression).aggregateFunction();
      return ((AggregateExpression) expression).isDistinct() || function instanceof Min || function instanceof Max
          || function instanceof BitAndAgg || function instanceof BitOrAgg || function instanceof HyperLogLogPlusPlus;
    }
    Seq children = expression.children();
    for (int i = 0; i < children.size(); i++) if (!ignoresRepetitions((Expression) children.apply(i))) return false;
    return true;
  }
}
