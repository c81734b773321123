package lance;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BinaryOperator;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Writes `NULL AND x` as `if(x, NULL, x)`, and `NULL OR x` as `if(x, x, NULL)`, which are the same. Spark fails to plan a
 * query over any source that takes filters or aggregates if one of them has such a term: it takes both operands for
 * predicates, which a null is not. `coalesce(x BETWEEN NULL AND 5, true)` becomes one.
 */
final class NullOperands extends Rule {
  public TreeNode apply(TreeNode plan) {
    Seq leaves = ((LogicalPlan) plan).collectLeaves();
    for (int i = 0; i < leaves.size(); i++) {
      if (isOurs(leaves.apply(i))) return ((LogicalPlan) plan).transformAllExpressions(new Rewriting());
    }
    return plan;
  }

  private static boolean isOurs(Object leaf) {
    if (!(leaf instanceof DataSourceV2Relation)) return false;
    Table table = ((DataSourceV2Relation) leaf).table();
    return (table instanceof RowLevelOperationTable ? ((RowLevelOperationTable) table).table() : table) instanceof LanceTable;
  }

  private static final class Rewriting extends AbstractPartialFunction {
    public boolean isDefinedAt(Object term) {
      if (!(term instanceof And || term instanceof Or)) return false;
      Expression other = other((BinaryOperator) term);
      return other != null && other.deterministic();
    }

    public Object apply(Object term) {
      Expression other = other((BinaryOperator) term);
      Expression nothing = Literal.create(null, other.dataType());
      return term instanceof And ? new If(other, nothing, other) : new If(other, other, nothing);
    }

    /** The operand beside a null; null if none or both are. */
    private static Expression other(BinaryOperator term) {
      Expression left = (Expression) term.left();
      Expression right = (Expression) term.right();
      if (isNull(left) == isNull(right)) return null;
      return isNull(left) ? right : left;
    }

    private static boolean isNull(Expression operand) {
      return operand instanceof Literal && ((Literal) operand).value() == null;
    }
  }
}
