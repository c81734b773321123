package lance;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/**
 * Questions to Python. The driver's own Python process answers them through py4j in a millisecond. If it does not
 * answer, Spark forks a Python worker as for any Python data source.
 */
public final class Python {
  public static final String NAME = "lance";
  static final ObjectMapper JSON = new ObjectMapper();

  /** Takes a question as JSON and returns the answer as JSON; null where the driver has no Python process. */
  public static volatile Function callback;

  /** The data source as processes load it; null if Spark has to ask one for all data sources there are. */
  public static volatile UserDefinedPythonDataSource known;

  /** The path of the file that has these classes. */
  public static volatile String jar;

  private Python() {}

  static PythonDataSourceV2 source() { return new KnownSource(); }

  /** Returns null if the driver's Python process does not answer, or has an error to tell. */
  static Map hint(String what, Map options, StructType schema) {
    Map answer = reply(what, options, schema);
    return answer == null || answer.containsKey("error") ? null : answer;
  }

  /** Returns null if the driver's Python process does not answer. */
  static Map askDriver(String what, Map options, StructType schema) {
    Map answer = reply(what, options, schema);
    return answer == null ? null : checked(what, options, answer);
  }

  static Map ask(String what, Map options, StructType schema) {
    Map answer = askDriver(what, options, schema);
    return answer == null ? askWorker(what, options, schema) : answer;
  }

  /** Asks for a change. It may have been made though there is no answer, so no worker is asked then. */
  static Map demand(String what, Map options, StructType schema) {
    Function driver = callback;
    if (driver == null) return askWorker(what, options, schema);
    return checked(what, options, parse((String) driver.apply(question(what, options, schema))));
  }

  private static Map reply(String what, Map options, StructType schema) {
    Function driver = callback;
    if (driver == null) return null;
    try {
      return parse((String) driver.apply(question(what, options, schema)));
    } catch (RuntimeException e) {
      return null;
    }
  }

  /** Raises the error of an answer, if it is one, in the form of Spark's own. */
  private static Map checked(String what, Map options, Map answer) {
    if (answer.containsKey("error")) {
      String action = what.equals("act") ? (String) options.get("__lance.action") : what.equals("exists") ? "find" : what;
      Platform.throwException(
          QueryCompilationErrors$.MODULE$.pythonDataSourceError(action, NAME, (String) answer.get("error")));
    }
    return answer;
  }

  private static String question(String what, Map options, StructType schema) {
    Map question = new LinkedHashMap();
    question.put("ask", what);
    question.put("options", Hadoop.with(options));
    question.put("schema", schema == null ? null : schema.json());
    return json(question);
  }

  private static Map askWorker(String what, Map options, StructType schema) {
    Map all = new HashMap(Hadoop.with(options));
    all.put("__lance.ask", what);
    if (schema != null) all.put("__lance.schema", schema.json());
    PythonDataSourceCreationResult answer =
        source().getOrCreateDataSourceInPython(NAME, new CaseInsensitiveStringMap(all), scala.Option.empty());
    return checked(what, options, parse(answer.schema().fields()[0].metadata().getString("answer")));
  }

  /** Merges options; the second map overrides the first, ignoring the case of names. */
  static Map merged(Map base, Map more) {
    Map all = new TreeMap(String.CASE_INSENSITIVE_ORDER);
    all.putAll(base);
    all.putAll(more);
    return all;
  }

  static String json(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  static List list(String text) {
    try {
      return (List) JSON.readValue(text, List.class);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static Map parse(String text) {
    try {
      return (Map) JSON.readValue(text, Map.class);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}

/** Spark's own, which does not look for what is known. */
class KnownSource extends PythonDataSourceV2 {
  KnownSource() { setShortName(Python.NAME); }

  public UserDefinedPythonDataSource source() {
    UserDefinedPythonDataSource known = Python.known;
    return known == null ? super.source() : known;
  }
}
