package lance;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.StructType;

/** A table of a catalog that tells Spark 4.2 and newer which changes can fit it to new rows. */
final class EvolvingTable extends NamedTable implements SupportsSchemaEvolution {
  EvolvingTable(String name, StructType schema, Map options, Facts facts, Map properties) {
    super(name, schema, options, facts, properties);
  }

  public boolean supportsColumnChange(TableChange.ColumnChange change) { return Evolution.supports(change); }

  LanceTable renewed(Facts facts) { return new EvolvingTable(name(), schema(), options, facts, properties()); }
}
