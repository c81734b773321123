package lance;

import org.apache.spark.SparkContext$;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/** Spark's stream around a Python process, whose tasks hand over columns. */
class LanceStream implements MicroBatchStream {
  private final MicroBatchStream python;

  LanceStream(MicroBatchStream python) { this.python = python; }

  /** Returns a stream that can do what Python's can: it limits batches since 4.2. */
  static MicroBatchStream of(LanceScan scan, String checkpointLocation) {
    if (Python.callback != null) return DriverStream.open(scan);
    MicroBatchStream python = scan.python(Python.source()).toMicroBatchStream(checkpointLocation);
    if (python instanceof SupportsTriggerAvailableNow) return new LimitedStream(python);
    return new LanceStream(python);
  }

  /**
   * Whether Spark 4.1 asks for the metadata columns of a stream. It would not ask the scan to read them, and take what lies
   * behind a row for their values.
   */
  static boolean isWithoutMetadata() {
    return SparkContext$.MODULE$.getOrCreate().version().startsWith("4.1.") && Callers.end(".StreamingRelationV2");
  }

  /**
   * Whether Spark checks a stream that load() or start() has made. Their callers get what is wrong by then. Spark makes the
   * stream itself in the query's own thread.
   */
  static boolean isChecked() {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    int asking = 0;
    while (asking < calls.length && isPassing(calls[asking].getClassName())) asking++;
    if (asking == calls.length || !calls[asking].getClassName().contains(".TableCapabilityCheck")) return false;
    return isOfStreams();
  }

  /** Whether a plan is analysed for load(), table(), start() or toTable() of streams. */
  static boolean isOfStreams() { return Callers.end(".DataStreamReader") || Callers.end(".DataStreamWriter"); }

  private static boolean isPassing(String name) {
    return name.startsWith("lance.") || name.startsWith("scala.") || name.contains("DataSourceV2Implicits");
  }

  public Offset initialOffset() { return python.initialOffset(); }
  public Offset latestOffset() { return python.latestOffset(); }
  public Offset deserializeOffset(String json) { return python.deserializeOffset(json); }
  public void commit(Offset end) { python.commit(end); }
  public void stop() { python.stop(); }
  public InputPartition[] planInputPartitions(Offset start, Offset end) { return python.planInputPartitions(start, end); }

  public PartitionReaderFactory createReaderFactory() {
    PartitionReaderFactory rows = python.createReaderFactory();
    return Columns.areReachable() ? new Columns(rows) : rows;
  }
}

/** The same, in batches that options and triggers limit. */
final class LimitedStream extends LanceStream implements SupportsTriggerAvailableNow {
  private final SupportsTriggerAvailableNow limited;

  LimitedStream(MicroBatchStream python) {
    super(python);
    this.limited = (SupportsTriggerAvailableNow) python;
  }

  public void prepareForTriggerAvailableNow() { limited.prepareForTriggerAvailableNow(); }
  public ReadLimit getDefaultReadLimit() { return limited.getDefaultReadLimit(); }
  public Offset latestOffset(Offset start, ReadLimit limit) { return limited.latestOffset(start, limit); }
  public Offset reportLatestOffset() { return limited.reportLatestOffset(); }
}
