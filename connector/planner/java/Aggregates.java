package lance;

import java.util.Arrays;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;

/** Groups and aggregates that tasks compute as far as they can: Spark adds up the rows of all tasks. */
final class Aggregates {
  private static final String SETTING = "spark.lance.planner.aggregates.enabled";
  private static final int FEWEST_DIGITS = 5;

  /** Number of digits that Spark's sums of decimals have in addition to those of the decimals. */
  private static final int SUM_DIGITS = 10;

  /** The rows of a scan: the columns of the groups, then those of the aggregates. */
  final StructType schema;

  /** What tasks compute, in the form that connector/read/aggregates.py reads. */
  final String form;

  /** What they read and compute, for people. */
  final String shown;

  /** Number of the columns of groups. */
  final int groups;

  /** Those of them that are columns of the table, under their own names. */
  final Set keys;

  Aggregates(StructType schema, int groups, Set keys, String form, String shown) {
    this.schema = schema;
    this.groups = groups;
    this.keys = keys;
    this.form = form;
    this.shown = shown;
  }

  static boolean enabled() { return DefaultSource.isOn(SETTING); }

  /** Returns null if Python does not compute a part of them exactly as Spark does. */
  static Aggregates of(Aggregation aggregation, Facts facts) {
    AggregateForm form = new AggregateForm(facts);
    Expression[] keys = aggregation.groupByExpressions();
    for (int i = 0; i < keys.length; i++) if (form.addGroup(form.values.encode(keys[i])) == null) return null;
    AggregateFunc[] all = aggregation.aggregateExpressions();
    for (int i = 0; i < all.length; i++) {
      Value argument = all[i] instanceof CountStar ? null : form.values.encode(all[i].children()[0]);
      DataType type = type(all[i], argument);
      if (type == null) return null;
      form.addFunction(name(all[i]), argument == null ? new Value[0] : new Value[] {argument}, new DataType[] {type});
    }
    return form.made(Arrays.toString(keys), Arrays.toString(all));
  }

  /** Groups of equal rows; null if Python does not compare a column as Spark does, or less strictly. */
  static Aggregates distinct(StructType columns, Facts facts) {
    Expression[] keys = new Expression[columns.length()];
    for (int i = 0; i < keys.length; i++) {
      DataType type = columns.apply(i).dataType();
      if (type instanceof DoubleType || type instanceof FloatType) return null;
      keys[i] = Expressions.column(LanceScan.quoted(columns.apply(i).name()));
    }
    return keys.length == 0 ? null : of(new Aggregation(new AggregateFunc[0], keys), facts);
  }

  /** Whether Python knows the order of the values of a type. */
  static boolean isOrdered(DataType type) {
    return Predicates.typeName(type) != null && !type.equals(DataTypes.NullType);
  }

  private static String name(AggregateFunc function) {
    if (function instanceof CountStar) return "count_all";
    return function instanceof Count ? "count" : function instanceof Sum ? "sum" : function instanceof Min ? "min" : "max";
  }

  /** The type of the partial values of a function; null if it is not computed. */
  private static DataType type(AggregateFunc function, Value argument) {
    if (function instanceof CountStar) return DataTypes.LongType;
    if (argument == null || !isOrdered(argument.type)) return null;
    if (function instanceof Count) return ((Count) function).isDistinct() ? null : DataTypes.LongType;
    if (function instanceof Sum) return ((Sum) function).isDistinct() ? null : sum(argument.type);
    return function instanceof Min || function instanceof Max ? argument.type : null;
  }

  /**
   * Spark casts partial sums of decimals to the type of the argument, so tasks return sums in parts that fit it. Types
   * of few digits would make many parts.
   */
  static DataType sum(DataType type) {
    if (Predicates.isWhole(type)) return DataTypes.LongType;
    if (type instanceof DoubleType || type instanceof FloatType) return DataTypes.DoubleType;
    return type instanceof DecimalType && ((DecimalType) type).precision() >= FEWEST_DIGITS ? type : null;
  }

  /**
   * Whether an average is left to FirstSteps. Spark offers it as a sum and a count. A sum of bigint overflows where its
   * average, which is computed in doubles, does not. A sum of decimals that overflows fails if the session has ANSI mode;
   * the average may be null, as that of try_avg, or in a view made without ANSI mode.
   */
  static boolean mayOverflow(Aggregation aggregation, Facts facts) {
    AggregateFunc[] all = aggregation.aggregateExpressions();
    for (int i = 0; i < all.length; i++) {
      if (!(all[i] instanceof Avg)) continue;
      Value argument = new Values(facts).encode(all[i].children()[0]);
      if (argument != null && (argument.type instanceof LongType || isFull(argument.type))) return true;
    }
    return false;
  }

  private static boolean isFull(DataType type) {
    return type instanceof DecimalType && ((DecimalType) type).precision() > DecimalType.MAX_PRECISION() - SUM_DIGITS;
  }
}
