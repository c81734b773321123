package lance;

import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A table of a catalog for Spark 4.2 and newer: it tells which changes can fit it to new rows, and its columns have ids.
 * By these Spark notices that a column was dropped and added again since a query was analyzed.
 */
final class EvolvingTable extends NamedTable implements SupportsSchemaEvolution {
  private final StructType columns;
  private final boolean isIdentified;

  EvolvingTable(String name, StructType schema, Map options, Facts facts, Map properties) {
    super(name, schema, options, facts, properties);
    this.isIdentified = facts != null && facts.fieldIds() != null;
    this.columns = isIdentified ? (StructType) identified(schema, facts.fieldIds().iterator()) : schema;
  }

  public Column[] columns() { return CatalogV2Util.structTypeToV2Columns(columns, isIdentified); }

  public boolean supportsColumnChange(TableChange.ColumnChange change) { return Evolution.supports(change); }

  LanceTable renewed(Facts facts) { return new EvolvingTable(name(), schema(), options, facts, properties()); }

  private static DataType identified(DataType type, Iterator ids) {
    if (type instanceof ArrayType) {
      ArrayType array = (ArrayType) type;
      return new ArrayType(identified(array.elementType(), ids), array.containsNull());
    }
    if (type instanceof MapType) {
      MapType map = (MapType) type;
      DataType key = identified(map.keyType(), ids);
      return new MapType(key, identified(map.valueType(), ids), map.valueContainsNull());
    }
    if (!(type instanceof StructType)) return type;
    StructField[] fields = ((StructType) type).fields();
    StructField[] found = new StructField[fields.length];
    for (int i = 0; i < fields.length; i++) {
      Object id = ids.next();
      DataType below = identified(fields[i].dataType(), ids);
      StructField field = new StructField(fields[i].name(), below, fields[i].nullable(), fields[i].metadata());
      found[i] = id == null ? field : field.withId(id.toString());
    }
    return new StructType(found);
  }
}
