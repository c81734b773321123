package lance;

import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.EvalSubqueriesForTimeTravel;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Alias$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Analyzes the time of `lance.t TIMESTAMP AS OF current_timestamp()` before Spark looks for the table.
 *
 * Spark looks for it as soon as its own rules have analyzed the time. Before it does, it takes a name of two parts that
 * begins with that of a data source for a file, and refuses the query. Rules for hints are the only ones that come first.
 */
final class TimeTravel extends Rule {
  private static final Logger LOG = LoggerFactory.getLogger(TimeTravel.class);
  /** The extensions of sessions that have the rule. */
  private static final Set INSTALLED = Collections.newSetFromMap(new WeakHashMap());

  private final SparkSession session;

  private TimeTravel(SparkSession session) { this.session = session; }

  /** Takes part in the analysis of the queries of the active session, and of those made from it. */
  public static synchronized void install() {
    Option active = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
    if (active.isEmpty()) return;
    SparkSession session = (SparkSession) active.get();
    if (!INSTALLED.add(session.extensions())) return;
    session.extensions().injectHintResolutionRule(new AbstractFunction1() {
      public Object apply(Object of) { return new TimeTravel((SparkSession) of); }
    });
    extend(session);
  }

  /** An analyzer has the rules that there were when it was made, and that of the session is made by now. */
  private static void extend(SparkSession session) {
    Analyzer analyzer = session.sessionState().analyzer();
    Seq rules = analyzer.hintResolutionRules();
    for (int i = 0; i < rules.size(); i++) if (rules.apply(i) instanceof TimeTravel) return;
    try {
      Field field = analyzer.getClass().getDeclaredField("hintResolutionRules");
      field.setAccessible(true);
      field.set(analyzer, rules.appended(new TimeTravel(session)));
    } catch (ReflectiveOperationException e) {
      LOG.warn("lance.t TIMESTAMP AS OF takes constants only", e);
    }
  }

  public TreeNode apply(TreeNode plan) {
    if (!plan.containsPattern(TreePattern.RELATION_TIME_TRAVEL())) return plan;
    return (TreeNode) ((LogicalPlan) plan).resolveOperators(new Analysis());
  }

  private final class Analysis extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      if (!(plan instanceof RelationTimeTravel)) return false;
      RelationTimeTravel relation = (RelationTimeTravel) plan;
      if (relation.timestamp().isEmpty() || !(relation.relation() instanceof UnresolvedRelation)) return false;
      Seq name = ((UnresolvedRelation) relation.relation()).multipartIdentifier();
      return name.size() == 2 && Python.NAME.equalsIgnoreCase((String) name.head())
          && !((Expression) relation.timestamp().get()).resolved();
    }

    public Object apply(Object plan) {
      RelationTimeTravel relation = (RelationTimeTravel) plan;
      Expression time = analyzed((Expression) relation.timestamp().get());
      if (time == null) return plan;
      RelationTimeTravel analyzed = relation.copy(relation.relation(), Option.apply(time), relation.version());
      return new EvalSubqueriesForTimeTravel().apply(analyzed);
    }
  }

  /** Null for times that Spark cannot analyze: it says why, where it comes to them. */
  private Expression analyzed(Expression time) {
    Alias$ alias = Alias$.MODULE$;
    Alias named = alias.apply(time, "time", alias.apply$default$3(time, "time"), alias.apply$default$4(time, "time"),
        alias.apply$default$5(time, "time"), alias.apply$default$6(time, "time"));
    Seq columns = (Seq) ((Seq) Nil$.MODULE$).appended(named);
    try {
      Project query = new Project(columns, new OneRowRelation());
      LogicalPlan found = (LogicalPlan) session.sessionState().analyzer().execute(query);
      return found.resolved() ? ((Alias) found.expressions().head()).child() : null;
    } catch (Exception e) {
      if (e instanceof AnalysisException) return null;
      throw e;
    }
  }
}
