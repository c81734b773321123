package lance;

import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * The checks of streams whose options are those of readStream.table(), which Spark gives to a table in the thread of the
 * query only. As a part of the analysis of a plan they raise what is wrong in table() and in start().
 */
final class StreamChecks extends AbstractFunction1 {
  private static final Logger LOG = LoggerFactory.getLogger(StreamChecks.class);

  private StreamChecks() {}

  /** Takes part in the analysis of the active session. If that is impossible, the queries end with these errors. */
  static synchronized void install() {
    Option active = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
    if (active.isEmpty()) return;
    Analyzer analyzer = ((SparkSession) active.get()).sessionState().analyzer();
    Seq rules = analyzer.extendedCheckRules();
    for (int i = 0; i < rules.size(); i++) if (rules.apply(i) instanceof StreamChecks) return;
    try {
      Field field = analyzer.getClass().getDeclaredField("extendedCheckRules");
      field.setAccessible(true);
      field.set(analyzer, rules.appended(new StreamChecks()));
    } catch (ReflectiveOperationException e) {
      LOG.warn("options of readStream.table() are checked when the query runs", e);
    }
  }

  public Object apply(Object given) {
    LogicalPlan plan = (LogicalPlan) given;
    if (!plan.isStreaming() || !LanceStream.isOfStreams()) return BoxedUnit.UNIT;
    Seq leaves = plan.collectLeaves();
    for (int i = 0; i < leaves.size(); i++) {
      if (leaves.apply(i) instanceof StreamingRelationV2) check((StreamingRelationV2) leaves.apply(i));
    }
    return BoxedUnit.UNIT;
  }

  /** Those that are the options of the table itself, too, have been checked with it. */
  private static void check(StreamingRelationV2 relation) {
    if (!(relation.table() instanceof LanceTable)) return;
    LanceTable table = (LanceTable) relation.table();
    Map own = Python.merged(table.options, Collections.emptyMap());
    Map given = relation.extraOptions().asCaseSensitiveMap();
    Map all = Python.merged(table.options, given);
    if (!all.equals(own)) Python.demand("check_stream", all, table.schema());
    QueryOptions.check(table.options, given);
  }
}
