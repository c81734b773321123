package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.internal.SQLConf$;
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

  /** The rows of a scan: the columns of the groups, then those of the aggregates. */
  final StructType schema;

  /** What tasks compute, in the form that connector/read/aggregates.py reads. */
  final String form;

  /** What they read and compute, for people. */
  final String shown;

  private Aggregates(StructType schema, String form, String shown) {
    this.schema = schema;
    this.form = form;
    this.shown = shown;
  }

  static boolean enabled() {
    return "true".equalsIgnoreCase(SQLConf$.MODULE$.get().getConfString(SETTING, "true"));
  }

  /** Returns null if Python does not compute a part of them exactly as Spark does. */
  static Aggregates of(Aggregation aggregation, Facts facts) {
    Values values = new Values(facts);
    StructType schema = new StructType();
    List groups = new ArrayList();
    List functions = new ArrayList();
    Expression[] keys = aggregation.groupByExpressions();
    for (int i = 0; i < keys.length; i++) {
      Value key = values.encode(keys[i]);
      if (key == null || !isOrdered(key.type)) return null;
      groups.add(key.form);
      schema = schema.add("group_" + i, key.type, true);
    }
    AggregateFunc[] all = aggregation.aggregateExpressions();
    for (int i = 0; i < all.length; i++) {
      Value argument = all[i] instanceof CountStar ? null : values.encode(all[i].children()[0]);
      DataType type = type(all[i], argument);
      if (type == null) return null;
      functions.add(Arrays.asList(new Object[] {name(all[i]), argument == null ? null : argument.form}));
      schema = schema.add("aggregate_" + i, type, true);
    }
    List forms = new ArrayList(groups);
    forms.addAll(functions);
    Map form = new LinkedHashMap();
    form.put("groups", groups);
    form.put("functions", functions);
    StructType columns = Values.columns(facts.schema(), forms);
    form.put("columns", columns.json());
    String shown = columns.simpleString() + ", groups: " + Arrays.toString(keys) + ", aggregates: " + Arrays.toString(all);
    return new Aggregates(schema, Python.json(form), shown);
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

  private static boolean isOrdered(DataType type) {
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
  private static DataType sum(DataType type) {
    if (Predicates.isWhole(type)) return DataTypes.LongType;
    if (type instanceof DoubleType || type instanceof FloatType) return DataTypes.DoubleType;
    return type instanceof DecimalType && ((DecimalType) type).precision() >= FEWEST_DIGITS ? type : null;
  }

  /**
   * Whether an average is to be computed by Spark. Spark offers it as a sum and a count, and a sum of bigint overflows
   * where its average, which is computed in doubles, does not. Bounds of the column may rule that out.
   */
  static boolean mayOverflow(Aggregation aggregation, Map options, Facts facts) {
    AggregateFunc[] all = aggregation.aggregateExpressions();
    for (int i = 0; i < all.length; i++) {
      if (!(all[i] instanceof Avg)) continue;
      Expression operand = all[i].children()[0];
      Value argument = new Values(facts).encode(operand);
      if (argument != null && argument.type instanceof LongType && !isBounded(operand, options, facts)) return true;
    }
    return false;
  }

  private static boolean isBounded(Expression operand, Map options, Facts facts) {
    if (!(operand instanceof NamedReference)) return false;
    String[] path = ((NamedReference) operand).fieldNames();
    if (path.length != 1) return false;
    StructType column = new StructType().add(path[0], DataTypes.LongType, true);
    Map bounds = Python.askDriver("bounds", options, column);
    Map known = bounds == null ? null : (Map) bounds.get(path[0]);
    if (known == null || !known.containsKey("min")) return false;
    if (known.get("min") == null) return true;
    double most = Math.max(Math.abs(Double.parseDouble(known.get("min").toString())),
        Math.abs(Double.parseDouble(known.get("max").toString())));
    return most * Math.max(facts.rows(), 1) < Long.MAX_VALUE / 2;
  }
}
