package lance;

import java.math.BigDecimal;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Counts, minima and maxima of a whole table, known while Spark plans: no task runs. */
final class Summary implements LocalScan {
  private final String name;
  private final StructType schema;
  private final Object[] values;

  private Summary(String name, StructType schema, Object[] values) {
    this.name = name;
    this.schema = schema;
    this.values = values;
  }

  /** Returns null if one of the functions has to read rows. */
  static Summary of(AggregateFunc[] functions, Map options, Facts facts) {
    StructField[] columns = new StructField[functions.length];
    StructType wanted = new StructType();
    for (int i = 0; i < functions.length; i++) {
      if (functions[i] instanceof CountStar) continue;
      columns[i] = column(functions[i], facts);
      if (columns[i] == null) return null;
      if (!Arrays.asList(wanted.fieldNames()).contains(columns[i].name())) wanted = wanted.add(columns[i]);
    }
    Map bounds = wanted.isEmpty() ? Collections.emptyMap() : Python.hint("bounds", options, wanted);
    if (bounds == null) return null;
    StructType schema = new StructType();
    Object[] values = new Object[functions.length];
    for (int i = 0; i < functions.length; i++) {
      String what = functions[i] instanceof Min ? "min" : functions[i] instanceof Max ? "max" : "count";
      DataType type = what.equals("count") ? DataTypes.LongType : columns[i].dataType();
      if (columns[i] == null) {
        values[i] = Long.valueOf(facts.rows());
      } else {
        Map known = (Map) bounds.get(columns[i].name());
        if (known == null || !known.containsKey(what) || !isTaken(type)) return null;
        values[i] = value(type, known.get(what));
      }
      schema = schema.add(what + "_" + i, type, true);
    }
    return new Summary(facts.name(), schema, values);
  }

  /** The column that a function aggregates; null for other functions, and for columns whose values differ in Python. */
  private static StructField column(AggregateFunc function, Facts facts) {
    Expression operand = function instanceof Min ? ((Min) function).column()
        : function instanceof Max ? ((Max) function).column()
        : function instanceof Count && !((Count) function).isDistinct() ? ((Count) function).column() : null;
    if (!(operand instanceof NamedReference)) return null;
    String[] path = ((NamedReference) operand).fieldNames();
    if (path.length != 1 || !facts.isFilterable(Arrays.asList(path))) return null;
    return Arrays.asList(facts.schema().fieldNames()).contains(path[0]) ? facts.schema().apply(path[0]) : null;
  }

  private static boolean isTaken(DataType type) {
    return type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType
        || type instanceof IntegerType || type instanceof LongType || type instanceof FloatType
        || type instanceof DoubleType || type instanceof DateType || type instanceof TimestampType
        || type instanceof TimestampNTZType || type instanceof DecimalType || type.equals(StringType$.MODULE$);
  }

  /** A value in the form of Spark's rows. */
  private static Object value(DataType type, Object given) {
    if (given == null || given instanceof Boolean) return given;
    String text = given.toString();
    if (type instanceof ByteType) return Byte.valueOf(text);
    if (type instanceof ShortType) return Short.valueOf(text);
    if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf(text);
    if (type instanceof FloatType) return Float.valueOf(text);
    if (type instanceof DoubleType) return Double.valueOf(text);
    if (type.equals(StringType$.MODULE$)) return UTF8String.fromString(text);
    if (!(type instanceof DecimalType)) return Long.valueOf(text);
    DecimalType decimal = (DecimalType) type;
    return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
  }

  public StructType readSchema() { return schema; }
  public InternalRow[] rows() { return new InternalRow[] {new GenericInternalRow(values)}; }
  public String description() { return Python.NAME + " " + name + ", known without reading: " + schema.simpleString(); }
}
