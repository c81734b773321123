package lance;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The source that Spark finds for format("lance") and USING lance once this class is visible to the driver: Spark looks
 * for a class "lance.DefaultSource" before it looks for a Python data source "lance". If the planner is turned off, the
 * class answers as Spark's own wrapper of the Python data source does.
 *
 * Janino compiles these classes, so they are plain: no lambdas, no generics.
 */
public class DefaultSource implements TableProvider, CreatableRelationProvider {
  private final PythonDataSourceV2 plain = Python.source();
  private Facts facts;

  /** Spark makes an instance for each lookup of the source, thus before it plans a command on a table of a catalog. */
  public DefaultSource() { Commands.install(); }

  static boolean enabled() { return isOn("spark.lance.planner.enabled"); }

  /** Whether a setting is true, as it is by default. */
  static boolean isOn(String setting) {
    return "true".equalsIgnoreCase(SQLConf$.MODULE$.get().getConfString(setting, "true"));
  }

  public boolean supportsExternalMetadata() { return true; }
  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) { return new Transform[0]; }

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    if (!enabled() || isPrivate(options)) return plain.inferSchema(options);
    facts = Facts.of(declared(options.asCaseSensitiveMap()), null);
    return facts.schema();
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map options) {
    if (!enabled()) return plain.getTable(schema, partitioning, options);
    if (isPrivate(options)) return new DriverWrites().getTable(schema, partitioning, options);
    boolean written = isCatalogs(options) || !Saving.isAsking() || Saving.isUnderWay(options);
    Facts known = facts != null && schema.equals(facts.schema()) ? facts : null;
    return new LanceTable(schema, declared(options), known, written);
  }

  /** DataFrameWriter.save ends here, as its table takes no batches. */
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset rows) {
    return Saving.save(context, mode, options, rows);
  }

  /** The writer refuses types that cannot be stored, and says why. */
  public boolean supportsDataType(DataType type) { return true; }

  /** Whether a job of the library reads or writes, of whose rows the planner knows nothing. */
  private static boolean isPrivate(Map options) { return options.containsKey("__lance.private"); }

  private static boolean isCatalogs(Map options) { return options.containsKey(TableCatalog.PROP_PROVIDER); }

  /**
   * The options of a read or write, and the time zone for a timestamp among them. For a table of a catalog (CREATE
   * TABLE t USING lance OPTIONS (...) LOCATION ...) Spark passes the options as properties with a prefix, and the path
   * as a URI without escapes.
   */
  static Map declared(Map given) {
    Map options = new HashMap(given);
    options.put("__lance.time_zone", SQLConf$.MODULE$.get().sessionLocalTimeZone());
    if (!isCatalogs(given)) return options;
    options.keySet().removeAll(given.keySet());
    options.put("__lance.catalog", "true");
    for (Iterator names = given.keySet().iterator(); names.hasNext(); ) {
      String name = (String) names.next();
      if (name.startsWith(TableCatalog.OPTION_PREFIX)) {
        options.put(name.substring(TableCatalog.OPTION_PREFIX.length()), given.get(name));
      }
    }
    String path = (String) given.get("path");
    if (path != null) {
      path = new Path(path).toString();
      options.put("path", path.startsWith("file:/") ? path.substring("file:".length()) : path);
    }
    return options;
  }
}
