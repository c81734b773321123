package lance;

import java.util.Arrays;
import java.util.List;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.DurationVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column that the next batch refills. Consumers of Arrow's own columns close them after a batch, or keep several
 * batches, as Python functions do. Spark's reader closes these columns at the end, and has just one set.
 */
class BorrowedColumn extends ColumnVector {
  private static final List NUMBERS = Arrays.asList(new Class[] {BitVector.class, TinyIntVector.class,
      SmallIntVector.class, IntVector.class, BigIntVector.class, Float4Vector.class, Float8Vector.class,
      DateDayVector.class, TimeStampMicroTZVector.class, TimeStampMicroVector.class, DurationVector.class});

  private final ColumnVector column;
  private final boolean hasNull;

  BorrowedColumn(ColumnVector column) {
    super(column.dataType());
    this.column = column;
    this.hasNull = column.hasNull();
  }

  /** Values of common types are read from memory: Arrow's accessors check each index and each null once more. */
  static BorrowedColumn of(ArrowColumnVector column) {
    ValueVector vector = column.getValueVector();
    Class kind = vector.getClass();
    DataType type = column.dataType();
    boolean isShort = type instanceof DecimalType && ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS();
    if (NUMBERS.contains(kind) || kind == DecimalVector.class && isShort) {
      return new BorrowedNumbers(column, (BaseFixedWidthVector) vector);
    }
    if (kind == VarCharVector.class || kind == VarBinaryVector.class) {
      return new BorrowedBytes(column, (BaseVariableWidthVector) vector);
    }
    if (kind == ListVector.class && type instanceof ArrayType || kind == MapVector.class && type instanceof MapType) {
      return new BorrowedLists(column, (ListVector) vector);
    }
    if (kind == StructVector.class && type instanceof StructType) {
      return new BorrowedStructs(column, (StructVector) vector);
    }
    return new BorrowedColumn(column);
  }

  public void close() {}
  public void closeIfFreeable() {}
  public boolean hasNull() { return hasNull; }
  public int numNulls() { return column.numNulls(); }
  public boolean isNullAt(int row) { return hasNull && column.isNullAt(row); }
  public boolean getBoolean(int row) { return column.getBoolean(row); }
  public byte getByte(int row) { return column.getByte(row); }
  public short getShort(int row) { return column.getShort(row); }
  public int getInt(int row) { return column.getInt(row); }
  public long getLong(int row) { return column.getLong(row); }
  public float getFloat(int row) { return column.getFloat(row); }
  public double getDouble(int row) { return column.getDouble(row); }
  public ColumnarArray getArray(int row) { return column.getArray(row); }
  public ColumnarMap getMap(int row) { return column.getMap(row); }
  public Decimal getDecimal(int row, int precision, int scale) { return column.getDecimal(row, precision, scale); }
  public UTF8String getUTF8String(int row) { return column.getUTF8String(row); }
  public byte[] getBinary(int row) { return column.getBinary(row); }
  public CalendarInterval getInterval(int row) { return column.getInterval(row); }
  public ColumnVector getChild(int ordinal) { return column.getChild(ordinal); }
}

/** A column whose memory is known. */
abstract class BorrowedBuffers extends BorrowedColumn {
  private final boolean hasNull;
  private final long validity;

  BorrowedBuffers(ColumnVector column, FieldVector vector) {
    super(column);
    this.hasNull = hasNull();
    this.validity = vector.getValidityBuffer().memoryAddress();
  }

  public boolean isNullAt(int row) { return hasNull && !isSet(validity, row); }

  static boolean isSet(long bits, int row) { return (Platform.getByte(null, bits + (row >> 3)) >> (row & 7) & 1) != 0; }
}

/**
 * Numbers, or what Spark keeps as such. Spark asks for values of the type of the column only. Decimals have 16 bytes, whose
 * digits fit into the first eight; Arrow's accessor makes two objects more of each.
 */
final class BorrowedNumbers extends BorrowedBuffers {
  private final long values;

  BorrowedNumbers(ColumnVector column, BaseFixedWidthVector vector) {
    super(column, vector);
    this.values = vector.getDataBuffer().memoryAddress();
  }

  public boolean getBoolean(int row) { return isSet(values, row); }
  public byte getByte(int row) { return Platform.getByte(null, values + row); }
  public short getShort(int row) { return Platform.getShort(null, values + 2L * row); }
  public int getInt(int row) { return Platform.getInt(null, values + 4L * row); }
  public long getLong(int row) { return Platform.getLong(null, values + 8L * row); }
  public float getFloat(int row) { return Platform.getFloat(null, values + 4L * row); }
  public double getDouble(int row) { return Platform.getDouble(null, values + 8L * row); }

  public Decimal getDecimal(int row, int precision, int scale) {
    return Decimal.createUnsafe(Platform.getLong(null, values + 16L * row), precision, scale);
  }
}

/** Values of any length, whose offsets are of four bytes. */
abstract class BorrowedSlices extends BorrowedBuffers {
  private final long offsets;

  BorrowedSlices(ColumnVector column, FieldVector vector) {
    super(column, vector);
    this.offsets = vector.getOffsetBuffer().memoryAddress();
  }

  final int start(int row) { return Platform.getInt(null, offsets + 4L * row); }
  final int size(int row) { return start(row + 1) - start(row); }
}

/** Strings or binaries. */
final class BorrowedBytes extends BorrowedSlices {
  private final long values;

  BorrowedBytes(ColumnVector column, BaseVariableWidthVector vector) {
    super(column, vector);
    this.values = vector.getDataBuffer().memoryAddress();
  }

  public UTF8String getUTF8String(int row) { return UTF8String.fromAddress(null, values + start(row), size(row)); }

  public byte[] getBinary(int row) {
    byte[] copy = new byte[size(row)];
    Platform.copyMemory(null, values + start(row), copy, Platform.BYTE_ARRAY_OFFSET, copy.length);
    return copy;
  }
}

/** Lists, or maps as lists of keys and values. */
final class BorrowedLists extends BorrowedSlices {
  private final BorrowedColumn items;

  BorrowedLists(ColumnVector column, ListVector vector) {
    super(column, vector);
    this.items = of(new ArrowColumnVector(vector.getDataVector()));
  }

  public ColumnarArray getArray(int row) { return new ColumnarArray(items, start(row), size(row)); }

  public ColumnarMap getMap(int row) {
    return new ColumnarMap(items.getChild(0), items.getChild(1), start(row), size(row));
  }
}

/** Structs, whose fields have values of their own where the struct is null. */
final class BorrowedStructs extends BorrowedBuffers {
  private final BorrowedColumn[] fields;

  BorrowedStructs(ColumnVector column, StructVector vector) {
    super(column, vector);
    this.fields = new BorrowedColumn[vector.size()];
    for (int i = 0; i < fields.length; i++) fields[i] = of((ArrowColumnVector) column.getChild(i));
  }

  public ColumnVector getChild(int ordinal) { return fields[ordinal]; }
}
