package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The form of the rows of a delta: where its query has the columns of the table and the address, which columns may change
 * in rows that are replaced, or only in some of them, and which these rows keep, as the writer then takes them from the
 * table.
 */
final class DeltaRows {
  final List ordinals;
  final List names;
  final ChangedColumns columns;
  final List kept;
  final int address;

  private DeltaRows(List ordinals, List names, ChangedColumns columns, List kept, int address) {
    this.ordinals = ordinals;
    this.names = names;
    this.columns = columns;
    this.kept = kept;
    this.address = address;
  }

  /**
   * Rows that have the values of all columns, or of none if they are deleted. If a statement names hidden columns, Spark
   * may have all of them among those of its rows.
   */
  static DeltaRows of(WriteDelta delta) {
    int address = ((Integer) ordinals(delta.projections().rowIdProjection()).get(0)).intValue();
    List none = Collections.EMPTY_LIST;
    Option projection = delta.projections().rowProjection();
    if (projection.isEmpty()) return new DeltaRows(none, none, new ChangedColumns(delta.query(), none, none), none, address);
    String[] given = ((ProjectingInternalRow) projection.get()).schema().fieldNames();
    List places = ordinals((ProjectingInternalRow) projection.get());
    Set stored = new HashSet(Arrays.asList(((Delta) delta.write().get()).operation.schema.fieldNames()));
    List ordinals = new ArrayList();
    List names = new ArrayList();
    for (int i = 0; i < given.length; i++) {
      if (!stored.contains(given[i]) && delta.query() instanceof MergeRows) throw refusal(given[i]);
      if (!stored.contains(given[i])) continue;
      ordinals.add(places.get(i));
      names.add(given[i]);
    }
    return new DeltaRows(ordinals, names, new ChangedColumns(delta.query(), ordinals, names), none, address);
  }

  /** Spark plans clauses whose rows have other columns than their output. */
  private static UnsupportedOperationException refusal(String hidden) {
    return new UnsupportedOperationException("MERGE cannot name hidden columns of its target, such as " + hidden
        + ": Spark loses them; nothing was changed. Name the rows by other columns");
  }

  private static List ordinals(ProjectingInternalRow projection) {
    List all = new ArrayList();
    Seq columns = (Seq) projection.colOrdinals();
    for (int i = 0; i < columns.size(); i++) all.add(columns.apply(i));
    return all;
  }

  /** The columns that do not change. */
  List unchanged() {
    List found = new ArrayList(names);
    found.removeAll(new HashSet(columns.changed));
    return found;
  }

  /** The places of the table's columns among those of the query that do not change. */
  Set unchangedOrdinals() {
    Set changed = new HashSet(columns.changed);
    Set found = new HashSet();
    for (int i = 0; i < names.size(); i++) if (!changed.contains(names.get(i))) found.add(ordinals.get(i));
    return found;
  }

  /** The same rows, whose values of unchanged columns count for new rows only. */
  DeltaRows keeping() { return new DeltaRows(ordinals, names, columns, unchanged(), address); }

  /** The same rows without their unchanged columns. */
  DeltaRows without() {
    Set leftOut = unchangedOrdinals();
    int last = address;
    for (int i = 0; i < ordinals.size(); i++) last = Math.max(last, ((Integer) ordinals.get(i)).intValue());
    int[] places = new int[last + 2];
    for (int i = 0; i <= last; i++) places[i + 1] = places[i] + (leftOut.contains(Integer.valueOf(i)) ? 0 : 1);
    List left = new ArrayList();
    List named = new ArrayList();
    for (int i = 0; i < names.size(); i++) {
      if (leftOut.contains(ordinals.get(i))) continue;
      left.add(Integer.valueOf(places[((Integer) ordinals.get(i)).intValue()]));
      named.add(names.get(i));
    }
    return new DeltaRows(left, named, columns, unchanged(), places[address]);
  }

  /** For Python; see connector/dml/delta_form.py. */
  void addTo(Map form) {
    form.put("row", ordinals);
    form.put("address", Collections.singletonList(Integer.valueOf(address)));
    form.put("names", names);
    form.put("changed", columns.changed);
    form.put("partly", columns.partly);
    form.put("kept", kept);
  }
}
