package lance;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.CentralMomentAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Covariance;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.PearsonCorrelation;
import org.apache.spark.sql.catalyst.expressions.aggregate.PercentileBase;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.util.V2ExpressionBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * States of Spark's own functions after the rows of a task, as Python computes them. Spark merges them, so they follow its
 * functions in all: averages of bigint are computed in doubles, sums of decimals have ten more digits than these.
 */
final class States {
  private static final String[] MOMENTS = {"variance", "skewness", "kurtosis"};
  private static final int FEWEST_MOMENTS = 3;

  /** The columns of the scan: those of the groups, then those of the states. */
  final List columns = new ArrayList();
  private final Facts facts;
  private final AggregateForm form;
  private final List substitutions;
  private final List shownGroups = new ArrayList();
  private final List shownFunctions = new ArrayList();
  private final Map shownValues = new IdentityHashMap();

  /** Parameters are what is known of the table, and what stands for columns of the operators above the scan, in turn. */
  States(Facts facts, List substitutions) {
    this.facts = facts;
    this.form = new AggregateForm(facts);
    this.substitutions = substitutions;
  }

  Aggregates made() { return form.made(shownGroups.toString(), shownFunctions.toString()); }

  /** Returns null if Python does not compute the expression exactly as Spark does. */
  private Value value(Expression expression) {
    Expression replaced = expression;
    for (int i = 0; i < substitutions.size(); i++) {
      replaced = (Expression) replaced.transform((Substitution) substitutions.get(i));
    }
    Option built = new V2ExpressionBuilder(replaced, false).build();
    if (built.isEmpty()) return null;
    Value value = new Values(facts, replaced).encode((org.apache.spark.sql.connector.expressions.Expression) built.get());
    if (value == null || !value.type.equals(replaced.dataType()) || !Aggregates.isOrdered(value.type)) return null;
    shownValues.put(value, built.get());
    return value;
  }

  private AttributeReference column(String name, DataType type) {
    AttributeReference made = new AttributeReference(
        name, type, true, Metadata.empty(), NamedExpression$.MODULE$.newExprId(), (Seq) Nil$.MODULE$);
    columns.add(made);
    return made;
  }

  /** The column of a group; null if rows cannot be grouped. */
  Expression group(Expression expression) {
    Value value = value(expression);
    if (value == null) return null;
    shownGroups.add(shownValues.get(value));
    return column(form.addGroup(value), value.type);
  }

  /** The state of a function; null if it is not computed. */
  List state(AggregateFunction function) {
    if (function instanceof Count && isOfRows((Count) function)) {
      return of("count_all", new Value[0], DataTypes.LongType, 1);
    }
    if (function instanceof PercentileBase) return counts((PercentileBase) function);
    boolean isUnscaled = function.children().head() instanceof UnscaledValue;
    Value[] arguments = arguments(isUnscaled ? ((UnscaledValue) function.children().head()).children() : function.children());
    if (arguments == null) return null;
    int size = function.aggBufferAttributes().size();
    if (function instanceof Covariance) return of("covariance", arguments, DataTypes.DoubleType, size);
    if (function instanceof PearsonCorrelation) return of("correlation", arguments, DataTypes.DoubleType, size);
    if (arguments.length != 1) return null;
    int moments = size - FEWEST_MOMENTS;
    if (function instanceof CentralMomentAgg && moments >= 0 && moments < MOMENTS.length) {
      return of(MOMENTS[moments], arguments, DataTypes.DoubleType, size);
    }
    if (function instanceof Count) return of("count", arguments, DataTypes.LongType, 1);
    if (function instanceof Min || function instanceof Max) {
      return of(function instanceof Min ? "min" : "max", arguments, arguments[0].type, 1);
    }
    boolean isAverage = function instanceof Average && size == 2;
    if (!(function instanceof Sum || isAverage)) return null;
    DataType type = ((Attribute) function.aggBufferAttributes().head()).dataType();
    Expression sum = isUnscaled ? unscaledSum(arguments[0], type) : sum(arguments[0], type);
    if (sum == null) return null;
    if (isAverage) {
      Object count = of("count", arguments, DataTypes.LongType, 1).get(0);
      return Arrays.asList(new Object[] {or0(sum, type), count});
    }
    boolean isDecimal = type instanceof DecimalType;
    if (size != (isDecimal ? 2 : 1)) return null;
    return Arrays.asList(isDecimal ? new Object[] {or0(sum, type), new IsNull(sum)} : new Object[] {sum});
  }

  /** How often each value occurs, in the bytes in which tasks exchange it. */
  private List counts(PercentileBase function) {
    DataType type = function.child().dataType();
    boolean isKnown = Predicates.isWhole(type) || type instanceof FloatType || type instanceof DoubleType
        || type instanceof DecimalType && ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS();
    Expression weight = function.frequencyExpression();
    boolean isWeighted = !(weight instanceof Literal) || !Long.valueOf(1).equals(((Literal) weight).value());
    if (!isKnown || isWeighted || !isExchanged(function)) return null;
    Value argument = value(function.child());
    return argument == null ? null : of("value_counts", new Value[] {argument}, DataTypes.BinaryType, 1);
  }

  /** Whether a map with one entry has the bytes that Python writes. */
  private static boolean isExchanged(PercentileBase function) {
    byte[] entry = ByteBuffer.allocate(32).putInt(24).putLong(0).putLong(Long.reverseBytes(5)).putLong(Long.reverseBytes(3))
        .putInt(-1).array();
    try {
      return Arrays.equals((byte[]) function.serialize(function.deserialize(entry)), entry);
    } catch (RuntimeException e) {
      return false;
    }
  }

  private static boolean isOfRows(Count count) {
    Object argument = count.children().head();
    return count.children().size() == 1 && argument instanceof Literal && ((Literal) argument).value() != null;
  }

  private Value[] arguments(Seq children) {
    Value[] found = new Value[children.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = value((Expression) children.apply(i));
      if (found[i] == null) return null;
    }
    return found;
  }

  /** A function with a result of some columns of one type. */
  private List of(String name, Value[] arguments, DataType type, int size) {
    DataType[] types = new DataType[size];
    Arrays.fill(types, type);
    form.addFunction(name, arguments, types);
    String shown = "";
    for (int i = 0; i < arguments.length; i++) shown += (i == 0 ? "" : ", ") + shownValues.get(arguments[i]);
    shownFunctions.add(arguments.length == 0 ? "COUNT(*)" : name.toUpperCase() + "(" + shown + ")");
    List found = new ArrayList();
    for (int i = 0; i < size; i++) found.add(column("state_" + columns.size(), type));
    return found;
  }

  /** A sum of a type, null if there is no value; null if Python does not compute it. */
  private Expression sum(Value argument, DataType type) {
    boolean isKnown = type instanceof LongType ? Predicates.isWhole(argument.type)
        : type instanceof DoubleType || type instanceof DecimalType;
    Value summed = type instanceof LongType ? argument : form.values.cast(argument, type);
    if (!isKnown || summed == null || !type.equals(Aggregates.sum(summed.type))) return null;
    shownValues.put(summed, shownValues.get(argument));
    return (Expression) of("sum", new Value[] {summed}, type, 1).get(0);
  }

  /** A sum of decimals as a whole number: Spark adds decimals of few digits so. */
  private Expression unscaledSum(Value argument, DataType type) {
    Expression sum = sum(argument, new DecimalType(Decimal.MAX_LONG_DIGITS(), ((DecimalType) argument.type).scale()));
    if (sum == null) return null;
    return type instanceof LongType ? new UnscaledValue(sum) : Cast$.MODULE$.apply(new UnscaledValue(sum), type, false);
  }

  private static Literal zero(DataType type) {
    if (type instanceof DoubleType) return new Literal(Double.valueOf(0), type);
    return new Literal(new Decimal().set(0L, ((DecimalType) type).precision(), ((DecimalType) type).scale()), type);
  }

  private static Expression or0(Expression sum, DataType type) {
    return new Coalesce(Trees.seq(Arrays.asList(new Object[] {sum, zero(type)})));
  }
}
