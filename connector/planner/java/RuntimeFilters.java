package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint$;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.IntegerType$;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets scans skip the rows whose keys no other input of a join has, before Spark shuffles them.
 *
 * Inputs pass on their keys in the order of their sizes: what is left of a small one shrinks larger ones, whose keys then
 * shrink others (predicate transfer: Yang, Zhao, Yu and Koutris, CIDR 2024). Keys come from a broadcast that the query
 * makes anyway, or from a query of their own if the rows that they spare are estimated to cost more. Spark runs it before
 * the scan, as it does to prune partitions; keys of small tables the driver reads itself. Spark itself offers keys of
 * broadcasts only, and not if all filters of the other side are pushed.
 */
final class RuntimeFilters extends Rule {
  /** More keys than these are not used, and not collected. */
  static final int MAX_KEYS = 1 << 19;

  private static final String SETTING = "spark.lance.planner.runtimeFilters.enabled";
  private static final String DRIVER = "spark.lance.planner.runtimeFilters.driver";
  private static final TreeNodeTag DONE = new TreeNodeTag("lance.runtime_filters");

  /** Microseconds of a processor: for a query, for the use of a broadcast, for what the driver reads, per key, and per row
   * that is kept, that a task groups, and that is looked up. */
  private static final double QUERY = 150000;
  private static final double READ = 4000;
  private static final double BROADCAST = 5000;
  private static final double KEY = 2.5;
  private static final double SHUFFLED = 0.6;
  private static final double RETURNED = 0.1;
  private static final double GROUPED = 0.03;
  private static final double LOOKED_UP = 0.01;
  /** Filters that are estimated to keep more of the rows are not worth their risk, nor are gains below so many costs. */
  private static final double MAX_KEPT = 0.5;
  private static final double MIN_GAIN = 2;
  /** Keys that many inputs have to be read for are not passed on. */
  private static final int MAX_SOURCES = 32;

  public TreeNode apply(TreeNode given) {
    LogicalPlan plan = (LogicalPlan) given;
    if (plan.getTagValue(DONE).isDefined() || !isEnabled() || plan.isStreaming() || Joins.isTarget(plan)) return plan;
    LogicalPlan made = filtered(plan);
    made.setTagValue(DONE, Boolean.TRUE);
    return made;
  }

  private static boolean isEnabled() {
    SQLConf conf = SQLConf$.MODULE$.get();
    return conf.dynamicPartitionPruningEnabled() && !"false".equalsIgnoreCase(conf.getConfString(SETTING, "true"));
  }

  /** Whether keys are used wherever that is right, whatever they cost: tests want that of small tables. */
  private static boolean isForced() { return "always".equalsIgnoreCase(SQLConf$.MODULE$.get().getConfString(SETTING, "true")); }

  /** Whether the driver may read keys. */
  private static boolean reads() { return !"false".equalsIgnoreCase(SQLConf$.MODULE$.get().getConfString(DRIVER, "true")); }

  private static LogicalPlan filtered(LogicalPlan plan) {
    List inputs = JoinGraph.inputs(plan);
    if (inputs.isEmpty()) return plan;
    Set repeated = repeated(plan);
    for (int i = 0; i < inputs.size(); i++) consider((Input) inputs.get(i), repeated);
    plan.invalidateStatsCache();  // Samples have told more about them.
    for (Input next = smallest(inputs); next != null; next = smallest(inputs)) {
      next.isDone = true;
      if ((isForced() || next.isSelective && next.rows <= MAX_KEYS) && next.sources <= MAX_SOURCES) transfer(next);
    }
    Map found = new IdentityHashMap();
    for (int i = 0; i < inputs.size(); i++) {
      Input input = (Input) inputs.get(i);
      if (!input.filters.isEmpty()) found.put(input.node, input);
    }
    if (found.isEmpty()) return plan;
    Removal removal = new Removal(inputs);
    for (int i = 0; i < inputs.size(); i++) removal.sides((Input) inputs.get(i));
    LogicalPlan rest = (LogicalPlan) plan.transformDown(removal);
    return (LogicalPlan) rest.transformUpWithSubqueries(new Insertion(found));
  }

  /** Scans that a plan has more than once: Spark runs equal ones once, as long as they are equal. */
  private static Set repeated(LogicalPlan plan) {
    Map nodes = new IdentityHashMap();
    Set once = new HashSet();
    Set repeated = new HashSet();
    collect(plan, nodes, once, repeated);
    Seq below = plan.subqueriesAll();
    for (int i = 0; i < below.size(); i++) {
      if (isPruning((LogicalPlan) below.apply(i), nodes)) continue;
      collect((LogicalPlan) below.apply(i), nodes, once, repeated);
    }
    return repeated;
  }

  /** Whether Spark has taken a subquery from the plan itself, to prune another part of it. */
  private static boolean isPruning(LogicalPlan plan, Map nodes) {
    if (plan.children().isEmpty()) return nodes.containsKey(plan);
    for (int i = 0; i < plan.children().size(); i++) {
      if (!isPruning((LogicalPlan) plan.children().apply(i), nodes)) return false;
    }
    return true;
  }

  private static void collect(LogicalPlan plan, Map nodes, Set once, Set repeated) {
    nodes.put(plan, Boolean.TRUE);
    LanceScan scan = Input.scan(plan);
    if (scan != null && !once.add(scan)) repeated.add(scan);
    for (int i = 0; i < plan.children().size(); i++) collect((LogicalPlan) plan.children().apply(i), nodes, once, repeated);
  }

  /** Keeps the edges of an input that lead to what can be filtered. */
  private static void consider(Input input, Set repeated) {
    LogicalPlan chain = input.node;
    boolean isRepeatable = input.isRepeatable();
    for (Iterator edges = input.edges.iterator(); edges.hasNext(); ) {
      Edge edge = (Edge) edges.next();
      Input target = edge.target.input;
      boolean isTaken = isSmall(target) || isFilterable(target, edge.target.column, repeated);
      if (!isRepeatable || !isTaken) edges.remove();
      else chain = edge.source.chain;
    }
    input.estimate(chain);
  }

  private static boolean isSmall(Input input) { return input.isSmall() && !isForced(); }

  private static boolean isFilterable(Input target, AttributeReference column, Set repeated) {
    LanceScan scan = target.scan();
    if (scan == null || repeated.contains(scan)) return false;
    NamedReference[] columns = scan.filterAttributes();
    for (int i = 0; i < columns.length; i++) {
      if (Arrays.equals(columns[i].fieldNames(), new String[] {column.name()})) return true;
    }
    return false;
  }

  /** The next to pass on its keys; null if there is none. Others stay open to be filtered. */
  private static Input smallest(List inputs) {
    Input found = null;
    for (int i = 0; i < inputs.size(); i++) {
      Input input = (Input) inputs.get(i);
      boolean isSource = !input.isDone && !input.edges.isEmpty();
      if (isSource && (found == null || input.rows < found.rows)) found = input;
    }
    return found;
  }

  /** Chooses the inputs that the keys of another shrink. */
  private static void transfer(Input source) {
    List rest = new ArrayList();
    for (int i = 0; i < source.edges.size(); i++) {
      Edge edge = (Edge) source.edges.get(i);
      source.edges.addAll(edge.beyond());
      if (edge.target.input.isDone || source.isOf(edge.target.input) || kept(edge) > MAX_KEPT && !isForced()) continue;
      if (isSmall(edge.target.input)) edge.target.input.shrink(edge, edge.target.input.semijoins, kept(edge));
      else if (isWorthReading(edge)) {
        edge.isRead = true;
        edge.target.input.shrink(edge, edge.target.input.filters, kept(edge));
      } else if (isWorthBroadcast(edge)) edge.target.input.shrink(edge, edge.target.input.filters, kept(edge));
      else rest.add(edge);
    }
    while (!rest.isEmpty()) {
      Place from = ((Edge) rest.get(0)).source;
      List same = new ArrayList();
      double gain = 0;
      for (Iterator edges = rest.iterator(); edges.hasNext(); ) {
        Edge edge = (Edge) edges.next();
        if (edge.source.chain != from.chain || !edge.source.column.equals(from.column)) continue;
        edges.remove();
        if (gain(edge) <= 0 && !isForced()) continue;
        same.add(edge);
        gain += gain(edge);
      }
      if (gain < cost(source) * MIN_GAIN && !isForced()) continue;
      for (int i = 0; i < same.size(); i++) {
        Edge edge = (Edge) same.get(i);
        edge.isQueried = true;
        edge.target.input.shrink(edge, edge.target.input.filters, kept(edge));
      }
      settle(source);
    }
  }

  /** The cost of a query of keys, in microseconds. */
  private static double cost(Input source) {
    return QUERY * (1 + source.semijoins.size()) + source.cost() + source.rows * KEY + costOfSettling(source);
  }

  private static double costOfSettling(Input source) {
    double cost = 0;
    for (int i = 0; i < source.filters.size(); i++) {
      Edge edge = (Edge) source.filters.get(i);
      if (!edge.isQueried && !edge.isRead) cost += cost(edge.source.input);
    }
    return cost;
  }

  /** Keys that a query of keys needs are queried as well: a broadcast of the whole query is out of its reach. */
  private static void settle(Input source) {
    for (int i = 0; i < source.filters.size(); i++) {
      Edge edge = (Edge) source.filters.get(i);
      if (edge.isRead) continue;
      edge.isQueried = true;
      settle(edge.source.input);
    }
  }

  /** The share of the rows of a target that keys are estimated to keep, if neither input has much more of them. */
  private static double kept(Edge edge) {
    Input source = edge.source.input;
    double known = edge.known();
    double rows = known == 0 ? source.read : source.rows / known;
    return Math.min(rows / Math.max(Math.min(source.read, edge.target.input.read), 1), 1);
  }

  /** What is spared by a filter, in microseconds. */
  private static double gain(Edge edge) {
    Input target = edge.target.input;
    boolean isGrouped = target.scan() != null && target.scan().isAggregated();
    // There are about as many groups as the source has keys.
    double returned = isGrouped ? Math.min(target.rows, edge.source.input.read) : target.rows;
    double cost = returned * (edge.target.isShuffled ? SHUFFLED : RETURNED) + (isGrouped ? target.rows * GROUPED : 0);
    return cost * (1 - kept(edge)) - target.read * LOOKED_UP;
  }

  /** Whether the driver reads the keys of an input in less time than they spare. */
  private static boolean isWorthReading(Edge edge) {
    Input source = edge.source.input;
    double cost = READ * source.sources + source.cost();
    boolean isWorth = gain(edge) >= cost * MIN_GAIN || isForced();
    return isWorth && reads() && ReadKeys.areReadable(edge.source);
  }

  /** Whether an input is broadcast as it is, and its keys are of use. */
  private static boolean isWorthBroadcast(Edge edge) {
    Input source = edge.source.input;
    if (edge.side != edge.source.chain || !source.semijoins.isEmpty() || !Joins.isBroadcast(edge.side)) return false;
    double cost = BROADCAST + source.rows * KEY + costOfSettling(source);
    if (gain(edge) < cost * MIN_GAIN && !isForced()) return false;
    settle(source);
    return true;
  }

  /** The keys of an input; each once and no more than one too many, if they may be too many. */
  private static LogicalPlan keys(Place from) {
    Seq keys = Trees.seq(Arrays.asList(new Object[] {from.column}));
    LogicalPlan rows = new Project(keys, narrowed(from.chain, from.input, from.column.references()));
    if (from.input.isCounted() && from.input.read <= MAX_KEYS) return rows;
    LogicalPlan distinct = (LogicalPlan) Trees.made(Aggregate.class, new Object[] {keys, keys, rows});
    Expression most = new Literal(Integer.valueOf(MAX_KEYS + 1), IntegerType$.MODULE$);
    return new GlobalLimit(most, new LocalLimit(most, distinct));
  }

  private static Expression filter(Edge edge) {
    Place from = edge.source;
    if (edge.isQueried) {
      LogicalPlan keys = keys(from);
      return Trees.pruning(edge.target.column, keys, keys.output(), 0, false);
    }
    LogicalPlan side = edge.side;
    if (!from.input.filters.isEmpty()) {
      Map found = new IdentityHashMap();
      found.put(from.input.node, from.input);
      side = (LogicalPlan) side.transformUpWithSubqueries(new Insertion(found));
    }
    return Trees.pruning(edge.target.column, side, edge.keys, edge.position, false);
  }

  /** Over a node the filters that were found for it. */
  private static LogicalPlan filtered(LogicalPlan node, Input input) {
    LogicalPlan found = ReadKeys.filtered(node, input);
    Expression all = null;
    for (int i = 0; i < input.filters.size(); i++) {
      Edge edge = (Edge) input.filters.get(i);
      if (!edge.isRead) all = all == null ? filter(edge) : new And(all, filter(edge));
    }
    return all == null ? found : new Filter(all, found);
  }

  private static LogicalPlan filtered(Expression condition, LogicalPlan plan) {
    return condition == Literal.TrueLiteral() ? plan : new Filter(condition, plan);
  }

  /** A copy of an input, and of what is over it, that reads no columns but the needed ones. */
  private static LogicalPlan narrowed(LogicalPlan plan, Input input, AttributeSet needed) {
    if (plan == input.node) return leaf(input, needed);
    if (plan instanceof Filter) {
      Expression condition = Trees.unpruned(((Filter) plan).condition(), false);
      AttributeSet all = needed.$plus$plus(condition.references());
      return filtered(condition, narrowed(((Filter) plan).child(), input, all));
    }
    Seq list = ((Project) plan).projectList();
    List kept = new ArrayList();
    AttributeSet below = AttributeSet$.MODULE$.empty();
    for (int i = 0; i < list.size(); i++) {
      NamedExpression named = (NamedExpression) list.apply(i);
      if (!needed.contains(named.toAttribute())) continue;
      kept.add(named);
      below = below.$plus$plus(((Expression) named).references());
    }
    return new Project(Trees.seq(kept), narrowed(((Project) plan).child(), input, below));
  }

  private static LogicalPlan leaf(Input input, AttributeSet needed) {
    AttributeSet all = needed;
    for (int i = 0; i < input.filters.size(); i++) {
      Edge edge = (Edge) input.filters.get(i);
      if (!edge.isRead) all = all.$plus$plus(edge.target.column.references());
    }
    for (int i = 0; i < input.semijoins.size(); i++) {
      all = all.$plus$plus(((Edge) input.semijoins.get(i)).target.column.references());
    }
    boolean isNarrow = input.scan() == null || input.scan().isAggregated();
    LogicalPlan rows = filtered(isNarrow ? input.node : narrowed((DataSourceV2ScanRelation) input.node, all), input);
    for (int i = 0; i < input.semijoins.size(); i++) {
      Edge edge = (Edge) input.semijoins.get(i);
      Expression equal = new EqualTo(edge.target.column, edge.source.column);
      LogicalPlan keys = keys(edge.source);
      rows = new Join(rows, keys, (JoinType) LeftSemi$.MODULE$, Option.apply(equal), JoinHint$.MODULE$.NONE());
    }
    return rows;
  }

  private static LogicalPlan narrowed(DataSourceV2ScanRelation relation, AttributeSet needed) {
    List output = new ArrayList();
    for (int i = 0; i < relation.output().size(); i++) {
      if (needed.contains((Attribute) relation.output().apply(i))) output.add(relation.output().apply(i));
    }
    return LanceScan.narrowed(relation, output);
  }

  /**
   * Takes away the filters that Spark offers in case that it broadcasts what it will not, and all of its filters below what it
   * broadcasts for others: they come from the rest of the query, and the broadcast would not be used again.
   */
  private static final class Removal extends AbstractPartialFunction {
    private final Map broadcast = new IdentityHashMap();

    Removal(List inputs) {
      for (int i = 0; i < inputs.size(); i++) {
        List filters = ((Input) inputs.get(i)).filters;
        for (int j = 0; j < filters.size(); j++) {
          Edge edge = (Edge) filters.get(j);
          if (!edge.isQueried && !edge.isRead) note(edge.side);
        }
      }
    }

    private void note(LogicalPlan plan) {
      broadcast.put(plan, Boolean.TRUE);
      for (int i = 0; i < plan.children().size(); i++) note((LogicalPlan) plan.children().apply(i));
    }

    /** Makes broadcasts that filter an input those that the plan will have. */
    void sides(Input input) {
      for (int i = 0; i < input.filters.size(); i++) {
        Edge edge = (Edge) input.filters.get(i);
        if (!edge.isQueried && !edge.isRead) edge.side = (LogicalPlan) edge.side.transformDown(this);
      }
    }

    public boolean isDefinedAt(Object plan) {
      if (!(plan instanceof Filter) || Input.scan(((Filter) plan).child()) == null) return false;
      return condition((Filter) plan) != ((Filter) plan).condition();
    }

    public Object apply(Object plan) { return filtered(condition((Filter) plan), ((Filter) plan).child()); }

    private Expression condition(Filter filter) {
      return Trees.unpruned(filter.condition(), !broadcast.containsKey(filter.child()));
    }
  }

  /** Puts filters over inputs. */
  private static final class Insertion extends AbstractPartialFunction {
    private final Map inputs;

    Insertion(Map inputs) { this.inputs = inputs; }

    public boolean isDefinedAt(Object plan) { return inputs.containsKey(plan); }
    public Object apply(Object plan) { return filtered((LogicalPlan) plan, (Input) inputs.get(plan)); }
  }
}
