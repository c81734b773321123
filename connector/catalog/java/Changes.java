package lance;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;

/** The changes of an ALTER TABLE as Python takes them: see connector/catalog/alterations.py. */
final class Changes {
  private final String table;
  private final List all = new ArrayList();

  private Changes(String table) { this.table = table; }

  static Map of(String table, TableChange[] changes) {
    Changes described = new Changes(table);
    for (int i = 0; i < changes.length; i++) described.add(changes[i]);
    Map details = new LinkedHashMap();
    details.put("changes", described.all);
    return details;
  }

  private void add(TableChange change) {
    if (change instanceof TableChange.SetProperty) {
      TableChange.SetProperty set = (TableChange.SetProperty) change;
      put("property", set.property(), set.value());
    } else if (change instanceof TableChange.RemoveProperty) {
      put("property", ((TableChange.RemoveProperty) change).property(), null);
    } else if (change instanceof TableChange.AddColumn) {
      put("add", ((TableChange.AddColumn) change).fieldNames(), column((TableChange.AddColumn) change));
    } else if (change instanceof TableChange.DeleteColumn) {
      put("drop", ((TableChange.DeleteColumn) change).fieldNames(), null);
    } else if (change instanceof TableChange.RenameColumn) {
      put("name", ((TableChange.RenameColumn) change).fieldNames(), ((TableChange.RenameColumn) change).newName());
    } else if (change instanceof TableChange.UpdateColumnNullability) {
      TableChange.UpdateColumnNullability update = (TableChange.UpdateColumnNullability) change;
      put("nullable", update.fieldNames(), Boolean.valueOf(update.nullable()));
    } else if (change instanceof TableChange.UpdateColumnType) {
      TableChange.UpdateColumnType update = (TableChange.UpdateColumnType) change;
      put("type", update.fieldNames(), json(update.fieldNames(), update.newDataType(), null, null));
    } else if (change instanceof TableChange.UpdateColumnComment) {
      TableChange.UpdateColumnComment update = (TableChange.UpdateColumnComment) change;
      put("comment", update.fieldNames(), update.newComment());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
      TableChange.UpdateColumnDefaultValue update = (TableChange.UpdateColumnDefaultValue) change;
      if (update.fieldNames().length > 1) throw refusal("ALTER COLUMN SET or DROP DEFAULT of a field");
      put("default", update.fieldNames(), update.newDefaultValue());
    } else if (change instanceof TableChange.AddConstraint) {
      put("key", Keys.columns(table, ((TableChange.AddConstraint) change).constraint()), null);
    } else if (change instanceof TableChange.DropConstraint) {
      throw new UnsupportedOperationException("ALTER TABLE " + table + " DROP CONSTRAINT: the primary key of a table stays"
          + " until CREATE OR REPLACE TABLE replaces the table; nothing was changed");
    } else {
      throw refusal(change instanceof TableChange.UpdateColumnPosition ? "ALTER COLUMN FIRST or AFTER" : Commands.clause(change));
    }
  }

  private void put(String kind, Object name, Object value) {
    Map one = new LinkedHashMap();
    one.put("kind", kind);
    one.put("name", name);
    one.put("value", value);
    all.add(one);
  }

  private String column(TableChange.AddColumn add) {
    if (add.position() != null) throw refusal("ADD COLUMN FIRST or AFTER");
    if (add.defaultValue() != null && add.fieldNames().length > 1) throw refusal("ADD COLUMN of a field with DEFAULT");
    if (!add.isNullable()) throw refusal("ADD COLUMN NOT NULL");
    return json(add.fieldNames(), add.dataType(), add.comment(), add.defaultValue());
  }

  /** A schema of one column, named by the last part of a path. */
  private static String json(String[] names, DataType type, String comment, ColumnDefaultValue value) {
    Column column = Column.create(names[names.length - 1], type, true, comment, value, null);
    return CatalogV2Util.v2ColumnsToStructType(new Column[] {column}).json();
  }

  private RuntimeException refusal(String clause) {
    return new UnsupportedOperationException("ALTER TABLE " + table + " " + clause + " is not supported; nothing was"
        + " changed. CREATE OR REPLACE TABLE " + table + " AS SELECT ..., which may read the table itself, gives it the"
        + " columns that the query has, in their order");
  }
}
