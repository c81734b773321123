package lance;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BitwiseNot;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NullOrdering;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.ShiftRight;
import org.apache.spark.sql.catalyst.expressions.SortDirection;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SparkPartitionID;
import org.apache.spark.sql.catalyst.optimizer.CollapseProject$;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets an UPDATE or MERGE read only the columns that it names. Spark reads all columns of all rows that may
 * change, as its delta consists of whole rows. Here rows that are replaced lack the values that they keep, or have defaults
 * if others are inserted, and the writer takes these values from the table, by address. Rows are gathered by address first
 * if the join may scatter many of them: otherwise each task would take from all pages. Plans whose scan would not shrink by
 * half are left.
 */
final class KeptColumns extends Rule {
  private static final int BLOCK_BITS = 17;

  public TreeNode apply(TreeNode plan) {
    if (!(plan instanceof WriteDelta)) return plan;
    WriteDelta delta = (WriteDelta) plan;
    if (delta.write().isEmpty() || !(delta.write().get() instanceof Delta)) return plan;
    Delta write = (Delta) delta.write().get();
    if (write.narrowed != null) return plan;
    DeltaRows whole = DeltaRows.of(delta);
    boolean inserts = delta.query() instanceof MergeRows && !((MergeRows) delta.query()).notMatchedInstructions().isEmpty();
    DeltaRows rows = inserts ? whole.keeping() : whole.without();
    if (rows.kept.isEmpty()) return plan;
    LogicalPlan query = delta.query();
    if (query instanceof MergeRows) query = defaulted((MergeRows) query, whole.unchangedOrdinals());
    query = narrowed(query, inserts ? query.output() : changed(query.output(), whole));
    long bytes = bytes(delta.query());
    long spared = bytes - bytes(query);
    if (bytes == 0 || 2 * spared < bytes) return plan;
    Join join = join(delta.query());
    if (join != null && Joins.scatters(join)) {
      if (isLarger(Joins.bytes(join.right()), spared)) return plan;
      query = gathered(query, (Expression) query.output().apply(rows.address));
    }
    Object written = Option.apply(new Delta(write.operation, write.info, rows));
    return Trees.replaced(delta, new Object[] {delta.query(), delta.write()}, new Object[] {query, written});
  }

  /** Whether a source of known size is larger than what is spared: all of its rows may be inserted, and be gathered. */
  private static boolean isLarger(BigInteger source, long spared) {
    boolean isKnown = source.compareTo(BigInteger.valueOf(SQLConf$.MODULE$.get().defaultSizeInBytes())) < 0;
    return isKnown && source.compareTo(BigInteger.valueOf(spared)) > 0;
  }

  /** The highest join of the target; null if there is none. */
  private static Join join(LogicalPlan plan) {
    if (plan instanceof Join) return Joins.isTarget(((Join) plan).left()) ? (Join) plan : null;
    return plan.children().size() == 1 ? join((LogicalPlan) plan.children().head()) : null;
  }

  /** Approximate size of the columns that the scan of the target reads. */
  private static long bytes(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation) {
      return Joins.isTarget(plan) ? ((LanceScan) ((DataSourceV2ScanRelation) plan).scan()).columnBytes() : 0;
    }
    long all = 0;
    for (int i = 0; i < plan.children().size(); i++) all += bytes((LogicalPlan) plan.children().apply(i));
    return all;
  }

  /** The columns of a query without those of the table that do not change. */
  private static Seq changed(Seq output, DeltaRows rows) {
    Set unchanged = rows.unchangedOrdinals();
    List some = new ArrayList();
    for (int i = 0; i < output.size(); i++) if (!unchanged.contains(Integer.valueOf(i))) some.add(output.apply(i));
    return Trees.seq(some);
  }

  /** Clauses with defaults instead of what the rows that they replace keep. */
  private static LogicalPlan defaulted(MergeRows merge, Set unchanged) {
    Object[] old = new Object[] {merge.matchedInstructions(), merge.notMatchedBySourceInstructions()};
    Object[] made = new Object[] {defaulted((Seq) old[0], unchanged), defaulted((Seq) old[1], unchanged)};
    return (LogicalPlan) Trees.replaced(merge, old, made);
  }

  private static Seq defaulted(Seq instructions, Set unchanged) {
    List made = new ArrayList();
    for (int i = 0; i < instructions.size(); i++) {
      TreeNode instruction = (TreeNode) instructions.apply(i);
      if (instruction instanceof MergeRows.Keep) {
        Seq output = ((MergeRows.Keep) instruction).output();
        if (ChangedColumns.isUpdate(output.head())) {
          instruction = Trees.replaced(instruction, new Object[] {output}, new Object[] {defaults(output, unchanged)});
        }
      }
      made.add(instruction);
    }
    return Trees.seq(made);
  }

  private static Seq defaults(Seq values, Set unchanged) {
    List made = new ArrayList();
    for (int i = 0; i < values.size(); i++) {
      Expression value = (Expression) values.apply(i);
      made.add(unchanged.contains(Integer.valueOf(i)) ? constant(value.dataType()) : value);
    }
    return Trees.seq(made);
  }

  /** Not null, which columns without nulls would not take. */
  private static Expression constant(DataType type) {
    try {
      return (Expression) Literal.class.getMethod("default", new Class[] {DataType.class}).invoke(null, new Object[] {type});
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException("this version of Spark has no default for " + type.sql(), e);
    }
  }

  /** Some columns of the query, with a scan of the columns that they need. */
  private static LogicalPlan narrowed(LogicalPlan query, Seq output) {
    LogicalPlan pruned = (LogicalPlan) ColumnPruning$.MODULE$.apply(new Project(output, query));
    return (LogicalPlan) CollapseProject$.MODULE$.apply(pruned).transformDown(new Narrowing());
  }

  private static final class Narrowing extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      if (!(plan instanceof Project)) return false;
      DataSourceV2ScanRelation relation = relation(((Project) plan).child());
      return relation != null && used((Project) plan, relation).size() < relation.output().size();
    }

    public Object apply(Object plan) {
      DataSourceV2ScanRelation relation = relation(((Project) plan).child());
      List output = used((Project) plan, relation);
      return ((Project) plan).transformUp(new Exchange(relation, LanceScan.narrowed(relation, output)));
    }

    /** The scan of the target, below filters. */
    private static DataSourceV2ScanRelation relation(LogicalPlan plan) {
      if (plan instanceof Filter) return relation(((Filter) plan).child());
      return plan instanceof DataSourceV2ScanRelation && Joins.isTarget(plan) ? (DataSourceV2ScanRelation) plan : null;
    }

    private static List used(Project project, DataSourceV2ScanRelation relation) {
      AttributeSet used = project.references();
      for (LogicalPlan below = project.child(); below instanceof Filter; below = ((Filter) below).child()) {
        used = used.$plus$plus(below.references());
      }
      List found = new ArrayList();
      for (int i = 0; i < relation.output().size(); i++) {
        if (used.contains((Attribute) relation.output().apply(i))) found.add(relation.output().apply(i));
      }
      return found;
    }
  }

  /** Gathers rows whose addresses agree except for these bits, in order. Rows without one stay with those of their task. */
  private static LogicalPlan gathered(LogicalPlan query, Expression address) {
    Expression block = new ShiftRight(address, new Literal(Integer.valueOf(BLOCK_BITS), IntegerType$.MODULE$));
    Expression task = new BitwiseNot(new Cast(new SparkPartitionID(), LongType$.MODULE$, Option.empty()));
    Seq none = (Seq) Nil$.MODULE$;
    Expression first = new Coalesce(Trees.seq(Arrays.asList(new Object[] {block, task})));
    Alias place = new Alias(first, "__lance_place", NamedExpression$.MODULE$.newExprId(), none, Option.empty(), none);
    LogicalPlan placed = new Project((Seq) query.output().appended(place), query);
    Seq by = Trees.seq(Arrays.asList(new Object[] {place.toAttribute()}));
    LogicalPlan together = new RepartitionByExpression(by, placed, Option.empty(), Option.empty());
    Seq order = Trees.seq(Arrays.asList(new Object[] {new SortOrder(
        address, (SortDirection) Ascending$.MODULE$, (NullOrdering) NullsFirst$.MODULE$, none)}));
    return new Project(query.output(), new Sort(order, false, together, Option.empty()));
  }
}
