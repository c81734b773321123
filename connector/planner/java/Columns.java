package lance;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collections;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.Iterator;

/**
 * Reads that hand Spark the batches of Python workers unchanged. Spark's own reader copies them into rows first, which
 * costs more than most queries do with them.
 *
 * Spark's iterator of rows is made of those batches by flatMap and then map. The reader is serialized, so executors
 * need this class: see `areReachable`.
 */
final class Columns implements PartitionReaderFactory {
  private static final String READER =
      "org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory$$anon$1";
  private static final String EVALUATOR =
      "org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory$MapInBatchEvaluator";
  private static final Class[] MADE_BY = find();

  private final PartitionReaderFactory rows;

  Columns(PartitionReaderFactory rows) { this.rows = rows; }

  /** Whether this version of Spark has the expected fields, and the executors have the class. */
  static boolean areReachable() {
    if (MADE_BY == null) return false;
    SparkContext context = SparkContext$.MODULE$.getOrCreate();
    return context.isLocal()
        || Python.jar != null && context.listJars().mkString().contains(new File(Python.jar).getName());
  }

  /** Returns the classes of the iterators that map and flatMap return; null if Spark reads in an unknown way. */
  private static Class[] find() {
    try {
      boolean isFlatMapped = false;
      Method[] methods = Class.forName(EVALUATOR).getDeclaredMethods();
      for (int i = 0; i < methods.length; i++) {
        Class[] given = methods[i].getParameterTypes();
        isFlatMapped |= given.length > 0 && given[given.length - 1] == ColumnarBatch.class
            && methods[i].getReturnType() == Iterator.class;
      }
      Class.forName(READER).getDeclaredField("outputIter");
      Iterator none = scala.jdk.javaapi.CollectionConverters.asScala(Collections.emptyList().iterator());
      Iterator flat = none.flatMap(null);
      Iterator mapped = flat.map(null);
      Class[] found = {mapped.getClass(), flat.getClass()};
      return isFlatMapped && source(mapped, found) == none ? found : null;
    } catch (Exception e) {
      return null;
    } catch (LinkageError e) {
      return null;
    }
  }

  /** The source of an iterator that flatMap, and possibly map, has made. */
  private static Iterator source(Object iterator, Class[] madeBy) throws ReflectiveOperationException {
    Object found = iterator;
    while (found.getClass() == madeBy[0]) found = field(found, "$outer");
    if (found.getClass() != madeBy[1]) throw new NoSuchFieldException(found.getClass().getName());
    return (Iterator) field(found, "$outer");
  }

  private static Object field(Object of, String name) throws ReflectiveOperationException {
    Field field = of.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  static Iterator batches(PartitionReader rows) {
    try {
      return source(field(rows, "outputIter"), MADE_BY);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this version of Spark reads from Python in another way than those that are known; "
          + "set spark.lance.planner.enabled to false", e);
    }
  }

  public boolean supportColumnarReads(InputPartition partition) { return true; }
  public PartitionReader createReader(InputPartition partition) { return rows.createReader(partition); }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return new BatchReader(rows.createReader(partition));
  }
}

/** Reads the batches from which Spark's reader makes rows; each has one column, a struct. */
final class BatchReader implements PartitionReader {
  private final PartitionReader rows;
  private final Iterator batches;

  BatchReader(PartitionReader rows) {
    this.rows = rows;
    this.batches = Columns.batches(rows);
  }

  public boolean next() { return batches.hasNext(); }

  public Object get() {
    ColumnarBatch batch = (ColumnarBatch) batches.next();
    ArrowColumnVector struct = (ArrowColumnVector) batch.column(0);
    ColumnVector[] columns = new ColumnVector[((StructType) struct.dataType()).size()];
    for (int i = 0; i < columns.length; i++) columns[i] = BorrowedColumn.of((ArrowColumnVector) struct.getChild(i));
    return new ColumnarBatch(columns, batch.numRows());
  }

  public void initMetricsValues(CustomTaskMetric[] metrics) { rows.initMetricsValues(metrics); }
  public CustomTaskMetric[] currentMetricsValues() { return rows.currentMetricsValues(); }
  public void close() throws IOException { rows.close(); }
}
