package lance;

import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.unsafe.Platform;

/**
 * S3 settings of the session's Hadoop configuration, as an option that Python translates: keys, addresses, regions. The
 * name of the option makes Spark redact it wherever options are shown. Hadoop's defaults are left out.
 */
final class Hadoop {
  private static final String OPTION = "__lance.credentials";
  private static final String PREFIX = "fs.s3a.";
  private static final String[] NAMES = {"access.key", "secret.key", "session.token", "endpoint", "endpoint.region",
      "path.style.access", "connection.ssl.enabled", "aws.credentials.provider"};

  private Hadoop() {}

  /** Options of a table, and Hadoop's settings for its bucket. */
  static Map with(Map options) {
    if (options.containsKey(OPTION)) return options;
    String path = (String) Python.merged(options, Collections.emptyMap()).get("path");
    if (path == null || !path.toLowerCase().matches("s3[an]?://[^/]+.*")) return options;
    scala.Option session = SparkSession.getActiveSession();
    if (session.isEmpty()) session = SparkSession.getDefaultSession();
    if (session.isEmpty()) return options;
    Configuration hadoop = ((SparkSession) session.get()).sessionState().newHadoopConf();
    String bucket = path.substring(path.indexOf("://") + 3).split("/")[0];
    Map found = new LinkedHashMap();
    for (int i = 0; i < NAMES.length; i++) {
      String value = setting(hadoop, PREFIX + "bucket." + bucket + "." + NAMES[i]);
      if (value == null) value = setting(hadoop, PREFIX + NAMES[i]);
      if (value != null) found.put(NAMES[i], value);
    }
    if (found.isEmpty()) return options;
    Map all = new HashMap(options);
    all.put(OPTION, Python.json(found));
    return all;
  }

  /** A setting, or an entry of Hadoop's credential stores; null if it is not set. */
  private static String setting(Configuration hadoop, String name) {
    String[] sources = hadoop.getPropertySources(name);
    boolean isDefault = sources == null || sources.length == 0 || sources[sources.length - 1].endsWith("-default.xml");
    if (!isDefault) return hadoop.getTrimmed(name);
    if (!name.endsWith(".key") && !name.endsWith(".token")) return null;
    try {
      char[] secret = hadoop.getPassword(name);
      return secret == null ? null : new String(secret);
    } catch (java.io.IOException e) {
      Platform.throwException(e);
      return null;
    }
  }
}
