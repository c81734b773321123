package lance;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** A catalog in Spark 4.1, which has no clause for the changes of tables. */
abstract class ChangingCatalog implements TableCatalog {
  abstract Map options(Identifier table);
  abstract Table load(Identifier table, Map options) throws NoSuchTableException;
}
