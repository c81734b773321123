package lance;

import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceWriteInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's own, whose writes are planned, committed and aborted by the driver's Python process. Spark forks a process for
 * each of these, which imports all of the data source first.
 */
final class DriverWrites extends KnownSource {
  private UserDefinedPythonDataSource source;

  public synchronized UserDefinedPythonDataSource source() {
    if (source == null) source = new DriverSource(super.source());
    return source;
  }
}

final class DriverSource extends UserDefinedPythonDataSource {
  /** Messages of more bytes go to a process of their own, rather than through one string. */
  private static final long MOST_BYTES = 64L << 20;

  /** Of the write that the driver has planned. It ends no other. */
  private transient volatile byte[] writer;

  DriverSource(UserDefinedPythonDataSource spark) { super(spark.dataSourceCls()); }

  public PythonDataSourceWriteInfo createWriteInfoInPython(
      String provider, StructType schema, CaseInsensitiveStringMap options, boolean isOverwrite, boolean isStreaming) {
    Map form = new LinkedHashMap();
    form.put("overwrite", Boolean.valueOf(isOverwrite));
    form.put("streaming", Boolean.valueOf(isStreaming));
    Map all = Python.merged(options.asCaseSensitiveMap(), Collections.singletonMap("__lance.write", Python.json(form)));
    Map plan = Python.askDriver("write", all, schema);
    if (plan == null) return super.createWriteInfoInPython(provider, schema, options, isOverwrite, isStreaming);
    writer = decoded(plan.get("writer"));
    return new PythonDataSourceWriteInfo(decoded(plan.get("function")), writer);
  }

  public void commitWriteInPython(byte[] given, WriterCommitMessage[] messages, boolean isAbort) {
    byte[][] pickled = new byte[messages.length][];
    long size = 0;
    for (int i = 0; i < messages.length; i++) {
      if (messages[i] == null) continue;
      pickled[i] = ((PythonWriterCommitMessage) messages[i]).pickledMessage();
      size += pickled[i].length;
    }
    if (given != writer || size > MOST_BYTES) {
      super.commitWriteInPython(given, messages, isAbort);
      return;
    }
    Map form = new LinkedHashMap();
    form.put("writer", given);  // JSON has bytes in base64.
    form.put("messages", pickled);
    String what = isAbort ? "abort" : "commit";
    Python.demand(what, Collections.singletonMap("__lance.written", Python.json(form)), null);
  }

  private static byte[] decoded(Object text) { return Base64.getDecoder().decode((String) text); }

  /** Executors get Spark's own. */
  private Object writeReplace() { return new UserDefinedPythonDataSource(dataSourceCls()); }
}
