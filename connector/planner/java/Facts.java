package lance;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Facts that Python knows about a version of a table; options name the version. */
final class Facts {
  private static final String JOB_BYTES = "spark.lance.job.minBytes";

  private final Map answer;
  private final Set filterable;
  private final StructType schema;

  private Facts(Map answer) {
    this.answer = answer;
    this.filterable = new HashSet((List) answer.get("filterable"));
    this.schema = (StructType) DataType.fromJson((String) answer.get("schema"));
  }

  /** Asks for the columns of a schema, or for all that the options name if it is null. */
  static Facts of(Map options, StructType schema) { return new Facts(Python.ask("describe", options, schema)); }

  /** The reason why the table cannot be read with the requested schema; null if it can. */
  String misfit() { return (String) answer.get("misfit"); }

  StructType schema() { return schema; }

  /** The location and version of the table, in the form that Python takes back. */
  String snapshot() { return (String) answer.get("snapshot"); }

  String uri() { return (String) answer.get("uri"); }
  String version() { return String.valueOf(answer.get("version")); }

  /** Digests of the transactions of this version and of those before it, in hexadecimal; null if it is no table's. */
  String trace() { return (String) answer.get("trace"); }

  /** Ids of the columns and of fields below them, in depth-first pre-order; null if it is no table's. */
  List fieldIds() { return (List) answer.get("field_ids"); }

  long number() { return ((Number) answer.get("version")).longValue(); }

  /** The location and version for messages. */
  String name() { return (String) answer.get("name"); }

  /** Upper bound of the number of rows. */
  long rows() { return ((Number) answer.get("rows")).longValue(); }

  long fragments() { return ((Number) answer.get("fragments")).longValue(); }

  /** Whether the upper bound is the exact number of rows. */
  boolean exact() { return ((Boolean) answer.get("exact")).booleanValue(); }

  /** Of a change feed: whether updates are told from deletes and inserts. */
  boolean hasUpdates() { return Boolean.TRUE.equals(answer.get("updates")); }

  /** Approximate size in bytes of the columns of a schema. */
  long sizeInBytes(StructType columns) { return sizeInBytes(Arrays.asList(columns.fieldNames())); }

  /** Approximate size in bytes of columns. */
  long sizeInBytes(Collection names) {
    Map sizes = (Map) answer.get("sizes");
    long total = 8 * rows();
    for (Iterator all = names.iterator(); all.hasNext(); ) {
      Number size = (Number) sizes.get(all.next());
      total += size == null ? 8 * rows() : size.longValue();
    }
    return Math.max(total, 1);
  }

  /** Maximum size of what the driver reads itself, without a job; see connector/jobs/sizes.py. */
  long jobBytes() {
    String given = SQLConf$.MODULE$.get().getConfString(JOB_BYTES, answer.get("job_bytes").toString());
    if (given.matches("[0-9]{1,18}")) return Long.parseLong(given);
    throw new IllegalArgumentException(JOB_BYTES + " must be a number of bytes, not " + given);
  }

  /** Whether tasks can aggregate rows: those of metadata tables and of change feeds cannot. */
  boolean isAggregated() { return Boolean.TRUE.equals(answer.get("aggregated")); }

  /** Whether predicates over a column mean the same in Python and in Spark. */
  boolean isFilterable(List path) { return filterable.contains(path); }
}
