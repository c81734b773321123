package lance;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.Iterator;

/**
 * What Spark has cached of a table is read again after a write, as it is of files. Spark itself looks for relations with
 * the options of the write only.
 */
final class Caches {
  private static final Logger LOG = LoggerFactory.getLogger(Caches.class);

  private Caches() {}

  static void refresh(String directory) {
    SparkSession session = (SparkSession) SparkSession.active();
    CacheManager manager = session.sharedState().cacheManager();
    if (manager.isEmpty()) return;
    List relations = relations(manager, directory);
    for (int i = 0; i < relations.size(); i++) {
      try {
        manager.recacheByPlan(session, (LogicalPlan) relations.get(i));
      } catch (Exception e) {
        // The write has landed. Cached data is already dropped, and a query that can no longer be planned reports it.
        LOG.debug("what is cached of {} cannot be planned again", directory, e);
      }
    }
  }

  /** The relations in cached plans that are of a table in a directory. */
  private static List relations(CacheManager manager, String directory) {
    List found = new ArrayList();
    for (Iterator all = cached(manager); all.hasNext(); ) {
      for (Iterator leaves = ((CachedData) all.next()).plan().collectLeaves().iterator(); leaves.hasNext(); ) {
        Object leaf = leaves.next();
        if (!(leaf instanceof DataSourceV2Relation)) continue;
        Object table = ((DataSourceV2Relation) leaf).table();
        if (table instanceof LanceTable && ((LanceTable) table).isIn(directory)) found.add(leaf);
      }
    }
    return found;
  }

  private static Iterator cached(CacheManager manager) {
    try {
      Field field = CacheManager.class.getDeclaredField("cachedData");
      field.setAccessible(true);
      return ((scala.collection.Iterable) field.get(manager)).iterator();
    } catch (ReflectiveOperationException e) {
      LOG.warn("what is cached of Lance tables is not refreshed by writes", e);
      return scala.collection.Iterator$.MODULE$.empty();
    }
  }
}

/** Spark's own, whose commits refresh cached data. */
final class RefreshingWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final LanceTable table;
  private final LogicalWriteInfo info;
  private final Map options;
  private PythonWriteBuilder python;
  private String command;

  RefreshingWriteBuilder(LanceTable table, LogicalWriteInfo info, Map options) {
    this.table = table;
    this.info = info;
    this.options = options;
    this.python = python();
  }

  private PythonWriteBuilder python() {
    return new PythonWriteBuilder(new DriverWrites(), Python.NAME, new WriteInfo(info, options));
  }

  /** Replaces the rows for which all predicates are true, in the version that the query reads. */
  public WriteBuilder overwrite(Predicate[] predicates) {
    Facts facts = table.facts(options);
    Predicates encoder = new Predicates(facts);
    for (int i = 0; i < predicates.length; i++) {
      if (encoder.encode(predicates[i]) != null) continue;
      throw new UnsupportedOperationException("REPLACE WHERE and overwrite(condition) replace rows by conditions that Lance"
          + " evaluates, and " + new PredicateText().build(predicates[i]) + " is none that Lance evaluates as Spark does;"
          + " nothing was changed. INSERT OVERWRITE with a query that also selects the rows to be kept does without");
    }
    options.put("__lance.replaced", encoder.conjunction(predicates));
    options.put("__lance.snapshot", facts.snapshot());
    python = python();
    command = "REPLACE WHERE";
    return this;
  }

  public WriteBuilder overwriteDynamicPartitions() {
    throw new UnsupportedOperationException("overwritePartitions(), and INSERT OVERWRITE while"
        + " spark.sql.sources.partitionOverwriteMode is dynamic, replace partitions, which Lance tables do not have; nothing"
        + " was changed. INSERT INTO t REPLACE WHERE condition, or writeTo(t).overwrite(condition), replaces the rows that"
        + " match; with the setting at static INSERT OVERWRITE replaces all");
  }

  /** Replaces all rows. A query that reads the table, too, is not to lose changes since the version that it reads. */
  public WriteBuilder truncate() {
    Facts read = Versions.readOf(table);
    if (read != null) {
      options.put("__lance.snapshot", read.snapshot());
      python = python();
      command = "INSERT OVERWRITE";
    }
    python.truncate();
    return this;
  }

  public Write build() { return new RefreshingWrite(python.build(), options, command); }
}

/** Spark's own, around the write that Python carries out. Some run again after a collision. */
final class RefreshingWrite implements Write {
  private final Write python;
  private final Map options;
  private final String command;

  /** The command is null unless it changes rows that it has found in one version. */
  RefreshingWrite(Write python, Map options, String command) {
    this.python = python;
    this.options = options;
    this.command = command;
  }

  public String description() { return python.description(); }
  public BatchWrite toBatch() { return new RefreshingBatchWrite(python.toBatch(), options, command); }

  /** Micro-batches go through SinkBuilder, as their query is known. Only a continuous query comes here. */
  public StreamingWrite toStreaming() {
    throw new UnsupportedOperationException("The sink of Lance tables writes batches, and has no continuous trigger; nothing"
        + " was written: use processingTime, availableNow or once");
  }

  public CustomMetric[] supportedCustomMetrics() { return python.supportedCustomMetrics(); }
  public CustomTaskMetric[] reportDriverMetrics() { return python.reportDriverMetrics(); }
}

final class RefreshingBatchWrite implements BatchWrite {
  private final BatchWrite python;
  private final Map options;
  private final String directory;
  private final String command;
  private final JobLabel label;

  RefreshingBatchWrite(BatchWrite python, Map options, String command) {
    this.python = python;
    this.options = options;
    this.directory = (String) options.get("path");
    this.command = command;
    boolean isLabelled = command == null || options.containsKey("__lance.delta");  // by a LabelledCommand
    this.label = isLabelled ? null : new JobLabel(command + " " + directory);
  }

  /** Spark starts the job next; after it, it commits or aborts. */
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    DataWriterFactory factory = MeasuredWriters.of(python.createBatchWriterFactory(info));
    if (label != null) label.put();
    return factory;
  }

  public boolean useCommitCoordinator() { return python.useCommitCoordinator(); }
  public void onDataWriterCommit(WriterCommitMessage message) { python.onDataWriterCommit(message); }

  public void commit(WriterCommitMessage[] messages) {
    if (label != null) label.remove();
    if (command != null) Replanning.commit(python, withFoundRows(messages));
    else python.commit(messages);
    Evolution.list(options);
    Caches.refresh(directory);
  }

  /** If rows of a condition are replaced, adds a message that names them. Where the driver has no Python process, the commit searches itself. */
  private WriterCommitMessage[] withFoundRows(WriterCommitMessage[] messages) {
    if (!options.containsKey("__lance.replaced") || Python.callback == null) return messages;
    String found = (String) Python.demand("search", options, null).get("message");
    WriterCommitMessage[] all = (WriterCommitMessage[]) Arrays.copyOf(messages, messages.length + 1);
    all[messages.length] = new PythonWriterCommitMessage(Base64.getDecoder().decode(found));
    return all;
  }

  public void abort(WriterCommitMessage[] messages) {
    if (label != null) label.remove();
    try {
      python.abort(messages);
    } catch (Exception e) { // Spark would show "Writing job failed" in the place of the error that ended the write.
      LoggerFactory.getLogger(Caches.class).warn("the files of a failed write are left", e);
    }
  }
}
