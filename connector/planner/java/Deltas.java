package lance;

import java.lang.reflect.Constructor;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.AppendDataExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy;
import org.apache.spark.sql.execution.datasources.v2.WriteDeltaExec;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * Plans the write of deltas. Spark's own, WriteDeltaExec, has writers in Java only; here a delta is planned as an
 * append of rows (operation, columns, address) to a Python writer.
 */
final class Deltas {
  private Deltas() {}

  /** Returns null for plans other than deltas of Lance tables. */
  static SparkPlan plan(SparkSession session, LogicalPlan plan) {
    if (!(plan instanceof WriteDelta)) return null;
    WriteDelta delta = (WriteDelta) plan;
    if (delta.write().isEmpty() || !(delta.write().get() instanceof Delta)) return null;
    WriteDeltaExec spark = (WriteDeltaExec) new DataSourceV2Strategy(session).apply(plan).head();
    RowLevel operation = ((Delta) delta.write().get()).operation;
    String label = operation.command() + " " + operation.options.get("path");
    return new LabelledCommand(append(spark, write(delta, (Delta) delta.write().get())), label);
  }

  private static Write write(WriteDelta plan, Delta delta) {
    Map form = delta.operation.form();
    (delta.narrowed == null ? DeltaRows.of(plan) : delta.narrowed).addTo(form);
    form.put("repeats", Boolean.valueOf(repeats(plan.query())));
    Map all = Python.merged(delta.operation.options, delta.info.options().asCaseSensitiveMap());
    all.put("__lance.delta", Python.json(form));
    LogicalWriteInfo info = new DeltaInfo(delta.info.queryId(), plan.query().schema(), all);
    Write python = new PythonWriteBuilder(new DriverWrites(), Python.NAME, info).build();
    return new RefreshingWrite(python, all, (String) form.get("command"));
  }

  /**
   * Whether a row may be deleted more than once: by a MERGE whose only clause for matched rows deletes all of them. Spark
   * lets several rows of the source match a row then.
   */
  private static boolean repeats(LogicalPlan plan) {
    if (plan instanceof MergeRows) return !((MergeRows) plan).checkCardinality();
    return plan.children().size() == 1 && repeats((LogicalPlan) plan.children().head());
  }

  /** The constructor has other parameters in Spark 4.1 than later, so they are identified by their types. */
  private static SparkPlan append(WriteDeltaExec spark, Write write) {
    Constructor constructor = AppendDataExec.class.getConstructors()[0];
    Class[] types = constructor.getParameterTypes();
    Object[] values = new Object[types.length];
    for (int i = 0; i < types.length; i++) {
      if (types[i] == SparkPlan.class) values[i] = spark.query();
      else if (types[i] == scala.Function0.class) values[i] = spark.refreshCache();
      else if (types[i] == Write.class) values[i] = write;
      else if (types[i] == String.class) values[i] = Python.NAME;
      else if (types[i] == Option.class) values[i] = Option.empty();
      else throw new UnsupportedOperationException("this version of Spark plans appends by " + constructor);
    }
    try {
      return (SparkPlan) constructor.newInstance(values);
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException("this version of Spark plans appends by " + constructor, e);
    }
  }
}

/** The rows of a delta, as an append of them. */
final class DeltaInfo implements LogicalWriteInfo {
  private final String queryId;
  private final StructType schema;
  private final Map options;

  DeltaInfo(String queryId, StructType schema, Map options) {
    this.queryId = queryId;
    this.schema = schema;
    this.options = options;
  }

  public CaseInsensitiveStringMap options() { return new CaseInsensitiveStringMap(options); }
  public String queryId() { return queryId; }
  public StructType schema() { return schema; }
}
