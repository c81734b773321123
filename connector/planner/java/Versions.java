package lance;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * The versions that queries read. A relation that names none reads the latest version at each execution of a query. All
 * scans of one execution share it: this is Spark's own rule for tables of catalogs since 4.1. Spark has one planning
 * tracker per execution; it is the key of the versions here.
 */
final class Versions {
  private static final List NAMED_BY = Arrays.asList(new String[] {"version", "tag", "timestamp", "versionAsOf",
      "timestampAsOf"});
  private static final Map QUERIES = Collections.synchronizedMap(new WeakHashMap());

  private Versions() {}

  /** Whether options name a version; their names may be in any case. */
  static boolean isNamed(Map options) {
    for (int i = 0; i < NAMED_BY.size(); i++) if (options.containsKey(NAMED_BY.get(i))) return true;
    return false;
  }

  /** What is known in the current query, by questions and places; null if no query is planned. */
  static Map known() {
    Option tracker = QueryPlanningTracker.get();
    if (tracker.isEmpty()) return null;
    synchronized (QUERIES) {
      Map known = (Map) QUERIES.get(tracker.get());
      if (known == null) QUERIES.put(tracker.get(), known = new HashMap());
      return known;
    }
  }

  /**
   * Returns the facts of the version that the current query reads: the one that options name, else the one that the
   * query already reads, else the given one, else the latest.
   */
  static Facts ofThisQuery(Map options, StructType schema, Facts given) {
    Map known = known();
    if (known == null) return given == null ? Facts.of(options, schema) : given;
    synchronized (known) {
      List question = Arrays.asList(new Object[] {new HashMap(options), schema});
      Facts facts = (Facts) known.get(question);
      if (facts == null) {
        facts = given == null ? Facts.of(options, schema) : given;
        if (!isNamed(options)) facts = united(known, facts, options, schema);
        known.put(question, facts);
      }
      return facts;
    }
  }

  /** Returns the version of a table that the query already reads, if any. */
  private static Facts united(Map known, Facts facts, Map options, StructType schema) {
    Path place = new Path(facts.uri());
    Facts first = (Facts) known.get(place);
    if (first == null) known.put(place, facts);
    if (first == null || first.version().equals(facts.version())) return facts;
    Map same = new HashMap(options);
    same.put("__lance.snapshot", first.snapshot());
    return Facts.of(same, schema);
  }

  /** Returns the facts of the version of a table that the current query reads, if it reads the latest one; else null. */
  static Facts readOf(LanceTable table) {
    Map known = known();
    if (known == null || table.known() == null) return null;
    synchronized (known) {
      return (Facts) known.get(new Path(table.loaded().uri()));
    }
  }

  /** Refuses a version that the options of a query choose if its columns are not those of the table. */
  static void checkChosen(Facts facts) {
    if (facts.misfit() == null) return;
    throw new IllegalArgumentException(facts.misfit() + ". A query that chooses another version or branch by an option sees"
        + " the columns that the table has now: name it by VERSION AS OF or TIMESTAMP AS OF, by the options versionAsOf or"
        + " timestampAsOf, or as t.branch_b, all of tables of Lance catalogs, or load its path");
  }

  /** Refuses a version that does not have the columns of a relation, as Spark does for the tables of catalogs. Columns of
   * the session catalog may differ for good, unless it is extended. */
  static void check(Facts facts, Map options) {
    if (facts.misfit() == null) return;
    if ("true".equals(options.get("__lance.catalog")) && !options.containsKey(Evolution.ENTRY)) {
      throw new IllegalArgumentException(facts.misfit() + ". The schema is that of the catalog, which an ALTER TABLE or"
          + " another writer has parted from the table. To make both agree, read the table by its path, by"
          + " spark.read.format(\"lance\").load, and write what is to stay of it, by mode(\"overwrite\").saveAsTable");
    }
    Platform.throwException(QueryCompilationErrors$.MODULE$.columnsChangedAfterAnalysis(
        facts.uri(), (Seq) ((Seq) Nil$.MODULE$).appended(facts.misfit())));
  }
}
