package lance;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.AnsiTypeCoercion$;
import org.apache.spark.sql.catalyst.analysis.TypeCoercion$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** A procedure of a catalog. Python declares its parameters and runs it: see connector.procedures. */
final class CatalogProcedure implements UnboundProcedure, BoundProcedure {
  private final Catalog catalog;
  private final Map declared;

  CatalogProcedure(Catalog catalog, Map declared) {
    this.catalog = catalog;
    this.declared = declared;
  }

  public String name() { return (String) declared.get("name"); }
  public String description() { return (String) declared.get("comment"); }
  public boolean isDeterministic() { return false; }

  /**
   * Spark casts no interval to another type of interval; parameters take any of them, as all count microseconds. It does
   * not end if it can cast an argument to no type of the parameter, so such arguments are refused.
   */
  public BoundProcedure bind(StructType given) {
    StructField[] fields = given.fields();
    Map made = new HashMap(declared);
    List parameters = new ArrayList(declaredParameters());
    for (int i = 0; i < fields.length; i++) {
      DataType type = fields[i].dataType();
      boolean isNamed = fields[i].metadata().contains(ProcedureParameter.BY_NAME_METADATA_KEY);
      for (int j = 0; j < parameters.size(); j++) {
        Map each = (Map) parameters.get(j);
        boolean isIt = isNamed ? fields[i].name().equalsIgnoreCase((String) each.get("name")) : i == j;
        if (!isIt) continue;
        if (type instanceof DayTimeIntervalType && type(each) instanceof DayTimeIntervalType) {
          Map typed = new HashMap(each);
          typed.put("type", type.json());
          parameters.set(j, typed);
        } else if (!isCast(type, type(each))) {
          throw new IllegalArgumentException("The argument `" + each.get("name") + "` of " + name() + " is of type "
              + type.sql() + ", and " + type(each).sql() + " is needed: " + example(type(each)) + "; nothing was done");
        }
      }
    }
    made.put("parameters", parameters);
    return new CatalogProcedure(catalog, made);
  }

  /** As Spark casts arguments, which are constants. */
  private static boolean isCast(DataType from, DataType to) {
    Expression argument = new Literal(null, from);
    return (SQLConf$.MODULE$.get().ansiEnabled() ? AnsiTypeCoercion$.MODULE$.implicitCast(argument, to)
        : TypeCoercion$.MODULE$.implicitCast(argument, to)).isDefined();
  }

  private static String example(DataType type) {
    if (type instanceof ArrayType) return "write array('a', 'b')";
    if (type instanceof DayTimeIntervalType) return "write INTERVAL '7' DAY";
    return "write CAST(... AS " + type.sql() + ")";
  }

  private List declaredParameters() { return (List) declared.get("parameters"); }

  public ProcedureParameter[] parameters() {
    List all = declaredParameters();
    ProcedureParameter[] made = new ProcedureParameter[all.size()];
    for (int i = 0; i < made.length; i++) {
      Map each = (Map) all.get(i);
      ProcedureParameter.Builder builder = ProcedureParameter.in((String) each.get("name"), type(each));
      builder.comment((String) each.get("comment"));
      String value = (String) each.get("default");
      if (value != null) builder.defaultValue(value);
      made[i] = builder.build();
    }
    return made;
  }

  private static DataType type(Map parameter) { return DataType.fromJson((String) parameter.get("type")); }

  /** The first argument names the table. */
  public Iterator call(InternalRow input) {
    List all = declaredParameters();
    Map arguments = new LinkedHashMap();
    for (int i = 1; i < all.size(); i++) {
      Map each = (Map) all.get(i);
      arguments.put(each.get("name"), input.isNullAt(i) ? null : external(input.get(i, type(each))));
    }
    if (input.isNullAt(0)) throw new IllegalArgumentException("The argument `table` of " + name() + " is NULL: name a table");
    Map details = new LinkedHashMap();
    details.put("procedure", name());
    details.put("arguments", arguments);
    Map found = catalog.call(input.getUTF8String(0).toString(), details);
    return Collections.singletonList(new ProcedureResult(found)).iterator();
  }

  /** The JSON form of a value: times and intervals are microseconds. */
  private static Object external(Object value) {
    if (value instanceof ArrayData) {
      List items = new ArrayList();
      ArrayData array = (ArrayData) value;
      for (int i = 0; i < array.numElements(); i++) items.add(array.isNullAt(i) ? null : array.getUTF8String(i).toString());
      return items;
    }
    return value instanceof UTF8String ? value.toString() : value;
  }
}

/** Refuses to be bound, and says why. If a procedure cannot be loaded, Spark gives no reason. */
final class UnknownProcedure implements UnboundProcedure {
  private final String name;
  private final String message;

  UnknownProcedure(String name, String message) {
    this.name = name;
    this.message = message;
  }

  public String name() { return name; }
  public BoundProcedure bind(StructType given) { throw new IllegalArgumentException(message); }
}

/** The rows that a procedure returns. */
final class ProcedureResult implements LocalScan {
  private final StructType schema;
  private final List rows;

  ProcedureResult(Map found) {
    this.schema = (StructType) DataType.fromJson((String) found.get("schema"));
    this.rows = (List) found.get("rows");
  }

  public StructType readSchema() { return schema; }

  public InternalRow[] rows() {
    InternalRow[] made = new InternalRow[rows.size()];
    for (int i = 0; i < made.length; i++) {
      List values = (List) rows.get(i);
      Object[] row = new Object[values.size()];
      for (int j = 0; j < row.length; j++) row[j] = internal(values.get(j), schema.fields()[j].dataType());
      made[i] = new GenericInternalRow(row);
    }
    return made;
  }

  private static Object internal(Object value, DataType type) {
    if (value == null) return null;
    if (type instanceof StringType) return UTF8String.fromString((String) value);
    if (type instanceof BooleanType) return value;
    if (type instanceof DoubleType) return Double.valueOf(((Number) value).doubleValue());
    if (type instanceof IntegerType) return Integer.valueOf(((Number) value).intValue());
    if (type instanceof ArrayType) return array((List) value, ((ArrayType) type).elementType());
    if (type instanceof MapType) {
      Map map = (Map) value;
      return new ArrayBasedMapData(array(new ArrayList(map.keySet()), ((MapType) type).keyType()),
          array(new ArrayList(map.values()), ((MapType) type).valueType()));
    }
    return Long.valueOf(((Number) value).longValue());
  }

  private static ArrayData array(List items, DataType type) {
    Object[] made = new Object[items.size()];
    for (int i = 0; i < made.length; i++) made[i] = internal(items.get(i), type);
    return new GenericArrayData(made);
  }
}
