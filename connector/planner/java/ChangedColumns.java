package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.util.RowDeltaUtils;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/**
 * Finds the columns that an UPDATE or MERGE assigns to. Spark's analysis turns it into rows of all columns, so each
 * column is traced back: it is unchanged if it comes from the column of the same name, through projections and clauses
 * that keep it. In doubt it counts as changed. Its values may be partly those of the replaced rows if it is computed from
 * this column, or if some clauses keep it.
 */
final class ChangedColumns {
  final List changed = new ArrayList();
  final List partly = new ArrayList();
  private final Map columns = new HashMap();
  private final Map definitions = new HashMap();

  /**
   * @param query the plan that makes the rows of a delta
   * @param ordinals of the columns of the table among those of the query
   * @param names of the columns of the table
   */
  ChangedColumns(LogicalPlan query, List ordinals, List names) {
    look(query);
    Seq output = query.output().toIndexedSeq();
    for (int i = 0; i < names.size(); i++) {
      String name = (String) names.get(i);
      Expression value = (Expression) output.apply(((Integer) ordinals.get(i)).intValue());
      if (isKept(value, name)) continue;
      changed.add(name);
      if (isComputedFrom(value, name)) partly.add(name);
    }
  }

  private boolean isKept(Expression value, String name) {
    if (value instanceof Alias) return isKept(((Alias) value).child(), name);
    if (!(value instanceof Attribute)) return false;
    Object id = key((Attribute) value);
    if (columns.containsKey(id)) return columns.get(id).equals(name);
    List defined = (List) definitions.get(id);
    if (defined == null) return false;
    for (int i = 0; i < defined.size(); i++) if (!isKept((Expression) defined.get(i), name)) return false;
    return true;
  }

  private boolean isComputedFrom(Expression value, String name) {
    List parts = new ArrayList();
    if (value instanceof Attribute) {
      Object id = key((Attribute) value);
      if (columns.containsKey(id)) return columns.get(id).equals(name);
      if (definitions.containsKey(id)) parts = (List) definitions.get(id);
    } else {
      for (int i = 0; i < value.children().size(); i++) parts.add(value.children().apply(i));
    }
    for (int i = 0; i < parts.size(); i++) if (isComputedFrom((Expression) parts.get(i), name)) return true;
    return false;
  }

  private static Object key(Attribute attribute) { return Long.valueOf(attribute.exprId().id()); }

  private void look(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation) lookAtScan((DataSourceV2ScanRelation) plan);
    if (plan instanceof MergeRows) lookAtClauses((MergeRows) plan);
    if (plan instanceof Project) {
      Seq list = ((Project) plan).projectList();
      for (int i = 0; i < list.size(); i++) {
        if (!(list.apply(i) instanceof Alias)) continue;
        Alias alias = (Alias) list.apply(i);
        definitions.put(Long.valueOf(alias.exprId().id()), Arrays.asList(new Object[] {alias.child()}));
      }
    }
    Seq children = plan.children();
    for (int i = 0; i < children.size(); i++) look((LogicalPlan) children.apply(i));
  }

  private void lookAtScan(DataSourceV2ScanRelation relation) {
    if (!(relation.scan() instanceof LanceScan) || !((LanceScan) relation.scan()).isRowLevel()) return;
    Seq output = relation.output();
    for (int i = 0; i < output.size(); i++) {
      Attribute attribute = (Attribute) output.apply(i);
      columns.put(key(attribute), attribute.name());
    }
  }

  /** A column of the clauses' rows comes from each clause that updates. */
  private void lookAtClauses(MergeRows merge) {
    for (int i = 0; i < merge.output().size(); i++) {
      List defined = new ArrayList();
      addUpdates(defined, merge.matchedInstructions(), i);
      addUpdates(defined, merge.notMatchedBySourceInstructions(), i);
      definitions.put(key((Attribute) merge.output().apply(i)), defined);
    }
  }

  private static void addUpdates(List defined, Seq instructions, int ordinal) {
    for (int i = 0; i < instructions.size(); i++) {
      Seq outputs = ((MergeRows.Instruction) instructions.apply(i)).outputs();
      for (int j = 0; j < outputs.size(); j++) {
        Seq row = (Seq) outputs.apply(j);
        if (isUpdate(row.head())) defined.add(row.apply(ordinal));
      }
    }
  }

  /** Whether rows of a clause with an operation replace others; in doubt they do. */
  static boolean isUpdate(Object operation) {
    return !(operation instanceof Literal)
        || Integer.valueOf(RowDeltaUtils.UPDATE_OPERATION()).equals(((Literal) operation).value());
  }
}
