package lance;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractPartialFunction;

/**
 * Commits a change of rows, and runs the whole command again if another writer has changed the same rows.
 *
 * Files that tasks have written are valid for the version that they have read. So the command is planned once more from
 * its analyzed form, with the latest version of every Lance table in it, source or target, and all of its jobs run
 * again. Commands whose commit can collide only replace the tables in Spark's analyzed plan: see LanceTable.renewed.
 */
final class Replanning {
  private static final Logger LOG = LoggerFactory.getLogger(Replanning.class);
  private static final String COLLISION = "RetryableCommitConflictError: ";
  private static final String ATTEMPTS = "spark.lance.commit.attempts";
  private static final String DEFAULT_ATTEMPTS = "10";
  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long LAST_PAUSE_MILLIS = 5000;
  private static final ThreadLocal UNDER_WAY = new ThreadLocal();

  private Replanning() {}

  static void commit(BatchWrite python, WriterCommitMessage[] messages) {
    Throwable collision;
    try {
      python.commit(messages);
      return;
    } catch (Throwable e) {
      if (UNDER_WAY.get() != null || reason(e) == null) Platform.throwException(e);
      collision = e;
    }
    LogicalPlan command = command();
    if (command == null) Platform.throwException(collision);
    python.abort(messages);
    UNDER_WAY.set(Boolean.TRUE);
    try {
      repeat(command, collision);
    } finally {
      UNDER_WAY.remove();
    }
  }

  private static void repeat(LogicalPlan command, Throwable collision) {
    int attempts = attempts();
    for (int attempt = 1; attempt < attempts; attempt++) {
      LOG.info("the command runs again on the latest version: {}", reason(collision));
      pause(attempt);
      try {
        run((LogicalPlan) new Renewal().of(command));
        return;
      } catch (Throwable e) {
        if (reason(e) == null) Platform.throwException(e);
        collision = e;
      }
    }
    Platform.throwException(QueryCompilationErrors$.MODULE$.pythonDataSourceError("commit", Python.NAME, COLLISION
        + "the command ran " + attempts + " times, each time on the latest version, and other writers changed the same"
        + " rows each time; the setting " + ATTEMPTS + " says how often it may. The last time " + reason(collision)));
  }

  private static int attempts() {
    String given = SQLConf$.MODULE$.get().getConfString(ATTEMPTS, DEFAULT_ATTEMPTS);
    if (given.matches("[1-9][0-9]{0,4}")) return Integer.parseInt(given);
    throw new IllegalArgumentException(ATTEMPTS + " must be a whole number from 1 to 99999, not " + given);
  }

  /** The conflict that an error reports; null for other errors. */
  private static String reason(Throwable error) {
    for (Throwable e = error; e != null; e = e.getCause()) {
      String message = String.valueOf(e.getMessage());
      int start = message.lastIndexOf(COLLISION);
      if (start >= 0) return message.substring(start + COLLISION.length()).trim();
    }
    return null;
  }

  /** Waits longer each time, for a random time, so that two commands do not collide again. */
  private static void pause(int attempt) {
    long most = Math.min(FIRST_PAUSE_MILLIS << Math.min(attempt, 10), LAST_PAUSE_MILLIS);
    try {
      Thread.sleep(ThreadLocalRandom.current().nextLong(most));
    } catch (InterruptedException e) {
      Platform.throwException(e);
    }
  }

  /** The command that this thread runs, as Spark has analyzed it; null if Spark does not say. */
  private static LogicalPlan command() {
    String id = SparkSession.active().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    QueryExecution execution = id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
    return execution == null ? null : execution.analyzed();
  }

  private static void run(LogicalPlan command) {
    SparkSession session = (SparkSession) SparkSession.active();
    QueryExecution execution = session.sessionState().executePlan(command, CommandExecutionMode$.MODULE$.SKIP());
    SQLExecution.withNewExecutionId(execution, Option.apply("lance: run again"), new Run(execution));
  }
}

final class Run extends AbstractFunction0 {
  private final QueryExecution execution;

  Run(QueryExecution execution) { this.execution = execution; }

  public Object apply() { return execution.executedPlan().executeCollect(); }
}

/** Puts the latest version of each Lance table into a plan, the same one at all its places. */
final class Renewal extends AbstractPartialFunction {
  private final Map renewed = new IdentityHashMap();
  private final Map versions = new HashMap();

  /** A command that writes has relations among its arguments that are not its children. */
  Object of(LogicalPlan command) {
    Object[] arguments = new Object[command.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      Object argument = command.productElement(i);
      arguments[i] = argument instanceof LogicalPlan
          ? ((LogicalPlan) argument).transformUpWithSubqueries(this) : argument;
    }
    return command.makeCopy(arguments);
  }

  public boolean isDefinedAt(Object plan) {
    return plan instanceof DataSourceV2Relation && isOurs(((DataSourceV2Relation) plan).table());
  }

  private static boolean isOurs(Table table) {
    if (table instanceof RowLevelOperationTable) return ((RowLevelOperationTable) table).operation() instanceof RowLevel;
    return table instanceof LanceTable && !Versions.isNamed(((LanceTable) table).options);
  }

  public Object apply(Object plan) {
    DataSourceV2Relation relation = (DataSourceV2Relation) plan;
    return relation.copy(table(relation.table()), relation.output(), relation.catalog(), relation.identifier(),
        relation.options(), relation.timeTravelSpec());
  }

  private Table table(Table old) {
    Table known = (Table) renewed.get(old);
    if (known != null) return known;
    Table made;
    if (old instanceof RowLevelOperationTable) {
      RowLevelOperationTable target = (RowLevelOperationTable) old;
      LanceTable table = (LanceTable) table((Table) target.table());
      made = new RowLevelOperationTable(table, ((RowLevel) target.operation()).renewed(table.loaded()));
    } else {
      made = renewed((LanceTable) old);
    }
    renewed.put(old, made);
    return made;
  }

  private LanceTable renewed(LanceTable table) {
    Facts facts = Facts.of(table.options, table.schema());
    Path place = new Path(facts.uri());
    Facts first = (Facts) versions.get(place);
    if (first == null) {
      versions.put(place, facts);
    } else if (!first.version().equals(facts.version())) {
      Map same = new HashMap(table.options);
      same.put("__lance.snapshot", first.snapshot());
      facts = Facts.of(same, table.schema());
    }
    Versions.check(facts, table.options);
    return table.renewed(facts);
  }
}
