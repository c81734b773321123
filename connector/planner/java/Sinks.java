package lance;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriteBuilder;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/**
 * Tables as sinks of streams. Spark asks a table for a write in every batch, by the id of the query, under which the query
 * itself is to be found, with its mode, which a table is not told.
 */
final class Sinks {
  private Sinks() {}

  /**
   * Whether Spark asks because a query is started that writes to the table: what is wrong by then is raised by start() and
   * toTable(). A query asks the tables that it reads, too, but from deeper within Spark.
   */
  static boolean isStarting() {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      String asking = calls[i].getClassName();
      if (!asking.startsWith("lance.") && !asking.contains("DataSourceV2Implicits")) {
        return asking.contains(".DataStreamWriter");
      }
    }
    return false;
  }

  /** What is known of the query that a write is a batch of; null for other writes. */
  static Map queryOf(LogicalWriteInfo info) {
    SparkSession session = (SparkSession) SparkSession.active();
    StreamExecution query;
    try {
      query = (StreamExecution) session.sharedState().activeStreamingQueries().get(UUID.fromString(info.queryId()));
    } catch (IllegalArgumentException e) {
      return null;
    }
    if (query == null) return null;
    Map known = new HashMap();
    known.put("mode", query.outputMode().toString());
    known.put("uuid", UUID.randomUUID().toString());
    return known;
  }

  /** The options of a query that starts, whose mode a table cannot see yet. */
  static Map starting(Map options) {
    Map query = new HashMap();
    query.put("mode", "unknown");
    query.put("uuid", UUID.randomUUID().toString());
    return Python.merged(options, Collections.singletonMap("__lance.sink", Python.json(query)));
  }

  static WriteBuilder builder(LanceTable table, LogicalWriteInfo info, Map options, Map query) {
    options.put("__lance.sink", Python.json(query));
    return new SinkBuilder(info, options, (List) Python.demand("check_sink", options, info.schema()).get("key"));
  }
}

/** The write of one batch. What an update replaces, Python finds by the key; without a key it has refused the query. */
final class SinkBuilder implements SupportsTruncate, SupportsStreamingUpdateAsAppend {
  private final PythonWriteBuilder python;
  private final String directory;
  private final List key;

  /** The last are the columns by which rows are brought together; none if rows do not replace others. */
  SinkBuilder(LogicalWriteInfo info, Map options, List key) {
    this.key = key;
    this.python = new PythonWriteBuilder(new DriverWrites(), Python.NAME, new WriteInfo(info, options));
    this.directory = (String) options.get("path");
  }

  public WriteBuilder truncate() {
    python.truncate();
    return this;
  }

  public Write build() {
    Write write = python.build();
    return key.isEmpty() ? new SinkWrite(write, directory) : new KeyedSinkWrite(write, directory, key);
  }
}

/** Spark's own, whose commits refresh what is cached. */
class SinkWrite implements Write {
  private final Write python;
  private final String directory;

  SinkWrite(Write python, String directory) {
    this.python = python;
    this.directory = directory;
  }

  public String description() { return python.description(); }
  public BatchWrite toBatch() { return python.toBatch(); }
  public StreamingWrite toStreaming() { return new RefreshingStreamingWrite(python.toStreaming(), directory); }
  public CustomMetric[] supportedCustomMetrics() { return python.supportedCustomMetrics(); }
  public CustomTaskMetric[] reportDriverMetrics() { return python.reportDriverMetrics(); }
}

/** One whose tasks get all rows of a key, one after the other. */
final class KeyedSinkWrite extends SinkWrite implements RequiresDistributionAndOrdering {
  private final Expression[] key;

  KeyedSinkWrite(Write python, String directory, List names) {
    super(python, directory);
    key = new Expression[names.size()];
    for (int i = 0; i < key.length; i++) key[i] = FieldReference.column((String) names.get(i));
  }

  public Distribution requiredDistribution() { return Distributions.clustered(key); }

  public SortOrder[] requiredOrdering() {
    SortOrder[] order = new SortOrder[key.length];
    for (int i = 0; i < key.length; i++) order[i] = Expressions.sort(key[i], SortDirection.ASCENDING);
    return order;
  }
}

final class RefreshingStreamingWrite implements StreamingWrite {
  private final StreamingWrite python;
  private final String directory;

  RefreshingStreamingWrite(StreamingWrite python, String directory) {
    this.python = python;
    this.directory = directory;
  }

  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return MeasuredWriters.of(python.createStreamingWriterFactory(info));
  }

  public boolean useCommitCoordinator() { return python.useCommitCoordinator(); }

  public void commit(long epoch, WriterCommitMessage[] messages) {
    python.commit(epoch, messages);
    Caches.refresh(directory);
  }

  public void abort(long epoch, WriterCommitMessage[] messages) { python.abort(epoch, messages); }
}
