package lance;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SHUFFLE_HASH$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Plans the join of a target table with the rows that change it. Spark sorts both sides unless it can broadcast one, which
 * it cannot where MERGE inserts. A hash table of a much smaller source spares the sort of the target, most of the time of
 * such a MERGE. The limits of sizes are those of Spark for hash joins. An adaptive execution asks again once it has
 * shuffled a side, so sources of unknown size count, too.
 */
final class Joins {
  private static final long DEFAULT_BYTES = 10 << 20;
  private static final Set BROADCASTS = new HashSet(Arrays.asList(new String[] {"Inner", "LeftOuter", "LeftSemi",
      "LeftAnti"}));

  private Joins() {}

  /** Returns null for all plans that Spark plans best itself. */
  static SparkPlan plan(SparkSession session, LogicalPlan plan) {
    if (!(plan instanceof Join)) return null;
    Join join = (Join) plan;
    if (isHinted(join.hint()) || join.condition().isEmpty() || !isTarget(join.left()) || isTarget(join.right())) return null;
    if (!suits(join, SQLConf$.MODULE$.get())) return null;
    JoinHint hint = new JoinHint(
        join.hint().leftHint(), Option.apply(new HintInfo(Option.apply(SHUFFLE_HASH$.MODULE$))));
    Join hinted = new Join(join.left(), join.right(), join.joinType(), join.condition(), hint);
    return (SparkPlan) session.sessionState().planner().JoinSelection().apply(hinted).head();
  }

  /** Whether the user has chosen a join. Spark's own hint only keeps the target of a MERGE from being broadcast. */
  private static boolean isHinted(JoinHint hint) { return isChosen(hint.rightHint()) || isChosen(hint.leftHint()); }

  private static boolean isChosen(Option hint) {
    Option strategy = hint.isDefined() ? ((HintInfo) hint.get()).strategy() : hint;
    return strategy.isDefined() && !strategy.get().toString().startsWith("no_");
  }

  private static boolean suits(Join join, SQLConf conf) {
    BigInteger source = bytes(join.right());
    long broadcast = conf.autoBroadcastJoinThreshold();
    boolean isBroadcast = source.compareTo(BigInteger.valueOf(broadcast)) <= 0;
    if (isBroadcast && BROADCASTS.contains(join.joinType().toString())) return false;
    BigInteger most = BigInteger.valueOf(broadcast > 0 ? broadcast : DEFAULT_BYTES)
        .multiply(BigInteger.valueOf(conf.numShufflePartitions()));
    BigInteger times = BigInteger.valueOf(((Number) conf.getConf(SQLConf$.MODULE$.SHUFFLE_HASH_JOIN_FACTOR())).longValue());
    return source.compareTo(most) < 0 && source.multiply(times).compareTo(bytes(join.left())) <= 0;
  }

  /**
   * Whether a join may spread many rows of the target over tasks. It leaves them in place if it can broadcast the source.
   * Where a small source also inserts, only the rows that it matches are shuffled; see MatchedRows.
   */
  static boolean scatters(LogicalPlan plan) {
    if (plan instanceof Join && isTarget(((Join) plan).left())) {
      Join join = (Join) plan;
      String type = join.joinType().toString();
      return !isBroadcast(join.right()) || !(BROADCASTS.contains(type) || type.equals("RightOuter")) || scatters(join.left());
    }
    return plan.children().size() == 1 && scatters((LogicalPlan) plan.children().head());
  }

  static BigInteger bytes(LogicalPlan plan) { return plan.stats().sizeInBytes().bigInteger(); }

  /** Whether Spark broadcasts a side of this size. */
  static boolean isBroadcast(LogicalPlan plan) {
    return bytes(plan).compareTo(BigInteger.valueOf(SQLConf$.MODULE$.get().autoBroadcastJoinThreshold())) <= 0;
  }

  /** Whether rows of the table that a DELETE, UPDATE or MERGE changes are among those of a plan. */
  static boolean isTarget(LogicalPlan plan) {
    if (plan instanceof LogicalQueryStage) return isTarget(((LogicalQueryStage) plan).logicalPlan());
    if (plan instanceof DataSourceV2ScanRelation) {
      Object scan = ((DataSourceV2ScanRelation) plan).scan();
      return scan instanceof LanceScan && ((LanceScan) scan).isRowLevel();
    }
    Seq children = plan.children();
    for (int i = 0; i < children.size(); i++) if (isTarget((LogicalPlan) children.apply(i))) return true;
    return false;
  }
}
