package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;

/**
 * The inputs of a plan, and the keys by which its joins compare them.
 *
 * The column of a key is followed down to an input. The values that a join sees are among those of the input, so an input
 * of one side has all keys that rows of the other side can match. Rows without such a key change nothing if the join drops
 * them, and if all operators between pass on rows one by one: the filters that may go down are those that Spark pushes.
 */
final class JoinGraph {
  private static final List DROPS_LEFT = names("Inner LeftSemi RightOuter");
  private static final List DROPS_RIGHT = names("Inner LeftSemi LeftOuter LeftAnti");
  private static final List PASSES_LEFT = names("Inner Cross LeftSemi LeftAnti LeftOuter");
  private static final List PASSES_RIGHT = names("Inner Cross RightOuter");

  private final Map inputs = new IdentityHashMap();
  /** The same in the order of the plan, on which it depends which of equal ones goes first. */
  private final List ordered = new ArrayList();

  private JoinGraph() {}

  /** Returns the inputs of a plan that are compared by a join, with the edges that start at them. */
  static List inputs(LogicalPlan plan) {
    JoinGraph graph = new JoinGraph();
    graph.visit(plan);
    return graph.ordered;
  }

  private static List names(String joined) { return Arrays.asList(joined.split(" ")); }

  private void visit(LogicalPlan plan) {
    if (plan instanceof Join) connect((Join) plan);
    for (int i = 0; i < plan.children().size(); i++) visit((LogicalPlan) plan.children().apply(i));
  }

  private void connect(Join join) {
    Option found = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (found.isEmpty() || !isDeterministic(join)) return;
    String type = join.joinType().toString();
    Seq left = (Seq) ((Product) found.get()).productElement(1);
    Seq right = (Seq) ((Product) found.get()).productElement(2);
    for (int i = 0; i < left.size(); i++) {
      // Spark broadcasts a side of an outer join only if all rows of the other are returned.
      if (DROPS_LEFT.contains(type)) connect(join.left(), left, join.right(), right, i, !type.equals("RightOuter"));
      if (DROPS_RIGHT.contains(type)) connect(join.right(), right, join.left(), left, i, type.equals("Inner"));
    }
  }

  /** Notes that rows of one side without a key of the other are dropped. */
  private void connect(LogicalPlan side, Seq keys, LogicalPlan other, Seq otherKeys, int position, boolean mayBroadcast) {
    Object key = keys.apply(position);
    Object otherKey = otherKeys.apply(position);
    if (!(key instanceof AttributeReference) || !(otherKey instanceof AttributeReference)) return;
    if (!((Expression) key).dataType().equals(((Expression) otherKey).dataType())) return;
    Place target = target(side, (AttributeReference) key);
    Place source = target == null ? null : source(other, (AttributeReference) otherKey);
    if (source == null || source.input == target.input) return;
    target.isShuffled |= !mayBroadcast || !Joins.isBroadcast(other);
    source.input.edges.add(new Edge(source, target, mayBroadcast ? other : null, otherKeys, position));
  }

  /** Follows a column to the input that has it, on a way that a filter may take. Returns null if there is none. */
  private Place target(LogicalPlan plan, AttributeReference column) {
    if (plan.children().isEmpty()) return leaf(plan, column);
    if (!isDeterministic(plan)) return null;
    AttributeReference below = below(plan, column);
    LogicalPlan child = below == null ? null : child(plan, below);
    if (child == null || !passes(plan, child, below)) return null;
    Place found = target(child, below);
    if (found != null) found.isShuffled |= isShuffled(plan, child);
    return found;
  }

  /** Whether an operator commutes with a filter on a column of a child. */
  private static boolean passes(LogicalPlan plan, LogicalPlan child, AttributeReference column) {
    if (plan instanceof Window) return holds(((Window) plan).partitionSpec(), column);
    if (plan instanceof WindowGroupLimit) return holds(((WindowGroupLimit) plan).partitionSpec(), column);
    if (!(plan instanceof Join)) return true;
    return (child == ((Join) plan).left() ? PASSES_LEFT : PASSES_RIGHT).contains(((Join) plan).joinType().toString());
  }

  private static boolean isShuffled(LogicalPlan plan, LogicalPlan child) {
    if (plan instanceof Join) return !Joins.isBroadcast(child == ((Join) plan).left() ? ((Join) plan).right() : ((Join) plan).left());
    return plan instanceof Aggregate || plan instanceof Window || plan instanceof Sort;
  }

  /** Follows a column to the input that has it, or to the groups that HAVING chooses. Returns null if there is none. */
  private Place source(LogicalPlan plan, AttributeReference column) {
    if (plan.children().isEmpty()) return leaf(plan, column);
    if (isHaving(plan) && plan.deterministic()) return new Place(input(plan), column, plan);
    AttributeReference below = below(plan, column);
    LogicalPlan child = below == null ? null : child(plan, below);
    Place found = child == null ? null : source(child, below);
    boolean isExtended = found != null && found.chain == child && (plan instanceof Project || plan instanceof Filter);
    return isExtended ? new Place(found.input, column, plan) : found;
  }

  private static boolean isHaving(LogicalPlan plan) {
    if (!(plan instanceof Filter) || !Input.isSelective(((Filter) plan).condition())) return false;
    LogicalPlan child = ((Filter) plan).child();
    while (child instanceof Project) child = ((Project) child).child();
    return child instanceof Aggregate;
  }

  private Place leaf(LogicalPlan plan, AttributeReference column) {
    return plan.outputSet().contains(column) ? new Place(input(plan), column, plan) : null;
  }

  private Input input(LogicalPlan node) {
    if (!inputs.containsKey(node)) {
      inputs.put(node, new Input(node));
      ordered.add(inputs.get(node));
    }
    return (Input) inputs.get(node);
  }

  /** The column of a child that a column is; null if it is computed, or if this is not known of the operator. */
  private static AttributeReference below(LogicalPlan plan, AttributeReference column) {
    if (plan instanceof Project) return named(((Project) plan).projectList(), column);
    if (plan instanceof Filter || plan instanceof Join || plan instanceof Sort) return column;
    if (plan instanceof Window || plan instanceof WindowGroupLimit) return column;
    if (!(plan instanceof Aggregate)) return null;
    AttributeReference below = named(((Aggregate) plan).aggregateExpressions(), column);
    return below != null && holds(((Aggregate) plan).groupingExpressions(), below) ? below : null;
  }

  /** The column that one of some expressions renames or passes on; null if it is computed. */
  static AttributeReference named(Seq expressions, AttributeReference column) {
    for (int i = 0; i < expressions.size(); i++) {
      Object named = expressions.apply(i);
      if (!((NamedExpression) named).exprId().equals(column.exprId())) continue;
      Object given = named;
      while (given instanceof Alias) given = ((Alias) given).child();  // Spark names groups that it offers sources twice.
      return given instanceof AttributeReference ? (AttributeReference) given : null;
    }
    return null;
  }

  private static LogicalPlan child(LogicalPlan plan, AttributeReference column) {
    for (int i = 0; i < plan.children().size(); i++) {
      LogicalPlan child = (LogicalPlan) plan.children().apply(i);
      if (child.outputSet().contains(column)) return child;
    }
    return null;
  }

  private static boolean holds(Seq expressions, AttributeReference column) {
    for (int i = 0; i < expressions.size(); i++) if (column.semanticEquals((Expression) expressions.apply(i))) return true;
    return false;
  }

  private static boolean isDeterministic(LogicalPlan node) {
    Seq expressions = node.expressions();
    for (int i = 0; i < expressions.size(); i++) if (!((Expression) expressions.apply(i)).deterministic()) return false;
    return true;
  }
}

/** A column of an input, and projections and filters over the input that still have it. */
final class Place {
  final Input input;
  final AttributeReference column;
  final LogicalPlan chain;
  /** Whether rows are shuffled or sorted on their way. */
  boolean isShuffled;

  Place(Input input, AttributeReference column, LogicalPlan chain) {
    this.input = input;
    this.column = column;
    this.chain = chain;
  }
}

/** That rows of the target without one of the keys of the source are dropped by a join. */
final class Edge {
  final Place source;
  final Place target;
  /** The side of the join that has the source, null if Spark cannot broadcast it; its keys, and which of them this is. */
  LogicalPlan side;
  final Seq keys;
  final int position;
  /** Whether the keys are queried, rather than taken from a broadcast. */
  boolean isQueried;
  /** Whether the driver reads the keys itself, while it plans the scan of the target. */
  boolean isRead;
  /** The estimated share of the rows of the target that its keys keep, once it is chosen. */
  double kept = 1;

  Edge(Place source, Place target, LogicalPlan side, Seq keys, int position) {
    this.source = source;
    this.target = target;
    this.side = side;
    this.keys = keys;
    this.position = position;
  }

  /**
   * The share of the rows of the source that is left by those keys of which the rows of the target are, too: the keys that
   * these lack are known without the source.
   */
  double known() {
    double share = 1;
    List own = source.input.shrunkBy();
    List others = target.input.shrunkBy();
    for (int i = 0; i < own.size(); i++) {
      Edge edge = (Edge) own.get(i);
      if (edge.target.column.semanticEquals(source.column) && edge.isAmong(others, target.column)) share *= edge.kept;
    }
    return share;
  }

  /** Whether some edges have one with the keys of this for a column. */
  private boolean isAmong(List others, AttributeReference column) {
    for (int i = 0; i < others.size(); i++) {
      Edge other = (Edge) others.get(i);
      boolean isSame = other.source.input == source.input && other.source.column.semanticEquals(source.column);
      if (isSame && other.target.column.semanticEquals(column)) return true;
    }
    return false;
  }

  /**
   * Edges to what the target leads to by the same column: once rows without a key are dropped there, its keys are some of
   * these. Those to inputs that the source has edges to, or that are done, are left out.
   */
  List beyond() {
    List found = new ArrayList();
    for (int i = 0; i < target.input.edges.size(); i++) {
      Place next = ((Edge) target.input.edges.get(i)).target;
      if (((Edge) target.input.edges.get(i)).source.column.semanticEquals(target.column) && isNew(next)) {
        found.add(new Edge(source, next, side, keys, position));
      }
    }
    return found;
  }

  private boolean isNew(Place next) {
    if (next.input.isDone) return false;
    for (int i = 0; i < source.input.edges.size(); i++) {
      Place known = ((Edge) source.input.edges.get(i)).target;
      if (known.input == next.input && known.column.semanticEquals(next.column)) return false;
    }
    return true;
  }
}
