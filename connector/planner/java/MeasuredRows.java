package lance;

import java.io.IOException;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import scala.runtime.AbstractFunction0;

/**
 * Rows of a task on their way to Python, in Arrow batches that end when their rows have the bytes of
 * `spark.sql.execution.arrow.maxBytesPerBatch`. Spark asks Arrow for the size of a batch before each of its rows, column by
 * column, which takes a third of the time of a write of 20 columns. The rows know their sizes.
 *
 * A batch ends when there seems to be no further row, and Spark then looks once more: it does so between the groups of a
 * grouped function. Should it do otherwise one day, rows are left, and the task fails.
 */
final class MeasuredRows implements Iterator {
  static final String LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch";
  private static final long UNLIMITED = Integer.MAX_VALUE;

  /** Maximum number of rows of unknown sizes in a batch. */
  private static final int UNKNOWN = 100;

  private final Iterator rows;
  private final SQLConf conf;
  private final long limit;
  private final boolean isMeasured;
  private Object next;
  private long size;

  /** The settings are those of the task alone. They have no limit until the first row is taken, if it knows its size. */
  private MeasuredRows(Iterator rows, Object first, SQLConf conf, long limit) {
    this.rows = rows;
    this.next = first;
    this.conf = conf;
    this.limit = limit;
    this.isMeasured = first instanceof UnsafeRow;
    if (isMeasured) conf.setConfString(LIMIT, UNLIMITED + "b");
  }

  public boolean hasNext() {
    if (isMeasured && size >= limit) {
      size = 0;
      return false;
    }
    return next != null || rows.hasNext();
  }

  public Object next() {
    Object row = next;
    if (row == null) {
      row = rows.next();
    } else {
      // Spark has set itself up with these settings. What makes the rows may be set up later.
      next = null;
      conf.setConfString(LIMIT, limit + "b");
    }
    size += row instanceof UnsafeRow ? ((UnsafeRow) row).getSizeInBytes() : limit / UNKNOWN + 1;
    return row;
  }

  /** Has a writer write all rows. */
  static void write(final DataWriter writer, Iterator rows) throws IOException {
    SQLConf given = SQLConf.get();
    long limit = given.arrowMaxBytesPerBatch();
    Object first = limit < UNLIMITED && limit > 0 && rows.hasNext() ? rows.next() : null;
    if (first == null) {
      writer.writeAll(rows);
      return;
    }
    SQLConf conf = new SQLConf();
    scala.collection.Iterator set = given.getAllConfs().iterator();
    while (set.hasNext()) {
      scala.Tuple2 pair = (scala.Tuple2) set.next();
      conf.setConfString((String) pair._1(), (String) pair._2());
    }
    final MeasuredRows measured = new MeasuredRows(rows, first, conf, limit);
    SQLConf.withExistingConf(conf, new AbstractFunction0() {
      public Object apply() {
        try {
          writer.writeAll(measured);
        } catch (IOException e) {
          Platform.throwException(e);
        }
        return null;
      }
    });
    if (measured.next != null || rows.hasNext()) {
      throw new IllegalStateException("Spark has left rows of a task behind that were to be written; nothing was changed."
          + " Set " + LIMIT + " to " + UNLIMITED + " and report this");
    }
  }
}

/** Writers that give Spark's own measured rows. Executors need these classes: see `Columns.areReachable`. */
final class MeasuredWriters implements DataWriterFactory, StreamingDataWriterFactory {
  private final Object python;

  /** Spark's factory, of one of the two kinds. */
  private MeasuredWriters(Object python) { this.python = python; }

  static DataWriterFactory of(DataWriterFactory python) {
    return Columns.areReachable() ? new MeasuredWriters(python) : python;
  }

  static StreamingDataWriterFactory of(StreamingDataWriterFactory python) {
    return Columns.areReachable() ? new MeasuredWriters(python) : python;
  }

  public DataWriter createWriter(int partition, long task) {
    return new MeasuredWriter(((DataWriterFactory) python).createWriter(partition, task));
  }

  public DataWriter createWriter(int partition, long task, long epoch) {
    return new MeasuredWriter(((StreamingDataWriterFactory) python).createWriter(partition, task, epoch));
  }
}

final class MeasuredWriter implements DataWriter {
  private final DataWriter python;

  MeasuredWriter(DataWriter python) { this.python = python; }

  public void writeAll(Iterator rows) throws IOException { MeasuredRows.write(python, rows); }
  public void write(Object row) throws IOException { python.write(row); }
  public WriterCommitMessage commit() throws IOException { return python.commit(); }
  public void abort() throws IOException { python.abort(); }
  public CustomTaskMetric[] currentMetricsValues() { return python.currentMetricsValues(); }
  public void close() throws IOException { python.close(); }
}
