package lance;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.catalog.constraints.PrimaryKey;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * PRIMARY KEY, unenforced: metadata of columns, as in the reference. A merge that inserts a key fails if another merge
 * has inserted it concurrently; nothing else reads the key.
 */
final class Keys {
  private static final String MEMBER = "lance-schema:unenforced-primary-key";
  private static final String POSITION = MEMBER + ":position";

  private Keys() {}

  /** The columns of a table to be created, with the key that its constraints name. Columns of a query may bring other
   * keys. */
  static StructType declared(String table, StructType schema, Constraint[] constraints) {
    List key = new ArrayList();
    for (int i = 0; i < constraints.length; i++) key.addAll(columns(table, constraints[i]));
    StructField[] fields = schema.fields();
    StructField[] made = new StructField[fields.length];
    int found = 0;
    for (int i = 0; i < fields.length; i++) {
      MetadataBuilder metadata = new MetadataBuilder().withMetadata(fields[i].metadata()).remove(MEMBER).remove(POSITION);
      int place = place(key, fields[i].name());
      if (place >= 0) found++;
      if (place >= 0) metadata.putString(MEMBER, "true");
      if (place >= 0 && key.size() > 1) metadata.putString(POSITION, String.valueOf(place + 1));
      made[i] = new StructField(fields[i].name(), fields[i].dataType(), fields[i].nullable(), metadata.build());
    }
    if (found < key.size()) {
      throw new IllegalArgumentException("The primary key " + key + " of " + table + " does not consist of columns of the table;"
          + " nothing was changed");
    }
    return new StructType(made);
  }

  private static int place(List key, String column) {
    boolean isExact = SQLConf$.MODULE$.get().caseSensitiveAnalysis();
    for (int i = 0; i < key.size(); i++) {
      String name = (String) key.get(i);
      if (isExact ? name.equals(column) : name.equalsIgnoreCase(column)) return i;
    }
    return -1;
  }

  /** The columns of a primary key, in its order; other constraints are refused. */
  static List columns(String table, Constraint constraint) {
    if (!(constraint instanceof PrimaryKey)) {
      throw new UnsupportedOperationException("The constraint " + constraint.toDDL() + " of " + table + " is not supported,"
          + " since nothing enforces it; a Lance table can have a PRIMARY KEY ... NOT ENFORCED. Leave the constraint out, and"
          + " check the rows in the query that writes them");
    }
    List names = new ArrayList();
    NamedReference[] columns = ((PrimaryKey) constraint).columns();
    for (int i = 0; i < columns.length; i++) {
      if (columns[i].fieldNames().length > 1) {
        throw new UnsupportedOperationException("The primary key of " + table + " consists of columns, not of fields below"
            + " them, as " + String.join(".", columns[i].fieldNames()) + " is");
      }
      names.add(columns[i].fieldNames()[0]);
    }
    return names;
  }

  /** The primary key of a table, if it has one; names of constraints are not kept. */
  static Constraint[] of(StructType schema) {
    TreeMap byPlace = new TreeMap();
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      Metadata metadata = fields[i].metadata();
      if (!metadata.contains(MEMBER) && !metadata.contains(POSITION)) continue;
      long place = metadata.contains(POSITION) ? Long.parseLong(metadata.getString(POSITION)) : 0;
      byPlace.put(Long.valueOf(place * fields.length + i), FieldReference.column(fields[i].name()));
    }
    if (byPlace.isEmpty()) return new Constraint[0];
    NamedReference[] columns = (NamedReference[]) byPlace.values().toArray(new NamedReference[0]);
    PrimaryKey.Builder key = Constraint.primaryKey("primary_key", columns);
    key.enforced(false);
    key.rely(true);
    return new Constraint[] {key.build()};
  }
}
