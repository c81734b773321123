package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One scan, around Spark's PythonScan. Scans that read the same are equal, so that Spark runs one of them. */
final class LanceScan implements Scan, SupportsReportStatistics {
  private static final int MAX_SHOWN = 1000;

  final StructType schema;
  final Map options;
  private final Facts facts;
  private final Predicate[] predicates;
  private Batch batch;

  LanceScan(StructType schema, Map options, Facts facts, Predicate[] predicates) {
    this.schema = schema;
    this.options = options;
    this.facts = facts;
    this.predicates = predicates;
  }

  public StructType readSchema() { return schema; }
  public Scan.ColumnarSupportMode columnarSupportMode() { return Scan.ColumnarSupportMode.UNSUPPORTED; }
  public CustomMetric[] supportedCustomMetrics() { return Python.source().source().createPythonMetrics(); }

  public String description() {
    String filters = Arrays.toString(predicates);
    if (filters.length() > MAX_SHOWN) filters = filters.substring(0, MAX_SHOWN) + "...]";
    String limit = (String) options.get("__lance.limit");
    return Python.NAME + " " + facts.name() + ", reads: " + schema.simpleString() + ", filters: " + filters
        + (limit == null ? "" : ", limit: " + limit);
  }

  public Statistics estimateStatistics() {
    return new LanceStatistics(facts.rows(), facts.sizeInBytes(schema));
  }

  public synchronized Batch toBatch() {
    if (batch == null) batch = new LanceBatch(this);
    return batch;
  }

  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    return python(Python.source()).toMicroBatchStream(checkpointLocation);
  }

  /** Of a source of its own: Spark keeps one reader a source, which would answer other queries with the rows of this. */
  PythonScan python(PythonDataSourceV2 source) {
    return new PythonScan(source, Python.NAME, schema, new CaseInsensitiveStringMap(options), new Filter[0]);
  }

  public boolean equals(Object other) {
    return other instanceof LanceScan && ((LanceScan) other).schema.equals(schema)
        && ((LanceScan) other).options.equals(options);
  }

  public int hashCode() { return options.hashCode(); }
}

/** Plans in the driver's Python process where that answers, else in a worker; reads as any Python data source. */
final class LanceBatch implements Batch {
  private final LanceScan scan;
  private Batch python;

  LanceBatch(LanceScan scan) { this.scan = scan; }

  private synchronized Batch python() {
    if (python != null) return python;
    PythonDataSourceV2 source = Python.source();
    Map plan = Python.askDriver("plan", scan.options, scan.schema);
    if (plan != null) {
      List partitions = new ArrayList();
      List encoded = (List) plan.get("partitions");
      for (int i = 0; i < encoded.size(); i++) partitions.add(Base64.getDecoder().decode((String) encoded.get(i)));
      source.setReadInfo(new PythonDataSourceReadInfo(Base64.getDecoder().decode((String) plan.get("function")),
          scala.jdk.javaapi.CollectionConverters.asScala(partitions).toSeq()));
    }
    python = scan.python(source).toBatch();
    return python;
  }

  public InputPartition[] planInputPartitions() { return python().planInputPartitions(); }
  public PartitionReaderFactory createReaderFactory() { return python().createReaderFactory(); }
  public boolean equals(Object other) { return other instanceof LanceBatch && ((LanceBatch) other).scan.equals(scan); }
  public int hashCode() { return scan.hashCode(); }
}

final class LanceStatistics implements Statistics {
  private final long rows;
  private final long size;

  LanceStatistics(long rows, long size) {
    this.rows = rows;
    this.size = size;
  }

  public OptionalLong numRows() { return OptionalLong.of(rows); }
  public OptionalLong sizeInBytes() { return OptionalLong.of(size); }
}

/** An answer that is known while Spark plans: no task runs. */
final class CountScan implements LocalScan {
  private final Facts facts;
  private final int numCounts;

  CountScan(Facts facts, int numCounts) {
    this.facts = facts;
    this.numCounts = numCounts;
  }

  public StructType readSchema() {
    StructType counts = new StructType();
    for (int i = 0; i < numCounts; i++) counts = counts.add("count_" + i, DataTypes.LongType, false);
    return counts;
  }

  public InternalRow[] rows() {
    Object[] counts = new Object[numCounts];
    Arrays.fill(counts, Long.valueOf(facts.rows()));
    return new InternalRow[] {new GenericInternalRow(counts)};
  }

  public String description() { return Python.NAME + " " + facts.name() + ", count(*) of the manifest"; }
}
