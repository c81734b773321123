package lance;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * df.write.save in all four modes. For every table that takes batches Spark refuses errorifexists, its default, and
 * ignore, before the table learns the mode. So the table of DataFrameWriter takes no batches, and Spark passes rows and
 * mode to createRelation. That checks whether the table exists, and saves again in a mode that Spark accepts, with an
 * option that marks the second save.
 */
final class Saving {
  private static final String MODE = "__lance.mode";
  private static final String[] DIVISIONS = {"__partition_columns", "__clustering_columns"};

  private Saving() {}

  static boolean isAsking() { return Callers.end(".DataFrameWriter"); }

  static boolean isUnderWay(Map options) { return options.containsKey(MODE); }

  /** The option that tells a table that a write has a mode, and the writer whether to create the table. */
  static Map mode(boolean creates) { return Collections.singletonMap(MODE, creates ? "create" : "change"); }

  static BaseRelation save(SQLContext context, SaveMode mode, scala.collection.immutable.Map given, Dataset rows) {
    if (given instanceof CaseInsensitiveMap) given = ((CaseInsensitiveMap) given).originalMap();
    Map options = new HashMap(CollectionConverters.asJava(given));
    for (int i = 0; i < DIVISIONS.length; i++) {
      if (options.containsKey(DIVISIONS[i])) {
        throw Divisions.refusal("partitionBy or clusterBy", (String) options.get(DIVISIONS[i]));
      }
    }
    boolean creates = mode == SaveMode.ErrorIfExists || mode == SaveMode.Ignore;
    if (!creates || Boolean.FALSE.equals(Python.ask("exists", options, null).get("exists"))) {
      options.putAll(mode(creates));
      rows.write().format(Python.NAME).options(options).mode(creates ? SaveMode.Append : mode).save();
    } else if (mode == SaveMode.ErrorIfExists) {
      String path = (String) Python.merged(options, Collections.emptyMap()).get("path");
      Platform.throwException(QueryCompilationErrors$.MODULE$.outputPathAlreadyExistsError(new Path(path)));
    }
    return new Saved(context, rows.schema());
  }
}

/** The result that createRelation must return; nobody reads it. */
final class Saved extends BaseRelation {
  private final SQLContext context;
  private final StructType schema;

  Saved(SQLContext context, StructType schema) {
    this.context = context;
    this.schema = schema;
  }

  public SQLContext sqlContext() { return context; }
  public StructType schema() { return schema; }
}
