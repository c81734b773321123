package lance;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Plans aggregations without Spark's own first step, which each task makes before rows are shuffled: the scan groups the
 * rows of a task. Spark offers sources few functions, so others are taken from its own plan.
 */
final class FirstSteps {
  private FirstSteps() {}

  /** Returns null for plans that Spark plans itself. */
  static SparkPlan plan(SparkSession session, LogicalPlan plan) {
    if (!(plan instanceof Aggregate) || plan.isStreaming() || !Aggregates.enabled()) return null;
    LogicalPlan below = ((Aggregate) plan).child();
    List substitutions = new ArrayList();
    for (; below instanceof Project; below = ((Project) below).child()) {
      substitutions.add(Substitution.of(((Project) below).projectList()));
    }
    LanceScan scan = Input.scan(below);
    if (scan == null || !scan.isAggregated() && scan.isBound()) return null;
    Seq planned = session.sessionState().planner().Aggregation().apply(plan);
    if (planned.size() != 1) return null;
    SparkPlan spark = (SparkPlan) planned.head();
    BaseAggregateExec first = first(spark);
    if (first == null) return null;
    SparkPlan made = scan.isAggregated()
        ? passed(first, scan) : grouped(first, (DataSourceV2ScanRelation) below, scan, scan.states(substitutions));
    return made == null ? null : (SparkPlan) spark.transformDown(new Exchange(first, made));
  }

  /** The step of an aggregation that each task makes of its rows; null if there is none, or it has filters of rows. */
  private static BaseAggregateExec first(SparkPlan plan) {
    while (plan.children().size() == 1 && !(plan.children().head() instanceof PlanLater)) {
      plan = (SparkPlan) plan.children().head();
    }
    if (plan.children().size() != 1 || !(plan instanceof BaseAggregateExec)) return null;
    BaseAggregateExec first = (BaseAggregateExec) plan;
    Seq functions = first.aggregateExpressions();
    for (int i = 0; i < functions.size(); i++) {
      AggregateExpression function = (AggregateExpression) functions.apply(i);
      if (function.mode() != Partial$.MODULE$ || function.isDistinct() || function.filter().isDefined()) return null;
    }
    return first.requiredChildDistributionExpressions().isDefined() ? null : first;
  }

  /** Has the scan compute what the first step does; null if it cannot. */
  private static SparkPlan grouped(
      BaseAggregateExec first, DataSourceV2ScanRelation relation, LanceScan scan, States states) {
    Seq output = ((SparkPlan) first).output();
    Seq groups = first.groupingExpressions();
    Seq functions = first.aggregateExpressions();
    List columns = new ArrayList();
    for (int i = 0; i < groups.size(); i++) {
      Object group = groups.apply(i);
      Expression found = states.group(group instanceof Alias ? ((Alias) group).child() : (Expression) group);
      if (found == null) return null;
      columns.add(named(found, output.apply(i)));
    }
    for (int i = 0; i < functions.size(); i++) {
      List state = states.state(((AggregateExpression) functions.apply(i)).aggregateFunction());
      if (state == null) return null;
      for (int j = 0; j < state.size(); j++) columns.add(named((Expression) state.get(j), output.apply(columns.size())));
    }
    Aggregates made = states.made();
    LogicalPlan rows = scan.grouped(made.schema, made).in(relation, Trees.seq(states.columns));
    return new ProjectExec(Trees.seq(columns), new PlanLater(rows));
  }

  /** What the first step makes of groups of one row each; null if groups may have more, or if it cannot be told. */
  private static SparkPlan passed(BaseAggregateExec first, LanceScan scan) {
    Seq groups = first.groupingExpressions();
    Seq functions = first.aggregateExpressions();
    Seq output = ((SparkPlan) first).output();
    if (groups.isEmpty() || groups.size() < scan.groups()) return null;
    List columns = new ArrayList();
    for (int i = 0; i < groups.size(); i++) columns.add(groups.apply(i));
    for (int i = 0; i < functions.size(); i++) {
      AggregateFunction function = ((AggregateExpression) functions.apply(i)).aggregateFunction();
      if (!(function instanceof DeclarativeAggregate)) return null;
      List state = state((DeclarativeAggregate) function);
      for (int j = 0; j < state.size(); j++) columns.add(named((Expression) state.get(j), output.apply(columns.size())));
    }
    return new ProjectExec(Trees.seq(columns), (SparkPlan) ((SparkPlan) first).children().head());
  }

  private static Alias named(Expression value, Object attribute) {
    NamedExpression name = (NamedExpression) attribute;
    Seq none = (Seq) Nil$.MODULE$;
    return new Alias(value, name.name(), name.exprId(), none, Option.empty(), none);
  }

  /** The state of a function after one row. */
  private static List state(DeclarativeAggregate function) {
    Seq attributes = function.aggBufferAttributes();
    Substitution initial = new Substitution();
    for (int i = 0; i < attributes.size(); i++) {
      initial.put((NamedExpression) attributes.apply(i), function.initialValues().apply(i));
    }
    List found = new ArrayList();
    for (int i = 0; i < attributes.size(); i++) {
      found.add(((Expression) function.updateExpressions().apply(i)).transform(initial));
    }
    return found;
  }
}
