package lance;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Base64;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Tasks whose rows the driver's Python process has read, as connector/read/driver_rows.py does: they go with the tasks, as
 * streams of Arrow's. Executors need these classes: see `Columns.areReachable`.
 */
final class DriverRows implements Batch, PartitionReaderFactory {
  /** The most bytes in columns that the driver looks at for rows, of which it may return few; and of those that it returns. */
  static final long MOST_BYTES = 8 * 1024 * 1024;
  static final long MOST_RETURNED_BYTES = 512 * 1024;

  private static final String SETTING = "spark.lance.planner.smallReads.enabled";
  private static final long MOST_ROWS = 1 << 18;
  private static final long MOST_FRAGMENTS = 8;

  private final transient List rows;

  /** The rows of each task, encoded. */
  DriverRows(List rows) { this.rows = rows; }

  /** Whether tasks that look at some rows are small, and executors can read what the driver has read. */
  static boolean areRead(boolean isPlain, long rows, long fragments) {
    boolean isSmall = isPlain && rows <= MOST_ROWS && fragments <= MOST_FRAGMENTS;
    return isSmall && Columns.areReachable() && DefaultSource.isOn(SETTING);
  }

  public InputPartition[] planInputPartitions() {
    InputPartition[] partitions = new InputPartition[rows.size()];
    for (int i = 0; i < partitions.length; i++) {
      partitions[i] = new ReadRows(Base64.getDecoder().decode((String) rows.get(i)));
    }
    return partitions;
  }

  public PartitionReaderFactory createReaderFactory() { return this; }
  public boolean supportColumnarReads(InputPartition partition) { return true; }

  public PartitionReader createReader(InputPartition partition) {
    throw new UnsupportedOperationException("rows of the driver are read as columns");
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return new StreamReader(((ReadRows) partition).rows);
  }
}

final class ReadRows implements InputPartition {
  final byte[] rows;

  ReadRows(byte[] rows) { this.rows = rows; }
}

final class StreamReader implements PartitionReader {
  private final BufferAllocator allocator =
      ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("rows of the driver", 0, Long.MAX_VALUE);
  private final ArrowStreamReader stream;

  StreamReader(byte[] rows) { this.stream = new ArrowStreamReader(new ByteArrayInputStream(rows), allocator); }

  public boolean next() throws IOException { return stream.loadNextBatch(); }

  public Object get() throws IOException {
    VectorSchemaRoot root = stream.getVectorSchemaRoot();
    ColumnVector[] columns = new ColumnVector[root.getFieldVectors().size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = BorrowedColumn.of(new ArrowColumnVector((FieldVector) root.getFieldVectors().get(i)));
    }
    return new ColumnarBatch(columns, root.getRowCount());
  }

  public CustomTaskMetric[] currentMetricsValues() { return new CustomTaskMetric[0]; }

  public void close() throws IOException {
    stream.close();
    allocator.close();
  }
}
