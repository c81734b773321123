package lance;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Nodes of Spark's plans whose constructors differ between versions: later ones have more parameters, which are optional. */
final class Trees {
  private Trees() {}

  /** Makes a node. */
  static TreeNode made(Class node, Object[] arguments) {
    Constructor constructor = node.getConstructors()[0];
    List values = new ArrayList(Arrays.asList(arguments));
    while (values.size() < constructor.getParameterCount()) values.add(Option.empty());
    try {
      return (TreeNode) constructor.newInstance(values.toArray());
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException("this version of Spark has " + constructor, e);
    }
  }

  /** A copy of a node with other arguments. */
  static TreeNode replaced(TreeNode node, Object[] old, Object[] made) {
    Object[] arguments = new Object[node.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = node.productElement(i);
      for (int j = 0; j < old.length; j++) if (arguments[i] == old[j]) arguments[i] = made[j];
    }
    return node.makeCopy(arguments);
  }

  /** That a column has one of the values of a key of a query. If it is only for broadcasts, no other job may be run for it. */
  static Expression pruning(Expression column, LogicalPlan query, Seq keys, int position, boolean isForBroadcasts) {
    Seq positions = seq(Arrays.asList(new Object[] {Integer.valueOf(position)}));
    return (Expression) made(DynamicPruningSubquery.class, new Object[] {
        column, query, keys, positions, Boolean.valueOf(isForBroadcasts), NamedExpression$.MODULE$.newExprId()});
  }

  /** A condition without those terms by which Spark prunes, all of them or those that want the broadcast of a large plan. */
  static Expression unpruned(Expression condition, boolean isOfLarge) {
    if (condition instanceof And) {
      Expression left = unpruned(((And) condition).left(), isOfLarge);
      Expression right = unpruned(((And) condition).right(), isOfLarge);
      if (left == ((And) condition).left() && right == ((And) condition).right()) return condition;
      return left == Literal.TrueLiteral() ? right : right == Literal.TrueLiteral() ? left : new And(left, right);
    }
    if (!(condition instanceof DynamicPruningSubquery)) return condition;
    DynamicPruningSubquery pruning = (DynamicPruningSubquery) condition;
    boolean isKept = isOfLarge && !(pruning.onlyInBroadcast() && !Joins.isBroadcast(pruning.buildQuery()));
    return isKept ? condition : Literal.TrueLiteral();
  }

  /** Whether Spark prunes by a term of a condition. */
  static boolean isPruned(Expression condition) { return unpruned(condition, false) != condition; }

  static Seq seq(List values) { return CollectionConverters.asScala(values).toSeq(); }
}
