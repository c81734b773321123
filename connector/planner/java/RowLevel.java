package lance;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A DELETE, UPDATE or MERGE whose tasks write a delta of rows, identified by address. Scan and write share a version.
 * */
final class RowLevel implements RowLevelOperationBuilder, SupportsDelta {
  private static final String ADDRESS = "_rowaddr";

  final Map options;
  final StructType schema;
  private final Facts facts;
  private final RowLevelOperation.Command command;

  /** Refuses impossible changes before anything is read. */
  RowLevel(StructType schema, Map options, Facts facts, RowLevelOperationInfo info) {
    this.schema = schema;
    this.options = options;
    this.facts = facts;
    this.command = info.command();
    options.put("__lance.snapshot", facts.snapshot());
    options.put("__lance.delta", Python.json(form()));
    Python.demand("check_change", options, schema);
    Commands.install();
  }

  private RowLevel(RowLevel old, Facts facts) {
    this.schema = old.schema;
    this.options = Python.merged(old.options, Collections.singletonMap("__lance.snapshot", facts.snapshot()));
    this.facts = facts;
    this.command = old.command;
    Python.demand("check_change", options, schema);
  }

  /** The same change, of another version. */
  RowLevel renewed(Facts facts) { return new RowLevel(this, facts); }

  /** Options that describe the change to Python; the strategy that plans its write adds more. */
  Map form() {
    Map form = new LinkedHashMap();
    form.put("command", command.toString());
    return form;
  }

  public RowLevelOperation build() { return this; }
  public String description() { return Python.NAME + " " + command; }
  public RowLevelOperation.Command command() { return command; }
  public NamedReference[] rowId() { return new NamedReference[] {FieldReference.column(ADDRESS)}; }
  public NamedReference[] requiredMetadataAttributes() { return new NamedReference[0]; }
  public boolean representUpdateAsDeleteAndInsert() { return false; }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    Map all = Python.merged(options, more.asCaseSensitiveMap());
    all.put("__lance.row_level", "true");
    return new LanceScanBuilder(schema, all, facts);
  }

  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Delta(this, info, null);
  }

  /**
   * Refuses WITH SCHEMA EVOLUTION: Spark asks for the capability, and ignores the clause if a table does not have it.
   * It asks for all capabilities in many places, and for this one in autoSchemaEvolution alone.
   */
  static void refuseEvolution() {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      if (calls[i].getMethodName().equals("autoSchemaEvolution")) {
        throw new UnsupportedOperationException("WITH SCHEMA EVOLUTION is for tables of a catalog that alters them;"
            + " nothing was changed. Name the table by a catalog of Lance tables, as lance.`/path/to/table.lance`; or"
            + " append with the option mergeSchema, which adds columns, and run the statement without the clause");
      }
    }
  }
}

/** The write of a delta in Spark's analyzed plan. Deltas plans another one, as its tasks write in Python. */
final class Delta implements DeltaWriteBuilder, DeltaWrite {
  final RowLevel operation;
  final LogicalWriteInfo info;
  final DeltaRows narrowed;

  /** The last parameter is null unless rows that are replaced lack what they keep; see KeptColumns. */
  Delta(RowLevel operation, LogicalWriteInfo info, DeltaRows narrowed) {
    this.operation = operation;
    this.info = info;
    this.narrowed = narrowed;
  }

  public DeltaWrite build() { return this; }
  public String description() { return operation.description(); }
}
