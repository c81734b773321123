package lance;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets a MERGE shuffle only the rows of the target that the source matches. Where it inserts, Spark cannot broadcast the
 * source, and shuffles all rows of the target. Here the keys of a small source are broadcast first, which leaves the
 * matched rows, and lets the scan skip fragments and zones. Both uses of the source share one shuffle, so that it is
 * evaluated once: two evaluations could differ.
 */
final class MatchedRows extends Rule {
  private static final TreeNodeTag DONE = new TreeNodeTag("lance.matched_rows");

  public TreeNode apply(TreeNode plan) {
    if (!(plan instanceof WriteDelta)) return plan;
    WriteDelta delta = (WriteDelta) plan;
    boolean isOurs = delta.write().isDefined() && delta.write().get() instanceof Delta;
    return isOurs ? ((LogicalPlan) plan).transformDown(new Narrowing()) : plan;
  }

  private static final class Narrowing extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      if (!(plan instanceof Join)) return false;
      Join join = (Join) plan;
      return join.getTagValue(DONE).isEmpty() && Joins.isTarget(join.left()) && !Joins.isTarget(join.right())
          && join.condition().isDefined() && ((Expression) join.condition().get()).deterministic()
          && ExtractEquiJoinKeys$.MODULE$.unapply(join).isDefined();
    }

    public Object apply(Object plan) {
      Join join = (Join) plan;
      Join made = narrowed(join, (Product) ExtractEquiJoinKeys$.MODULE$.unapply(join).get());
      made.setTagValue(DONE, Boolean.TRUE);
      return made;
    }
  }

  private static Join narrowed(Join join, Product parts) {
    Seq ofTarget = (Seq) parts.productElement(1);
    Seq ofSource = (Seq) parts.productElement(2);
    if (Joins.isBroadcast(join.left())) return copy(join);
    if (join.joinType().toString().equals("Inner") && Joins.isBroadcast(join.right())) {
      LogicalPlan target = pruned(join.left(), ofTarget, join.right(), ofSource);
      return new Join(target, join.right(), join.joinType(), join.condition(), join.hint());
    }
    if (!join.joinType().toString().equals("RightOuter")) return copy(join);
    LogicalPlan source = new RepartitionByExpression(ofSource, join.right(), Option.empty(), Option.empty());
    LogicalPlan keys = new Project(used(source, (Expression) join.condition().get()), source);
    if (!Joins.isBroadcast(keys)) return copy(join);
    LogicalPlan target = pruned(join.left(), ofTarget, keys, ofSource);
    Join matched = new Join(target, keys, (JoinType) LeftSemi$.MODULE$, join.condition(), JoinHint$.MODULE$.NONE());
    matched.setTagValue(DONE, Boolean.TRUE);
    return new Join(matched, source, join.joinType(), join.condition(), join.hint());
  }

  private static Join copy(Join join) {
    return new Join(join.left(), join.right(), join.joinType(), join.condition(), join.hint());
  }

  /** The columns of a plan that a condition names. */
  private static Seq used(LogicalPlan plan, Expression condition) {
    List found = new ArrayList();
    for (int i = 0; i < plan.output().size(); i++) {
      if (condition.references().contains((Attribute) plan.output().apply(i))) found.add(plan.output().apply(i));
    }
    return Trees.seq(found);
  }

  /** Lets the scan of a target skip what the broadcast keys rule out. */
  private static LogicalPlan pruned(LogicalPlan target, Seq ofTarget, LogicalPlan source, Seq ofSource) {
    LogicalPlan made = target;
    if (!SQLConf$.MODULE$.get().dynamicPartitionPruningEnabled()) return made;
    for (int i = 0; i < ofTarget.size(); i++) {
      if (ofTarget.apply(i) instanceof AttributeReference) {
        made = (LogicalPlan) made.transformDown(new Pruning((AttributeReference) ofTarget.apply(i), source, ofSource, i));
      }
    }
    return made;
  }

  private static final class Pruning extends AbstractPartialFunction {
    private final AttributeReference key;
    private final LogicalPlan source;
    private final Seq keys;
    private final int position;
    private boolean isDone;

    Pruning(AttributeReference key, LogicalPlan source, Seq keys, int position) {
      this.key = key;
      this.source = source;
      this.keys = keys;
      this.position = position;
    }

    public boolean isDefinedAt(Object plan) {
      if (isDone || !(plan instanceof DataSourceV2ScanRelation)) return false;
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) plan;
      return relation.scan() instanceof LanceScan && ((LanceScan) relation.scan()).isRowLevel()
          && relation.outputSet().contains(key) && ((LanceScan) relation.scan()).isFilterable(key.name());
    }

    public Object apply(Object plan) {
      isDone = true;
      return new Filter(Trees.pruning(key, source, keys, position, true), (LogicalPlan) plan);
    }
  }
}
