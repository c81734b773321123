package lance;

import java.net.URI;
import java.util.Arrays;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.TableSpec;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.datasources.v2.AtomicCreateTableAsSelectExec;
import org.apache.spark.sql.execution.datasources.v2.AtomicReplaceTableAsSelectExec;
import org.apache.spark.sql.execution.datasources.v2.CreateTableAsSelectExec;
import org.apache.spark.sql.execution.datasources.v2.CreateTableExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy;
import org.apache.spark.sql.execution.datasources.v2.ReplaceTableAsSelectExec;
import org.apache.spark.sql.execution.datasources.v2.ReplaceTableExec;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Plans those commands on Lance tables of the session catalog that lose data if Spark runs them its own way.
 *
 * Spark replaces such a table by dropping it first. When it creates one, it appends to the files at its location. A
 * catalog that stages changes avoids both, so these commands, and no others, get one: Staging.
 */
final class Commands extends SparkStrategy {
  /** The extensions of sessions that have rules which run before sources are asked. */
  private static final Set EXTENDED = Collections.newSetFromMap(new WeakHashMap());

  private final SparkSession session;

  private Commands(SparkSession session) { this.session = session; }

  /** Takes part in the planning of the active session, which looks up a table. Each session has own strategies. */
  static synchronized void install() {
    Statements.install();
    StreamChecks.install();
    Functions.install();
    Option active = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
    if (active.isEmpty()) return;
    SparkSession session = (SparkSession) active.get();
    if (EXTENDED.add(session.extensions())) {
      injectRule(session, new NullOperands());
      injectRule(session, new OfferedPatterns());
    }
    installRule(session, new Patterns());
    installRule(session, new KeptColumns());
    installRule(session, new MatchedRows());
    installRule(session, new GroupLimits());
    installRule(session, new RuntimeFilters());
    installRule(session, new DistinctRows());
    Seq strategies = session.experimental().extraStrategies();
    for (int i = 0; i < strategies.size(); i++) {
      if (strategies.apply(i) instanceof Commands) return;
    }
    session.experimental().extraStrategies_$eq((Seq) strategies.appended(new Commands(session)));
  }

  /** A rule takes part in the optimization of the queries of a session before sources are asked. */
  private static void injectRule(SparkSession session, final Rule rule) {
    session.extensions().injectOptimizerRule(new AbstractFunction1() {
      public Object apply(Object of) { return rule; }
    });
  }

  /** A rule takes part in the optimization of the queries of the session, once. */
  private static void installRule(SparkSession session, Rule rule) {
    Seq rules = session.experimental().extraOptimizations();
    for (int i = 0; i < rules.size(); i++) if (rules.apply(i).getClass() == rule.getClass()) return;
    session.experimental().extraOptimizations_$eq((Seq) rules.appended(rule));
  }

  public Seq apply(LogicalPlan plan) {
    TextMatch.refuseIn(plan);
    if (plan instanceof AlterTableCommand) refuseChangesOfColumns((AlterTableCommand) plan);
    if (plan instanceof DeleteFromTable) Deletion.check((DeleteFromTable) plan);
    if (plan instanceof CreateTableLikeCommand) refuseDivisions((CreateTableLikeCommand) plan);
    SparkPlan planned = isOfOurs(plan) ? plan(plan) : Joins.plan(session, plan);
    if (planned == null) planned = Deltas.plan(session, plan);
    if (planned == null) planned = FirstSteps.plan(session, plan);
    Seq none = (Seq) Nil$.MODULE$;
    return planned == null ? none : (Seq) none.appended(planned);
  }

  private void refuseDivisions(CreateTableLikeCommand command) {
    if (command.provider().isEmpty() || !Staging.isOurs(command.provider())) return;
    CatalogTable like = session.sessionState().catalog().getTempViewOrPermanentTableMetadata(command.sourceTable());
    Seq columns = like.bucketSpec().isEmpty()
        ? like.partitionColumnNames() : ((BucketSpec) like.bucketSpec().get()).bucketColumnNames();
    if (!columns.isEmpty()) {
      throw Divisions.refusal("LIKE " + like.identifier().table() + ", which is divided", columns.mkString("(", ", ", ")"));
    }
  }

  private static boolean isOfOurs(LogicalPlan plan) {
    if (!(plan instanceof V2CreateTablePlan)) return false;
    LogicalPlan name = ((V2CreateTablePlan) plan).name();
    TableSpecBase spec = spec(plan);
    if (spec == null || !(name instanceof ResolvedIdentifier)) return false;
    return CatalogV2Util.isSessionCatalog(((ResolvedIdentifier) name).catalog()) && Staging.isOurs(spec.provider());
  }

  private static TableSpecBase spec(LogicalPlan plan) {
    if (plan instanceof CreateTable) return ((CreateTable) plan).tableSpec();
    if (plan instanceof CreateTableAsSelect) return ((CreateTableAsSelect) plan).tableSpec();
    if (plan instanceof ReplaceTable) return ((ReplaceTable) plan).tableSpec();
    return plan instanceof ReplaceTableAsSelect ? ((ReplaceTableAsSelect) plan).tableSpec() : null;
  }

  /** Returns null for commands that Spark runs safely itself. */
  private SparkPlan plan(LogicalPlan plan) {
    Divisions.refuse(transforms(((V2CreateTablePlan) plan).partitioning()));
    Object spark = new DataSourceV2Strategy(session).apply(plan).head();
    if (spark instanceof CreateTableExec) {
      CreateTableExec create = (CreateTableExec) spark;
      TableSpec spec = create.tableSpec();
      StructType columns = CatalogV2Util.v2ColumnsToStructType(create.columns());
      URI managed = session.sessionState().catalog().defaultTablePath(Staging.identifier(create.identifier()));
      Staging.check(spec.location(), managed, Staging.properties(spec.options()), columns);
      return null;
    }
    if (!DefaultSource.enabled()) {
      throw new UnsupportedOperationException("Rows cannot be written to a Lance table of the catalog while"
          + " spark.lance.planner.enabled is false: set it to true, or save to a path; nothing was changed");
    }
    if (spark instanceof CreateTableAsSelectExec) return create((CreateTableAsSelect) plan, (CreateTableAsSelectExec) spark);
    if (spark instanceof ReplaceTableAsSelectExec) return replace((ReplaceTableAsSelectExec) spark);
    if (spark instanceof ReplaceTableExec) return replace((ReplaceTableExec) spark);
    throw new UnsupportedOperationException("Lance tables can be kept by Spark's own session catalog, not by the one that"
        + " spark.sql.catalog.spark_catalog names: save to a path; nothing was changed");
  }

  private SparkPlan create(CreateTableAsSelect plan, CreateTableAsSelectExec spark) {
    TableSpec spec = spark.tableSpec();
    if (spark.ifNotExists() && !spark.catalog().tableExists(spark.ident())
        && Staging.isTable(spec.location(), Staging.properties(spec.options()))) {
      // Existing rows are kept, and the catalog gets an entry for them.
      CreateTable known = new CreateTable(
          plan.name(), (Seq) Nil$.MODULE$, (Seq) Nil$.MODULE$, plan.tableSpec(), true);
      return (SparkPlan) new DataSourceV2Strategy(session).apply(known).head();
    }
    return new AtomicCreateTableAsSelectExec(new Staging(session, spark.catalog(), true), spark.ident(),
        spark.partitioning(), spark.query(), spec, spark.writeOptions(), spark.ifNotExists());
  }

  private SparkPlan replace(ReplaceTableAsSelectExec spark) {
    return new AtomicReplaceTableAsSelectExec(new Staging(session, spark.catalog(), true), spark.ident(),
        spark.partitioning(), spark.query(), spark.tableSpec(), spark.writeOptions(), spark.orCreate(),
        spark.invalidateCache());
  }

  /** A query without rows makes a table without rows. */
  private SparkPlan replace(ReplaceTableExec spark) {
    StructType schema = CatalogV2Util.v2ColumnsToStructType(spark.columns());
    Dataset rows = session.createDataFrame(
        Collections.emptyList(), CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema));
    return new AtomicReplaceTableAsSelectExec(new Staging(session, spark.catalog(), false), spark.ident(),
        spark.partitioning(), rows.queryExecution().analyzed(), spark.tableSpec(),
        (scala.collection.immutable.Map) Map$.MODULE$.empty(), spark.orCreate(), spark.invalidateCache());
  }

  private static Transform[] transforms(Seq partitioning) {
    Transform[] all = new Transform[partitioning.size()];
    for (int i = 0; i < all.length; i++) all[i] = (Transform) partitioning.apply(i);
    return all;
  }

  /** Properties are the catalog's own; columns are the table's, which the catalog cannot change. */
  private static void refuseChangesOfColumns(AlterTableCommand command) {
    if (!(command.table() instanceof ResolvedTable)) return;
    ResolvedTable resolved = (ResolvedTable) command.table();
    TableCatalog catalog = resolved.catalog();
    boolean isOurs = resolved.table() instanceof LanceTable
        || resolved.table() instanceof PythonTable && Python.NAME.equalsIgnoreCase(resolved.table().name());
    if (!isOurs || !CatalogV2Util.isSessionCatalog(catalog) || catalog instanceof SessionCatalog) return;
    Seq changes = command.changes();
    for (int i = 0; i < changes.size(); i++) {
      Object change = changes.apply(i);
      if (change instanceof TableChange.SetProperty || change instanceof TableChange.RemoveProperty) continue;
      if (change instanceof TableChange.ClusterBy) {
        NamedReference[] columns = ((TableChange.ClusterBy) change).clusteringColumns();
        if (columns.length > 0) throw Divisions.refusal("CLUSTER BY", Arrays.toString(columns));
        continue;
      }
      throw new UnsupportedOperationException("ALTER TABLE " + resolved.identifier() + " " + clause(change)
          + " would change what the catalog says of the table, not the Lance table, which no query could read then:"
          + " nothing was changed. CREATE OR REPLACE TABLE " + resolved.identifier() + " USING lance AS SELECT ..., which"
          + " may read the table itself, gives it other columns");
    }
  }

  static String clause(Object change) {
    if (change instanceof TableChange.AddColumn) return "ADD COLUMN";
    if (change instanceof TableChange.RenameColumn) return "RENAME COLUMN";
    if (change instanceof TableChange.DeleteColumn) return "DROP COLUMN";
    if (change instanceof TableChange.UpdateColumnDefaultValue) return "ALTER COLUMN SET or DROP DEFAULT";
    if (change instanceof TableChange.ColumnChange) return "ALTER COLUMN";
    return change.getClass().getSimpleName().replaceAll("(?<=[a-z])(?=[A-Z])", " ").toUpperCase();
  }
}
