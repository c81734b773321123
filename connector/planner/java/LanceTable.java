package lance;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as Spark plans reads and writes of it. What runs in tasks is Spark's own wrapper of Python. */
final class LanceTable implements Table, SupportsRead, SupportsWrite, SupportsMetadataColumns {
  private final StructType schema;
  private final Map options;
  private final boolean written;
  private Facts facts;

  /** The last says whether Spark is to write it as a table. */
  LanceTable(StructType schema, Map options, Facts facts, boolean written) {
    this.schema = schema;
    this.options = options;
    this.facts = facts;
    this.written = written;
  }

  public String name() { return Python.NAME; }
  public StructType schema() { return schema; }

  /** Those of Spark's PythonTable, except streams. */
  public Set capabilities() {
    Set all = new HashSet(Arrays.asList(new TableCapability[] {TableCapability.BATCH_READ,
        TableCapability.BATCH_WRITE, TableCapability.TRUNCATE}));
    if (!written) all.remove(TableCapability.BATCH_WRITE);
    return all;
  }

  public MetadataColumn[] metadataColumns() {
    return new MetadataColumn[] {new RowColumn("_rowid", DataTypes.LongType, false),
        new RowColumn("_rowaddr", DataTypes.LongType, false), new RowColumn("_fragid", DataTypes.IntegerType, false),
        new RowColumn("_row_created_at_version", DataTypes.LongType, true),
        new RowColumn("_row_last_updated_at_version", DataTypes.LongType, true)};
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    Map all = Python.merged(options, more.asCaseSensitiveMap());
    return new LanceScanBuilder(schema, all, facts(all));
  }

  /** The version that the table had when it was first asked for, unless a query has options of its own. */
  private synchronized Facts facts(Map all) {
    if (!all.equals(Python.merged(options, Collections.emptyMap()))) return Facts.of(all, schema);
    if (facts == null) facts = Facts.of(all, schema);
    return facts;
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    Map all = Python.merged(options, info.options().asCaseSensitiveMap());
    return new PythonWriteBuilder(Python.source(), Python.NAME, new WriteInfo(info, all));
  }
}

/** What a table knows of every row; hidden until it is named. */
final class RowColumn implements MetadataColumn {
  private final String name;
  private final DataType type;
  private final boolean nullable;

  RowColumn(String name, DataType type, boolean nullable) {
    this.name = name;
    this.type = type;
    this.nullable = nullable;
  }

  public String name() { return name; }
  public DataType dataType() { return type; }
  public boolean isNullable() { return nullable; }
}

/** A write with the options of its table, too. */
final class WriteInfo implements LogicalWriteInfo {
  private final LogicalWriteInfo info;
  private final Map options;

  WriteInfo(LogicalWriteInfo info, Map options) {
    this.info = info;
    this.options = options;
  }

  public CaseInsensitiveStringMap options() { return new CaseInsensitiveStringMap(options); }
  public String queryId() { return info.queryId(); }
  public StructType schema() { return info.schema(); }
}
