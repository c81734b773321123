package lance;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What Python knows of the version of a table that some options name. */
final class Facts {
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

  /** Asks for all columns; what is wrong is raised as the driver's Python process has it. */
  static Facts demanded(Map options) { return new Facts(Python.demand("describe", options, null)); }

  /** What keeps the table from being read with the schema that it was asked for; null if nothing does. */
  String misfit() { return (String) answer.get("misfit"); }

  StructType schema() { return schema; }

  /** Where the table is and its version, as Python wants to have it back. */
  String snapshot() { return (String) answer.get("snapshot"); }

  String uri() { return (String) answer.get("uri"); }
  String version() { return String.valueOf(answer.get("version")); }

  /** The same for people. */
  String name() { return (String) answer.get("name"); }

  /** How many rows there are at most. */
  long rows() { return ((Number) answer.get("rows")).longValue(); }

  long fragments() { return ((Number) answer.get("fragments")).longValue(); }

  /** Whether there are exactly so many rows. */
  boolean exact() { return ((Boolean) answer.get("exact")).booleanValue(); }

  /** About how many bytes the columns of a schema have. */
  long sizeInBytes(StructType columns) {
    Map sizes = (Map) answer.get("sizes");
    long total = 8 * rows();
    StructField[] fields = columns.fields();
    for (int i = 0; i < fields.length; i++) {
      Number size = (Number) sizes.get(fields[i].name());
      total += size == null ? 8 * rows() : size.longValue();
    }
    return Math.max(total, 1);
  }

  /** Whether predicates over a column mean the same to Python and to Spark. */
  boolean isFilterable(List path) { return filterable.contains(path); }
}
