package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.DenseRank;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.RowNumber;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets tasks drop rows that are not among the first of their group, if a query numbers the rows of groups and filters by
 * the number. Spark numbers the rows that are left, so tasks may return more than the first.
 */
final class GroupLimits extends Rule {
  private static final String SETTING = "spark.lance.planner.groupLimits.enabled";

  public TreeNode apply(TreeNode plan) {
    if (!DefaultSource.isOn(SETTING)) return plan;
    return ((LogicalPlan) plan).transformDownWithSubqueries(new Limitation());
  }

  private static final class Limitation extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) { return plan instanceof WindowGroupLimit; }
    public Object apply(Object plan) { return made((WindowGroupLimit) plan); }
  }

  /** The plan over a scan of the first rows; the same plan if it is as it should be. */
  private static LogicalPlan made(WindowGroupLimit plan) {
    if (plan.isStreaming() || !GroupLimit.takes(plan)) return plan;
    List columns = columns(plan);
    LogicalPlan below = plan.child();
    while (columns != null && !below.children().isEmpty()) {
      if (below instanceof Project && below.deterministic()) columns = below(((Project) below).projectList(), columns);
      else if (!(below instanceof Filter && dropsGroups(((Filter) below).condition(), columns))) return plan;
      below = (LogicalPlan) below.children().head();
    }
    if (columns == null || !(below instanceof DataSourceV2ScanRelation)) return plan;
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) below;
    columns = below(relation.output(), columns);
    if (columns == null || !(relation.scan() instanceof LanceScan)) return plan;
    LanceScan scan = ((LanceScan) relation.scan()).first(new GroupLimit(plan, columns));
    return scan == null ? plan : scan.in(plan, relation);
  }

  /** The columns of the groups, then the first one of the order; null if one of them is computed. */
  private static List columns(WindowGroupLimit plan) {
    List found = new ArrayList();
    for (int i = 0; i < plan.partitionSpec().size(); i++) found.add(plain((Expression) plan.partitionSpec().apply(i)));
    found.add(((SortOrder) plan.orderSpec().head()).child());
    for (int i = 0; i < found.size(); i++) if (!(found.get(i) instanceof AttributeReference)) return null;
    return found;
  }

  /** A column without what makes equal floating-point numbers the same, which tasks do anyway. */
  private static Expression plain(Expression key) {
    if (key instanceof KnownFloatingPointNormalized) return plain(((KnownFloatingPointNormalized) key).child());
    return key instanceof NormalizeNaNAndZero ? ((NormalizeNaNAndZero) key).child() : key;
  }

  /** The same columns as some expressions have them; null if one of them is computed. */
  private static List below(Seq expressions, List columns) {
    List found = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      AttributeReference column = JoinGraph.named(expressions, (AttributeReference) columns.get(i));
      if (column == null) return null;
      found.add(column);
    }
    return found;
  }

  /** Whether a condition has keys of joins alone, which drop whole groups: tasks may use or ignore them. */
  private static boolean dropsGroups(Expression condition, List columns) {
    List keys = columns.subList(0, columns.size() - 1);
    AttributeSet rest = condition.references();
    for (int i = 0; i < keys.size(); i++) rest = rest.$minus$minus(((Expression) keys.get(i)).references());
    return rest.isEmpty() && Trees.unpruned(condition, false) == Literal.TrueLiteral();
  }
}

/** The first rows of each group, by one column. */
final class GroupLimit {
  /** More rows of each group take tasks more time and memory. */
  private static final int MAX_LIMIT = 64;

  /** The columns of the groups, and that of the order. */
  final List keys = new ArrayList();
  final String column;
  private final List columns;

  /** What tasks keep, in the form that connector/read/first_rows.py reads. */
  final String form;

  /** What they keep, for people. */
  final String shown;

  /** The columns are those of the groups, then the first one of the order. */
  GroupLimit(WindowGroupLimit plan, List columns) {
    this.columns = columns;
    for (int i = 0; i < columns.size() - 1; i++) keys.add(((AttributeReference) columns.get(i)).name());
    this.column = ((AttributeReference) columns.get(keys.size())).name();
    SortOrder order = (SortOrder) plan.orderSpec().head();
    boolean ascending = order.direction() == Ascending$.MODULE$;
    boolean nullsFirst = order.nullOrdering() == NullsFirst$.MODULE$;
    Map all = new LinkedHashMap();
    all.put("keys", keys);
    all.put("order", Arrays.asList(new Object[] {column, Boolean.valueOf(ascending), Boolean.valueOf(nullsFirst)}));
    all.put("limit", Integer.valueOf(plan.limit()));
    all.put("distinct", Boolean.valueOf(plan.rankLikeFunction() instanceof DenseRank));
    // Of rows that are equal in all columns of the order, Spark numbers any first.
    boolean dropsTies = plan.rankLikeFunction() instanceof RowNumber && plan.orderSpec().size() == 1;
    all.put("drops_ties", Boolean.valueOf(dropsTies));
    this.form = Python.json(all);
    String nulls = ascending == nullsFirst ? "" : nullsFirst ? " NULLS FIRST" : " NULLS LAST";
    this.shown = plan.limit() + " of each " + keys + " by [" + column + (ascending ? " ASC" : " DESC") + nulls + "]";
  }

  static boolean takes(WindowGroupLimit plan) {
    boolean hasBoth = !plan.partitionSpec().isEmpty() && !plan.orderSpec().isEmpty();
    return hasBoth && plan.limit() > 0 && plan.limit() <= MAX_LIMIT;
  }

  /** Whether Python compares the columns as Spark does. */
  boolean isComparedIn(LanceScan scan) {
    for (int i = 0; i < columns.size(); i++) {
      AttributeReference each = (AttributeReference) columns.get(i);
      if (!scan.isFilterable(each.name()) || !Aggregates.isOrdered(each.dataType())) return false;
    }
    return true;
  }
}
