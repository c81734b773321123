package lance;

import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
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
    if (kind == VarCharVector.class) return new BorrowedText(column, (BaseVariableWidthVector) vector);
    if (kind == BigIntVector.class || kind == Float8Vector.class || kind == IntVector.class || kind == Float4Vector.class
        || kind == DateDayVector.class || kind == TimeStampMicroTZVector.class || kind == TimeStampMicroVector.class) {
      return new BorrowedNumbers(column, (BaseFixedWidthVector) vector);
    }
    if (kind == DecimalVector.class && ((DecimalType) column.dataType()).precision() <= Decimal.MAX_LONG_DIGITS()) {
      return new BorrowedDecimals(column, (BaseFixedWidthVector) vector);
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
  final long values;

  BorrowedBuffers(ColumnVector column, FieldVector vector) {
    super(column);
    this.hasNull = hasNull();
    this.validity = vector.getValidityBuffer().memoryAddress();
    this.values = vector.getDataBuffer().memoryAddress();
  }

  public boolean isNullAt(int row) {
    return hasNull && (Platform.getByte(null, validity + (row >> 3)) >> (row & 7) & 1) == 0;
  }
}

/** Numbers of four or eight bytes, or what Spark keeps as such. Spark asks for values of the type of the column only. */
final class BorrowedNumbers extends BorrowedBuffers {
  BorrowedNumbers(ColumnVector column, BaseFixedWidthVector vector) { super(column, vector); }

  public int getInt(int row) { return Platform.getInt(null, values + 4L * row); }
  public long getLong(int row) { return Platform.getLong(null, values + 8L * row); }
  public float getFloat(int row) { return Platform.getFloat(null, values + 4L * row); }
  public double getDouble(int row) { return Platform.getDouble(null, values + 8L * row); }
}

/** Decimals of 16 bytes whose digits fit into the first eight. Arrow's accessor makes two objects more of each. */
final class BorrowedDecimals extends BorrowedBuffers {
  BorrowedDecimals(ColumnVector column, BaseFixedWidthVector vector) { super(column, vector); }

  public Decimal getDecimal(int row, int precision, int scale) {
    return Decimal.createUnsafe(Platform.getLong(null, values + 16L * row), precision, scale);
  }
}

/** Text; offsets are of four bytes. */
final class BorrowedText extends BorrowedBuffers {
  private final long offsets;

  BorrowedText(ColumnVector column, BaseVariableWidthVector vector) {
    super(column, vector);
    this.offsets = vector.getOffsetBuffer().memoryAddress();
  }

  public UTF8String getUTF8String(int row) {
    int start = Platform.getInt(null, offsets + 4L * row);
    int stop = Platform.getInt(null, offsets + 4L * row + 4);
    return UTF8String.fromAddress(null, values + start, stop - start);
  }
}
