package lance;

import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/** The clauses that divide a table in Spark; Lance tables refuse all of them. */
final class Divisions {
  private Divisions() {}

  static void refuse(Transform[] transforms) {
    StringBuilder clauses = new StringBuilder();
    Set columns = new LinkedHashSet();
    for (int i = 0; i < transforms.length; i++) {
      NamedReference[] references = transforms[i].references();
      Set own = new LinkedHashSet();
      for (int j = 0; j < references.length; j++) own.add(references[j].describe());
      columns.addAll(own);
      if (i > 0) clauses.append(", ");
      clauses.append(clause(transforms[i].name())).append(list(own));
    }
    if (transforms.length > 0) throw refusal(clauses.toString(), list(columns));
  }

  static RuntimeException refusal(String clause, String columns) {
    return new UnsupportedOperationException("Lance tables are not divided by the values of columns: leave out " + clause
        + ". Zone maps take its place: a query skips the parts of a table whose minimum and maximum rule them out,"
        + " which are many if the rows are sorted when they are written, by ORDER BY or df.sort, here by " + columns);
  }

  private static String clause(String transform) {
    if (transform.equals("cluster_by")) return "CLUSTER BY or clusterBy ";
    if (transform.equals("bucket")) return "CLUSTERED BY ... INTO BUCKETS or bucketBy ";
    if (transform.equals("sorted_bucket")) return "CLUSTERED BY ... SORTED BY ... INTO BUCKETS or bucketBy and sortBy ";
    return "PARTITIONED BY or partitionBy ";
  }

  private static String list(Set names) { return names.toString().replace('[', '(').replace(']', ')'); }
}
