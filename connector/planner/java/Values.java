package lance;

import java.math.BigInteger;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Extract;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.collection.immutable.Seq;

/** An expression as a list that connector/read/expressions.py reads, and its type. */
final class Value {
  final List form;
  final DataType type;

  /** Whether it may have no value for some rows: Spark then fails, unless it does not compute it for them. */
  final boolean fails;

  /** Of whole numbers: what they lie between. */
  final BigInteger lowest;
  final BigInteger highest;

  /** A number lies between those of its type. */
  Value(List form, DataType type, boolean fails) { this(form, type, fails, lowest(type), highest(type)); }

  Value(List form, DataType type, boolean fails, BigInteger lowest, BigInteger highest) {
    this.form = form;
    this.type = type;
    this.fails = fails;
    this.lowest = lowest;
    this.highest = highest;
  }

  /** The same whole number, of which more is known. */
  Value between(long lowest, long highest) {
    return new Value(form, type, fails, BigInteger.valueOf(lowest), BigInteger.valueOf(highest));
  }

  static BigInteger lowest(DataType type) {
    return Predicates.isWhole(type) ? BigInteger.ONE.shiftLeft(8 * type.defaultSize() - 1).negate() : null;
  }

  static BigInteger highest(DataType type) {
    return Predicates.isWhole(type) ? lowest(type).not() : null;
  }

  boolean isColumn() { return form.get(0).equals("COLUMN"); }

  /** Whether it is a number that is known, and not zero. */
  boolean isNonzero() {
    if (!form.get(0).equals("LITERAL") || form.get(2) == null) return false;
    return type instanceof DoubleType || type instanceof FloatType
        ? Double.parseDouble((String) form.get(2)) != 0 : lowest != null && lowest.signum() != 0;
  }
}

/**
 * Encodes expressions that Python evaluates exactly as Spark does; null stands for others. Spark translates arithmetic
 * and casts that lose digits only in ANSI mode, so they fail where they have no result.
 */
final class Values {
  private static final List ARITHMETIC = Arrays.asList(new String[] {"+", "-", "*", "/", "%", "&", "|", "^"});
  private static final List PARTS = Arrays.asList(
      new String[] {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAY_OF_YEAR", "DAY_OF_WEEK", "HOUR", "MINUTE"});
  private static final int FIRST_CLOCK_PART = 7;
  /** Of the years that dates have, and of the days of a year. */
  private static final int MOST_YEARS = 6000000;
  private static final int MOST_DAYS = 366;
  private static final Map UNITS = units();
  private static final int DIGITS_OF_DOUBLES = 15;
  /** Of decimals that Spark negates. It rounds longer ones, also for their absolute values. */
  private static final int DIGITS_OF_NEGATIONS = 34;

  private final Facts facts;
  private final Predicates predicates;
  private final boolean isUtc;
  private final boolean hasTypes;
  private final boolean isStored;

  /**
   * For expressions as Spark offers them to sources: these say neither which clock they read nor the types of results,
   * which depend on settings of the session that made them.
   */
  Values(Facts facts) { this(facts, false, false); }

  /** For what an expression of Spark's plan is translated to. */
  Values(Facts facts, org.apache.spark.sql.catalyst.expressions.Expression original) {
    this(facts, isUtc(original), hasTypes(original));
  }

  private Values(Facts facts, boolean isUtc, boolean hasTypes) {
    this.facts = facts;
    this.predicates = new Predicates(facts, this);
    this.isUtc = isUtc;
    this.hasTypes = hasTypes;
    this.isStored = false;
  }

  /** For those in predicates over rows as they are stored, whose numbers may be of other types than Spark sees. */
  Values(Facts facts, Predicates predicates) {
    this.facts = facts;
    this.predicates = predicates;
    this.isUtc = false;
    this.hasTypes = false;
    this.isStored = true;
  }

  private static Map units() {
    String[][] names = {{"YEAR", "YYYY", "YY"}, {"QUARTER"}, {"MONTH", "MON", "MM"}, {"WEEK"}};
    Map found = new HashMap();
    for (int i = 0; i < names.length; i++) {
      for (int j = 0; j < names[i].length; j++) found.put(names[i][j], names[i][0].toLowerCase());
    }
    return found;
  }

  Value encode(Expression e) {
    if (e instanceof NamedReference) return column((NamedReference) e);
    if (e instanceof Cast) return cast(encode(((Cast) e).expression()), ((Cast) e).dataType());
    if (e instanceof Extract) return part((Extract) e);
    if (e instanceof Literal) return constant((Literal) e);
    if (Predicates.isOperation(e)) return of(predicates.encode(e), DataTypes.BooleanType);
    if (!(e instanceof GeneralScalarExpression)) return null;
    String name = ((GeneralScalarExpression) e).name();
    Expression[] operands = e.children();
    if (name.equals("CASE_WHEN")) return choice(operands);
    Value[] values = new Value[operands.length];
    for (int i = 0; i < operands.length; i++) {
      values[i] = seen(encode(operands[i]));
      if (values[i] == null) return null;
    }
    if (ARITHMETIC.contains(name) && values.length == 2) return arithmetic(name, values[0], values[1]);
    return function(name, values, operands);
  }

  private Value constant(Literal literal) {
    Value found = of(predicates.encode(literal), literal.dataType());
    if (found == null || !Predicates.isWhole(found.type) || literal.value() == null) return found;
    long value = ((Number) literal.value()).longValue();
    return found.between(value, value);
  }

  /** A number in the type that Spark sees: it computes with that. */
  private Value seen(Value operand) {
    if (!isStored || operand == null || !operand.isColumn() || !isNumber(operand.type)) return operand;
    return node("CAST", operand.type, new Value[] {operand}, false);
  }

  private static boolean isNumber(DataType type) {
    return Predicates.isWhole(type) || type instanceof DecimalType || type instanceof DoubleType || type instanceof FloatType;
  }

  private static Value of(List form, DataType type) { return form == null ? null : new Value(form, type, false); }

  private Value column(NamedReference reference) {
    List form = predicates.encode(reference);
    DataType type = facts.schema();
    String[] path = reference.fieldNames();
    for (int i = 0; i < path.length && type != null; i++) type = field(type, path[i]);
    return type == null ? null : of(form, type);
  }

  private static DataType field(DataType type, String name) {
    if (!(type instanceof StructType)) return null;
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) if (fields[i].name().equals(name)) return fields[i].dataType();
    return null;
  }

  private static Value node(String name, DataType type, Value[] values, boolean fails) {
    List form = new ArrayList();
    form.add(name);
    form.add(type.simpleString());
    for (int i = 0; i < values.length; i++) {
      form.add(values[i].form);
      fails |= values[i].fails;
    }
    return new Value(form, type, fails);
  }

  private Value arithmetic(String operator, Value left, Value right) {
    boolean isFraction = left.type instanceof DoubleType || left.type instanceof FloatType;
    boolean isWhole = Predicates.isWhole(left.type);
    Value[] both = {left, right};
    if (left.type instanceof DecimalType && right.type instanceof DecimalType) {
      boolean isKnown = hasTypes || fits(operator, (DecimalType) left.type, (DecimalType) right.type);
      DataType type = isKnown ? decimal(operator, left.type, right.type) : null;
      if (type == null) return null;
      return node(operator, type, both, !fits(operator, (DecimalType) left.type, (DecimalType) right.type));
    }
    if (!left.type.equals(right.type)) return null;
    boolean isBits = "&|^".indexOf(operator) >= 0;
    if (isBits) return isWhole ? node(operator, left.type, both, false) : null;
    boolean isDivision = operator.equals("/") || operator.equals("%");
    if (isFraction) return node(operator, left.type, both, isDivision && !right.isNonzero());
    return isWhole && !operator.equals("/") ? whole(operator, left, right) : null;
  }

  /** Arithmetic with whole numbers, which fails if the result may be out of the range of the type. */
  private static Value whole(String operator, Value left, Value right) {
    BigInteger[] ends = new BigInteger[4];
    BigInteger[] of = {left.lowest, left.highest};
    BigInteger[] by = {right.lowest, right.highest};
    for (int i = 0; i < ends.length; i++) {
      if (operator.equals("+")) ends[i] = of[i / 2].add(by[i % 2]);
      else if (operator.equals("-")) ends[i] = of[i / 2].subtract(by[i % 2]);
      else if (operator.equals("*")) ends[i] = of[i / 2].multiply(by[i % 2]);
      else ends[i] = BigInteger.valueOf(i % 2 == 0 ? -1 : 1).multiply(by[i / 2].abs());
    }
    Arrays.sort(ends);
    boolean isRemainder = operator.equals("%");
    boolean fits = ends[0].compareTo(Value.lowest(left.type)) >= 0 && ends[3].compareTo(Value.highest(left.type)) <= 0;
    Value made = node(operator, left.type, new Value[] {left, right}, isRemainder ? !right.isNonzero() : !fits);
    return fits ? new Value(made.form, made.type, made.fails, ends[0], ends[3]) : made;
  }

  /** The type that Spark gives a result: it depends on settings. */
  private static DataType decimal(String operator, DataType left, DataType right) {
    org.apache.spark.sql.catalyst.expressions.Expression one = nothing(left);
    org.apache.spark.sql.catalyst.expressions.Expression other = nothing(right);
    if (operator.equals("+")) return new Add(one, other).dataType();
    if (operator.equals("-")) return new Subtract(one, other).dataType();
    return operator.equals("*") ? new Multiply(one, other).dataType() : null;
  }

  /** Whether decimals have enough digits for all results of an operator. */
  private static boolean fits(String operator, DecimalType left, DecimalType right) {
    int whole = Math.max(left.precision() - left.scale(), right.precision() - right.scale());
    int digits = operator.equals("*") ? left.precision() + right.precision() : whole + Math.max(left.scale(), right.scale());
    return digits < DecimalType.MAX_PRECISION();
  }

  /** Whether the settings of the session give all results the types that they have in an expression. */
  private static boolean hasTypes(org.apache.spark.sql.catalyst.expressions.Expression e) {
    Seq children = e.children();
    for (int i = 0; i < children.size(); i++) {
      if (!hasTypes((org.apache.spark.sql.catalyst.expressions.Expression) children.apply(i))) return false;
    }
    if (!(e instanceof BinaryArithmetic && e.dataType() instanceof DecimalType)) return true;
    BinaryArithmetic operation = (BinaryArithmetic) e;
    DataType left = ((org.apache.spark.sql.catalyst.expressions.Expression) operation.left()).dataType();
    DataType right = ((org.apache.spark.sql.catalyst.expressions.Expression) operation.right()).dataType();
    DataType type = decimal(operation.symbol(), left, right);
    return type == null || type.equals(e.dataType());
  }

  private static org.apache.spark.sql.catalyst.expressions.Expression nothing(DataType type) {
    return new org.apache.spark.sql.catalyst.expressions.Literal(null, type);
  }

  /** A value as another type; null if Python does not cast it exactly as Spark does. */
  Value cast(Value operand, DataType to) {
    if (operand == null) return null;
    if (operand.type.equals(to)) return operand;
    if (Predicates.holds(to, operand.type)) {
      Value held = node("CAST", to, new Value[] {operand}, false);
      boolean isRange = operand.lowest != null && Predicates.isWhole(to);
      return isRange ? new Value(held.form, to, held.fails, operand.lowest, operand.highest) : held;
    }
    Value[] one = {seen(operand)};
    boolean isWhole = Predicates.isWhole(to);
    boolean isFraction = to instanceof DoubleType || to instanceof FloatType;
    if (operand.type instanceof BooleanType) return isWhole ? node("CAST", to, one, false) : null;
    if (isClock(operand.type)) {
      return to instanceof DateType ? node("CAST", to, one, false) : null;
    }
    if (Predicates.isWhole(operand.type) && isFraction) return node("CAST", to, one, false);
    boolean isShort = operand.type instanceof DecimalType && ((DecimalType) operand.type).precision() <= DIGITS_OF_DOUBLES;
    if (isShort && to instanceof DoubleType) return node("CAST", to, one, false);
    if (operand.type instanceof DecimalType && isWhole && isInexact((DecimalType) operand.type, to)) return null;
    boolean isNumber = Predicates.isWhole(operand.type) || operand.type instanceof DecimalType;
    if (isNumber && (isWhole || to instanceof DecimalType)) return node("CAST", to, one, true);
    if (operand.type instanceof DoubleType && to instanceof FloatType) return node("CAST", to, one, false);
    boolean isFractional = operand.type instanceof DoubleType || operand.type instanceof FloatType;
    // Of the doubles out of the range of bigint, Spark casts one to its greatest number.
    return isFractional && isWhole && !(to instanceof LongType) ? node("CAST", to, one, true) : null;
  }

  /**
   * Whether Spark casts decimals to whole numbers by way of doubles, which do not have as many digits; or without ANSI
   * mode, too, because nearly all of them fit: the others then become other numbers or null.
   */
  private static boolean isInexact(DecimalType from, DataType to) {
    boolean isLong = to instanceof LongType;
    if (from.scale() > 0) return from.precision() > DIGITS_OF_DOUBLES && !isLong;
    int digits = (8 * to.defaultSize() - 1) * 3 / 10;
    return from.precision() > digits && from.precision() <= digits + (isLong ? 2 : 1);
  }

  /** Whether every clock of an expression is UTC. A DataFrame or a view keeps the time zone with which it was made. */
  private static boolean isUtc(org.apache.spark.sql.catalyst.expressions.Expression e) {
    if (e instanceof TimeZoneAwareExpression && ((TimeZoneAwareExpression) e).timeZoneId().isDefined()
        && !((TimeZoneAwareExpression) e).zoneId().normalized().equals(ZoneOffset.UTC)) return false;
    Seq children = e.children();
    for (int i = 0; i < children.size(); i++) {
      if (!isUtc((org.apache.spark.sql.catalyst.expressions.Expression) children.apply(i))) return false;
    }
    return true;
  }

  /** Whether hours and days of a type are those of UTC. */
  private boolean isClock(DataType type) {
    return type instanceof TimestampNTZType || type instanceof TimestampType && isUtc;
  }

  private Value part(Extract extract) {
    Value source = encode(extract.source());
    int part = PARTS.indexOf(extract.field());
    if (source == null || part < 0) return null;
    if (part < FIRST_CLOCK_PART ? !(source.type instanceof DateType) : !isClock(source.type)) return null;
    Value made = node((String) PARTS.get(part), DataTypes.IntegerType, new Value[] {source}, false);
    return part == 0 ? made.between(-MOST_YEARS, MOST_YEARS) : made.between(0, MOST_DAYS);
  }

  /** Conditions are predicates. Branches that fail are computed for the rows that take them, as in Spark. */
  private Value choice(Expression[] operands) {
    Value[] values = new Value[operands.length];
    DataType type = null;
    boolean fails = false;
    for (int i = 0; i < operands.length; i++) {
      boolean isCondition = i % 2 == 0 && i + 1 < operands.length;
      values[i] = isCondition ? of(predicates.encode(operands[i]), DataTypes.BooleanType) : seen(encode(operands[i]));
      if (values[i] == null) return null;
      if (isCondition || values[i].type instanceof NullType) continue;
      if (type != null && !type.equals(values[i].type)) return null;
      type = values[i].type;
    }
    return type == null ? null : node("CASE_WHEN", type, values, false);
  }

  private Value function(String name, Value[] values, Expression[] operands) {
    DataType type = values.length == 0 ? null : values[0].type;
    if ((name.equals("-") || name.equals("ABS")) && values.length == 1) {
      if (type instanceof DecimalType && ((DecimalType) type).precision() > DIGITS_OF_NEGATIONS) return null;
      boolean fails = Predicates.isWhole(type) && values[0].lowest.equals(Value.lowest(type));
      return isNumber(type) ? node(name.equals("-") ? "NEGATE" : name, type, values, fails) : null;
    }
    if (name.equals("COALESCE") || name.equals("GREATEST") || name.equals("LEAST")) {
      boolean isLazy = name.equals("COALESCE");
      for (int i = 0; i < values.length; i++) {
        if (!values[i].type.equals(type) || isLazy && values[i].fails) return null;
      }
      return type instanceof BooleanType && !isLazy ? null : node(name, type, values, false);
    }
    if (name.equals("CHAR_LENGTH") && isText(type)) {
      return node(name, DataTypes.IntegerType, values, false).between(0, Integer.MAX_VALUE);
    }
    if (name.equals("SUBSTRING") && isText(type)) {
      for (int i = 1; i < operands.length; i++) if (!isCount(operands[i])) return null;
      return node(name, type, values, false);
    }
    if (name.equals("TRUNC") && type instanceof DateType && operands[1] instanceof Literal) {
      Object unit = UNITS.get(String.valueOf(((Literal) operands[1]).value()).toUpperCase());
      if (unit == null) return null;
      return of(Arrays.asList(new Object[] {name, type.simpleString(), unit, values[0].form}), type);
    }
    return null;
  }

  private static boolean isText(DataType type) { return StringType$.MODULE$.equals(type); }

  private static boolean isCount(Expression e) {
    return e instanceof Literal && ((Literal) e).value() instanceof Integer
        && ((Integer) ((Literal) e).value()).intValue() >= 0;
  }

  /** The columns of the table, as far as expressions need them. */
  static StructType columns(StructType schema, List forms) {
    List paths = new ArrayList();
    for (int i = 0; i < forms.size(); i++) addPaths(forms.get(i), paths);
    return (StructType) pruned(schema, paths, 0);
  }

  private static void addPaths(Object form, List paths) {
    if (!(form instanceof List)) return;
    List items = (List) form;
    Object kind = items.isEmpty() ? null : items.get(0);
    if ("COLUMN".equals(kind)) paths.add(items.subList(1, items.size()));
    else if ("IN".equals(kind)) addPaths(items.get(1), paths);  // its constants are values, which may be null
    else for (int i = 0; i < items.size(); i++) addPaths(items.get(i), paths);
  }

  private static DataType pruned(DataType type, List paths, int depth) {
    if (!(type instanceof StructType)) return type;
    StructType found = new StructType();
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) {
      List below = new ArrayList();
      for (int j = 0; j < paths.size(); j++) {
        List path = (List) paths.get(j);
        if (path.size() > depth && path.get(depth).equals(fields[i].name())) below.add(path);
      }
      if (below.isEmpty()) continue;
      DataType kept = pruned(fields[i].dataType(), below, depth + 1);
      found = found.add(new StructField(fields[i].name(), kept, fields[i].nullable(), fields[i].metadata()));
    }
    return found;
  }
}
