package lance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Spark's predicates as lists that connector/read/expressions.py reads; its docstring describes them. Null stands for
 * predicates that Python would not evaluate exactly as Spark does. That goes for values that some rows may not have, too:
 * Spark fails where it computes one, but it need not compute it for rows that another predicate excludes.
 */
final class Predicates {
  private static final Set OPERATORS = new HashSet(Arrays.asList(new String[] {
      "=", "<>", "<", "<=", ">", ">=", "<=>", "AND", "OR", "NOT", "IN", "IS_NULL", "IS_NOT_NULL", "STARTS_WITH", "ENDS_WITH",
      "CONTAINS", "ALWAYS_TRUE", "ALWAYS_FALSE"}));
  private static final Set TEXT_OPERATORS =
      new HashSet(Arrays.asList(new String[] {"STARTS_WITH", "ENDS_WITH", "CONTAINS"}));
  private static final List WHOLE_NUMBERS =
      Arrays.asList(new Class[] {ByteType.class, ShortType.class, IntegerType.class, LongType.class});
  /** Of Spark's functions that are predicates. */
  private static final String FUNCTION = "BOOLEAN_EXPRESSION";
  /** Number of constants from which numbers are written as bytes. */
  private static final int MANY = 100;
  private static final int[] DIGITS = {3, 5, 10, 19};

  private final Facts facts;
  private final boolean findsTexts;
  private final Values values;

  Predicates(Facts facts) { this(facts, false); }

  /** The columns of predicates, at the top of the schema. */
  static Set columns(Predicate[] predicates) {
    Set names = new HashSet();
    for (int i = 0; i < predicates.length; i++) {
      NamedReference[] columns = predicates[i].references();
      for (int j = 0; j < columns.length; j++) names.add(columns[j].fieldNames()[0]);
    }
    return names;
  }

  /** The last parameter says whether the scan can search texts by the indices of the table. */
  Predicates(Facts facts, boolean findsTexts) {
    this.facts = facts;
    this.findsTexts = findsTexts && facts.isAggregated();
    this.values = new Values(facts, this);
  }

  /** Those among some values. */
  Predicates(Facts facts, Values values) {
    this.facts = facts;
    this.findsTexts = false;
    this.values = values;
  }

  /** All of some predicates as JSON, without those that cannot be encoded; null if there are none. */
  String conjunction(Predicate[] predicates) {
    List terms = new ArrayList();
    terms.add("AND");
    for (int i = 0; i < predicates.length; i++) {
      List term = encode(predicates[i]);
      if (term != null) terms.add(term);
    }
    return terms.size() == 1 ? null : Python.json(terms);
  }

  List encode(Expression e) {
    if (e instanceof NamedReference) return column((NamedReference) e);
    if (e instanceof Literal) return literal((Literal) e);
    if (e instanceof UserDefinedScalarFunc) return function((UserDefinedScalarFunc) e);
    if (!isOperation(e)) return value(e);
    String operator = ((Predicate) e).name();
    if (operator.equals("IN")) return in(e.children());
    if (operator.equals(FUNCTION)) return e.children().length == 1 ? encode(e.children()[0]) : null;
    return node(operator, e.children());
  }

  /** Whether it is a predicate of its own, and no other expression with a truth value. */
  static boolean isOperation(Expression e) {
    return e instanceof Predicate && (OPERATORS.contains(((Predicate) e).name()) || ((Predicate) e).name().equals(FUNCTION));
  }

  /** A value that all rows have. */
  private List value(Expression e) {
    Value found = values.encode(e);
    return found == null || found.fails ? null : found.form;
  }

  private List function(UserDefinedScalarFunc function) {
    if (!Patterns.isLike(function)) return texts(function);
    List operand = encode(function.children()[0]);
    Object pattern = ((Literal) function.children()[1]).value().toString();
    return operand == null ? null : Arrays.asList(new Object[] {"LIKE", operand, pattern});
  }

  private List node(String operator, Expression[] operands) {
    List form = new ArrayList();
    form.add(operator);
    for (int i = 0; i < operands.length; i++) {
      List operand = encode(operands[i]);
      if (operand == null || i == 1 && TEXT_OPERATORS.contains(operator) && !isText(operand)) return null;
      form.add(operand);
    }
    return form;
  }

  /** Whether a pattern is one text for all rows. */
  private static boolean isText(List form) {
    return form.get(0).equals("LITERAL") && form.get(1).equals("string") && form.get(2) != null;
  }

  private List texts(UserDefinedScalarFunc function) {
    if (!findsTexts) return null;
    List columns = new ArrayList();
    for (int i = 0; i < function.children().length; i++) {
      Expression child = function.children()[i];
      if (!(child instanceof NamedReference) || column((NamedReference) child) == null) return null;
      columns.add(Arrays.asList(((NamedReference) child).fieldNames()));
    }
    return TextMatch.form(function, columns);
  }

  private List column(NamedReference reference) {
    List path = Arrays.asList(reference.fieldNames());
    if (!facts.isFilterable(path)) return null;
    List form = new ArrayList();
    form.add("COLUMN");
    form.addAll(path);
    return form;
  }

  private static List literal(Literal literal) {
    String type = typeName(literal.dataType());
    if (type == null || !isWritable(literal.value())) return null;
    return Arrays.asList(new Object[] {"LITERAL", type, value(literal.value())});
  }

  private List in(Expression[] operands) {
    List operand = encode(operands[0]);
    if (operand == null || operands.length < 2) return null;
    if (operands.length > MANY) {
      List packed = packed(operand, operands);
      if (packed != null) return packed;
    }
    String type = null;
    List values = new ArrayList();
    for (int i = 1; i < operands.length; i++) {
      List constant = operands[i] instanceof Literal ? literal((Literal) operands[i]) : null;
      if (constant == null || type != null && !type.equals(constant.get(1))) return null;
      type = (String) constant.get(1);
      values.add(constant.get(2));
      Object value = ((Literal) operands[i]).value();
      // Spark looks up zeros by their bits among many constants, and compares them among few.
      if (isFraction(value) && ((Number) value).doubleValue() == 0) return null;
    }
    return Arrays.asList(new Object[] {"IN", operand, type, values});
  }

  /** Many whole numbers or days as bytes, little-endian; null for other constants, and if one of them is null. */
  private static List packed(List operand, Expression[] operands) {
    ByteBuffer bytes = ByteBuffer.allocate(8 * (operands.length - 1)).order(ByteOrder.LITTLE_ENDIAN);
    DataType type = null;
    for (int i = 1; i < operands.length; i++) {
      if (!(operands[i] instanceof Literal)) return null;
      Literal literal = (Literal) operands[i];
      if (type == null) type = literal.dataType();
      boolean isPacked = (isWhole(type) || type instanceof DateType) && type.equals(literal.dataType());
      if (!isPacked || !(literal.value() instanceof Number)) return null;
      bytes.putLong(((Number) literal.value()).longValue());
    }
    return Arrays.asList(new Object[] {"SET", operand, typeName(type), Base64.getEncoder().encodeToString(bytes.array())});
  }

  static boolean isWhole(DataType type) { return size(type) >= 0; }

  /** The position of a type of whole numbers among those, by its size; -1 for other types. */
  private static int size(DataType type) {
    return Math.max(WHOLE_NUMBERS.indexOf(type.getClass().getSuperclass()), WHOLE_NUMBERS.indexOf(type.getClass()));
  }

  /** Whether a type holds every value of another. */
  static boolean holds(DataType to, DataType from) {
    int source = size(from);
    int target = size(to);
    if (source >= 0 && target >= 0) return source <= target;
    if (source >= 0 && to instanceof DoubleType) return source < 3;
    if (source >= 0 && to instanceof FloatType) return source < 2;
    if (from instanceof FloatType) return to instanceof DoubleType;
    if (from instanceof DateType) return to instanceof TimestampNTZType;
    if (!(to instanceof DecimalType)) return false;
    DecimalType decimal = (DecimalType) to;
    if (source >= 0) return decimal.precision() - decimal.scale() >= DIGITS[source];
    if (!(from instanceof DecimalType)) return false;
    DecimalType given = (DecimalType) from;
    return decimal.scale() >= given.scale()
        && decimal.precision() - decimal.scale() >= given.precision() - given.scale();
  }

  /** Spark's name of a type of constants that Python takes; null for others, such as collated strings and intervals. */
  static String typeName(DataType type) {
    if (type.equals(StringType$.MODULE$)) return "string";
    boolean known = type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType
        || type instanceof IntegerType || type instanceof LongType || type instanceof FloatType
        || type instanceof DoubleType || type instanceof DecimalType || type instanceof BinaryType
        || type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType
        || type instanceof NullType || type.simpleString().startsWith("time(");
    return known ? type.simpleString() : null;
  }

  private static boolean isFraction(Object value) { return value instanceof Float || value instanceof Double; }

  /** Whether text can carry a value: strings that are no UTF-8 cannot be written as JSON. */
  private static boolean isWritable(Object value) {
    return !(value instanceof UTF8String) || UTF8String.fromString(value.toString()).equals(value);
  }

  private static Object value(Object value) {
    if (value == null || value instanceof Boolean) return value;
    if (value instanceof byte[]) return Base64.getEncoder().encodeToString((byte[]) value);
    // The shortest digits of a float give another number when read as a double.
    return value instanceof Float ? Double.toString(((Float) value).doubleValue()) : value.toString();
  }
}
