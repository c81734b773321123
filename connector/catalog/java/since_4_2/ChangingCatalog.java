package lance;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog whose tables have the clause CHANGES, of Spark 4.2 and newer: it reads the change feed. */
abstract class ChangingCatalog implements TableCatalog {
  private static final String[] OF_SPARK = {"startingVersion", "endingVersion", "startingTimestamp", "endingTimestamp",
      "startingBoundInclusive", "endingBoundInclusive", "deduplicationMode", "computeUpdates"};

  abstract Map options(Identifier table);
  abstract Table load(Identifier table, Map options) throws NoSuchTableException;

  public Changelog loadChangelog(Identifier table, ChangelogContext context, CaseInsensitiveStringMap more)
      throws NoSuchTableException {
    Map options = QueryOptions.of(options(table), own(more));
    options.put("readChangeFeed", "true");
    bound(options, context.range());
    LanceTable found = (LanceTable) load(table, options);
    refuse(context, found);
    return new Feed(found);
  }

  /** Spark computes both by an id of rows among the columns, which a table does not have. It hides the reason of another
   * kind of exception. */
  private static void refuse(ChangelogContext context, LanceTable table) {
    if (context.deduplicationMode() == ChangelogContext.DeduplicationMode.NET_CHANGES) {
      throw new IllegalArgumentException("net changes of " + table.name() + " are not available: leave out"
          + " deduplicationMode = 'netChanges' to read the changes of each version");
    }
    if (context.computeUpdates() && !table.loaded().hasUpdates()) {
      throw new IllegalArgumentException("updates of " + table.name() + " are deletes and inserts, because the table has"
          + " no stable row ids: leave out computeUpdates, or create the table with enable_stable_row_ids = true");
    }
  }

  /** The options of a query without those that the clause sets, which Spark has understood. */
  static Map own(CaseInsensitiveStringMap given) {
    Map own = Python.merged(given.asCaseSensitiveMap(), Collections.emptyMap());
    for (int i = 0; i < OF_SPARK.length; i++) own.remove(OF_SPARK[i]);
    return own;
  }

  /** A stream may have no bounds: it starts with the rows of the latest version. */
  private static void bound(Map options, ChangelogRange range) {
    long after = range.startingBoundInclusive() ? 0 : 1;
    long before = range.endingBoundInclusive() ? 0 : 1;
    if (range instanceof ChangelogRange.VersionRange) {
      ChangelogRange.VersionRange versions = (ChangelogRange.VersionRange) range;
      options.put("startingVersion", String.valueOf(number(versions.startingVersion()) + after));
      if (versions.endingVersion().isPresent()) {
        options.put("endingVersion", String.valueOf(number((String) versions.endingVersion().get()) - before));
      }
    } else if (range instanceof ChangelogRange.TimestampRange) {
      ChangelogRange.TimestampRange times = (ChangelogRange.TimestampRange) range;
      options.put("startingTimestamp", String.valueOf(times.startingTimestamp() + after));
      if (times.endingTimestamp().isPresent()) {
        options.put("endingTimestamp", String.valueOf(((Long) times.endingTimestamp().get()).longValue() - before));
      }
    }
  }

  private static long number(String version) {
    if (version.matches("[0-9]{1,18}")) return Long.parseLong(version);
    throw new IllegalArgumentException("CHANGES takes the numbers of versions, but " + version + " is given: give a number,"
        + " or a timestamp");
  }
}

/**
 * The changes of a table. Each version is compared with the one before it, so that no row is carried over. What Spark
 * would compute from the others of these answers, the catalog has refused.
 */
final class Feed implements Changelog {
  private final LanceTable table;

  Feed(LanceTable table) { this.table = table; }

  public String name() { return table.name(); }

  public Column[] columns() {
    StructField[] fields = table.schema().fields();
    Column[] columns = new Column[fields.length];
    for (int i = 0; i < fields.length; i++) {
      columns[i] = Column.create(fields[i].name(), fields[i].dataType(), fields[i].nullable());
    }
    return columns;
  }

  public boolean containsCarryoverRows() { return false; }
  public boolean containsIntermediateChanges() { return false; }
  public boolean representsUpdateAsDeleteAndInsert() { return false; }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    return table.newScanBuilder(new CaseInsensitiveStringMap(ChangingCatalog.own(more)));
  }
}
