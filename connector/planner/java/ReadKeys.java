package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/**
 * Keys of small inputs that the driver's Python process reads while it plans the tasks of the scans that they filter, as
 * connector/read/keys.py describes. A query of Spark's for them, or a broadcast, would have to end before these scans start.
 */
final class ReadKeys {
  /** Types of which equal values are the same to Python and to joins. */
  private static final Set TYPES = new HashSet(Arrays.asList(new String[] {
      "byte", "short", "integer", "long", "decimal", "date", "string", "timestamp", "timestamp_ntz"}));

  private ReadKeys() {}

  /** Whether the driver can read the keys of a place: a column of a scan, with nothing but known keys over it. */
  static boolean areReadable(Place from) {
    AttributeReference column = column(from.chain, from.input.node, from.column);
    LanceScan scan = from.input.scan();
    if (column == null || scan == null || !TYPES.contains(column.dataType().typeName().split("\\(")[0])) return false;
    for (int i = 0; i < from.input.filters.size(); i++) if (!((Edge) from.input.filters.get(i)).isRead) return false;
    for (int i = 0; i < from.input.semijoins.size(); i++) {
      if (!areReadable(((Edge) from.input.semijoins.get(i)).source)) return false;
    }
    return scan.isReadByDriver(column.name());
  }

  /** Follows a column down to the input; null if it is computed, or if a filter over the input is not the scan's own. */
  private static AttributeReference column(LogicalPlan plan, LogicalPlan node, AttributeReference column) {
    if (plan == node) return column;
    if (plan instanceof Filter) {
      boolean isKnown = isNotNull(Trees.unpruned(((Filter) plan).condition(), false));
      return isKnown ? column(((Filter) plan).child(), node, column) : null;
    }
    AttributeReference below = JoinGraph.named(((Project) plan).projectList(), column);
    return below == null ? null : column(((Project) plan).child(), node, below);
  }

  private static boolean isNotNull(Expression condition) {
    if (condition instanceof And) return isNotNull(((And) condition).left()) && isNotNull(((And) condition).right());
    return condition instanceof IsNotNull || condition.foldable();
  }

  /** A relation, whose scan skips the rows without the keys that the driver reads. */
  static LogicalPlan filtered(LogicalPlan node, Input input) {
    List keys = new ArrayList();
    add(keys, input.filters);
    if (keys.isEmpty()) return node;
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
    return ((LanceScan) relation.scan()).keyed(keys).in(relation, relation.output());
  }

  private static void add(List keys, List edges) {
    for (int i = 0; i < edges.size(); i++) if (((Edge) edges.get(i)).isRead) keys.add(keys((Edge) edges.get(i)));
  }

  /** What Python is told of the keys of an edge; see connector/read/keys.py. */
  private static Map keys(Edge edge) {
    Input input = edge.source.input;
    AttributeReference column = column(edge.source.chain, input.node, edge.source.column);
    List own = new ArrayList();
    add(own, input.filters);
    for (int i = 0; i < input.semijoins.size(); i++) own.add(keys((Edge) input.semijoins.get(i)));
    LanceScan scan = own.isEmpty() ? input.scan() : input.scan().keyed(own);
    Map all = new HashMap();
    all.put("column", edge.target.column.name());
    all.put("key", column.name());
    all.put("table", scan.name());
    all.put("trace", scan.trace());
    all.put("options", Hadoop.with(scan.options));
    all.put("schema", new StructType().add(column.name(), column.dataType(), true).json());
    return all;
  }
}
