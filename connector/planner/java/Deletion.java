package lance;

import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** A DELETE that the driver's Python process runs, without a Spark job. */
final class Deletion {
  private Deletion() {}

  /**
   * Refuses to delete through a view that shows some of the rows: Spark passes the table the condition of the DELETE
   * without that of the view.
   */
  static void check(DeleteFromTable delete) {
    Seq leaves = delete.table().collectLeaves();
    boolean isOurs = false;
    for (int i = 0; i < leaves.size(); i++) {
      isOurs |= leaves.apply(i) instanceof DataSourceV2ScanRelation
          && ((DataSourceV2ScanRelation) leaves.apply(i)).relation().table() instanceof LanceTable;
    }
    if (!isOurs) return;
    boolean isPlain = delete.table() instanceof DataSourceV2ScanRelation
        && ((DataSourceV2ScanRelation) delete.table()).scan() instanceof LanceScan
        && ((LanceScan) ((DataSourceV2ScanRelation) delete.table()).scan()).readsAllRows();
    if (!isPlain) {
      throw new UnsupportedOperationException("DELETE FROM a view of a Lance table is supported if the view shows all rows"
          + " and columns as they are; nothing was changed: delete from the table itself, and add the condition of the view");
    }
  }

  static boolean suits(Predicate[] predicates, StructType schema, Facts facts) {
    Predicates encoder = new Predicates(facts);
    for (int i = 0; i < predicates.length; i++) if (encoder.encode(predicates[i]) == null) return false;
    Set names = Predicates.columns(predicates);
    names.retainAll(Arrays.asList(schema.fieldNames()));
    return names.isEmpty() || facts.sizeInBytes(names) <= facts.jobBytes();
  }

  static void run(Predicate[] predicates, StructType schema, Map options, Facts facts) {
    String predicate = new Predicates(facts).conjunction(predicates);
    if (predicate != null) options.put("__lance.predicate", predicate);
    Python.demand("delete", options, schema);
    Caches.refresh((String) options.get("path"));
  }
}
