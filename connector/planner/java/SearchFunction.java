package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * A table function that returns the rows that a search finds, the best ones first: vector_search('t', 'column', array(0.1,
 * 0.2), 10), text_search('t', 'words', 10), and hybrid_search('t', 'column', array(0.1, 0.2), 'words', 10), which combines
 * both. All arguments can be named, and those after these have to be.
 */
abstract class SearchFunction extends SqlFunction {
  private static final List COMMON = Arrays.asList("table", "num_results", "filter");

  private final List positional;
  private final List others;

  SearchFunction(String name, String[] positional, String[] others) {
    super(name);
    this.positional = Arrays.asList(positional);
    this.others = Arrays.asList(others);
  }

  /** The arguments by which Python searches, from those that are not common to all functions. */
  abstract Map search(Map arguments, int count);

  /** The order of the rows found. */
  abstract Column order();

  public Object apply(Object given) {
    Map arguments = arguments((Seq) given);
    Object count = arguments.containsKey("num_results") ? required(arguments, "num_results", Number.class) : Integer.valueOf(10);
    long number = ((Number) count).longValue();
    boolean isWhole = count instanceof Long || count instanceof Integer || count instanceof Short || count instanceof Byte;
    if (!isWhole || number < 1 || number > Integer.MAX_VALUE) {
      throw refused("num_results is " + count + "; a whole number from 1 on, of 32 bits, is needed");
    }
    Map options = Python.merged(optionsOf((String) required(arguments, "table", String.class)), Collections.emptyMap());
    if (arguments.get("filter") != null) {
      String filter = (String) required(arguments, "filter", String.class);
      Object own = options.get("filter");
      options.put("filter", own == null ? filter : "(" + own + ") AND (" + filter + ")");
    }
    arguments.keySet().removeAll(COMMON);
    options.put("__lance.search", Python.json(search(arguments, (int) number)));
    String path = (String) options.remove("path");
    Dataset rows = session().read().format(Python.NAME).options(options).load(path);
    return rows.sort(new Column[] {order()}).limit((int) number).queryExecution().analyzed();
  }

  /** The search of vectors that arguments ask for; those that are not its own are removed before. */
  final Map nearest(Map arguments, int count) {
    Map nearest = new LinkedHashMap();
    nearest.put("column", required(arguments, "column", String.class));
    nearest.put("q", required(arguments, "query_vector", List.class));
    nearest.put("k", Integer.valueOf(count));
    arguments.remove("query_vector");
    nearest.putAll(arguments);
    return nearest;
  }

  /** The search of texts that arguments ask for, which are removed. */
  final Map text(Map arguments) {
    boolean isStructured = arguments.get("structured_query") != null;
    if (isStructured && (arguments.containsKey("query") || arguments.containsKey("columns"))) {
      throw refused("a structured_query has its words and columns: leave out query and columns");
    }
    String name = isStructured ? "structured_query" : "query";
    Map query = new LinkedHashMap();
    query.put(name, required(arguments, name, String.class));
    if (arguments.get("columns") != null) query.put("columns", required(arguments, "columns", List.class));
    arguments.keySet().removeAll(Arrays.asList("query", "columns", "structured_query"));
    return query;
  }

  /** The session that runs the query. */
  private static SparkSession session() {
    return (SparkSession) org.apache.spark.sql.classic.SparkSession$.MODULE$.active();
  }

  private Map arguments(Seq given) {
    Map found = new LinkedHashMap();
    for (int i = 0; i < given.size(); i++) {
      Expression each = (Expression) given.apply(i);
      boolean isNamed = each instanceof NamedArgumentExpression;
      if (!isNamed && i >= positional.size()) throw refused("argument " + (i + 1) + " has no name: write filter => 'id < 9'");
      String name = isNamed ? ((NamedArgumentExpression) each).key().toLowerCase() : (String) positional.get(i);
      if (!positional.contains(name) && !others.contains(name) && !COMMON.contains(name)) {
        throw refused("there is no argument " + name + "; there are " + String.join(", ", positional) + ", filter, "
            + String.join(", ", others));
      }
      if (found.containsKey(name)) throw refused("the argument " + name + " is given twice");
      found.put(name, value(name, isNamed ? ((NamedArgumentExpression) each).value() : each));
    }
    return found;
  }

  /** The value of a constant, in the form of JSON. */
  private Object value(String name, Expression given) {
    if (!given.foldable()) {
      throw refused("the argument " + name + " is " + given.sql() + ", and no constant: pass a value that a query has found as"
          + " a parameter, as spark.sql(..., args = ...) takes it");
    }
    return plain(name, given, valueOf(given));
  }

  private Object plain(String name, Expression given, Object value) {
    if (value instanceof scala.collection.Seq) {
      List all = new ArrayList();
      scala.collection.Iterator each = ((scala.collection.Seq) value).iterator();
      while (each.hasNext()) all.add(plain(name, given, each.next()));
      return all;
    }
    if (value instanceof java.math.BigDecimal) return Double.valueOf(((Number) value).doubleValue());
    boolean isPlain = value == null || value instanceof Number || value instanceof Boolean || value instanceof String;
    if (!isPlain) throw refused(name + " is " + given.sql() + "; a number, text, a boolean or an array of these is needed");
    return value;
  }

  final Object required(Map arguments, String name, Class type) {
    Object found = arguments.get(name);
    if (type.isInstance(found)) return found;
    String wanted = type == String.class ? "text" : type == List.class ? "an array" : "a whole number";
    throw refused(found == null ? "the argument " + name + " is missing" : name + " is " + found + "; " + wanted + " is needed");
  }

  /** The options by which a table that a name stands for is read. */
  private Map optionsOf(String name) {
    LogicalPlan plan = session().table(name).queryExecution().analyzed();
    Seq leaves = plan.collectLeaves();
    Object leaf = leaves.size() == 1 ? leaves.apply(0) : null;
    Table table = leaf instanceof DataSourceV2Relation ? ((DataSourceV2Relation) leaf).table() : null;
    boolean isWhole = plan.collect(new Steps()).isEmpty();
    if (!(table instanceof LanceTable) || !isWhole) throw refused(name + " is not a Lance table");
    return ((LanceTable) table).searched();
  }

  /** The steps of a query that leave out or change rows of the table that it reads. */
  private static final class Steps extends AbstractPartialFunction {
    public boolean isDefinedAt(Object step) {
      return !(step instanceof DataSourceV2Relation) && !(step instanceof SubqueryAlias);
    }

    public Object apply(Object step) { return step; }
    public Object applyOrElse(Object step, scala.Function1 other) { return isDefinedAt(step) ? step : other.apply(step); }
  }
}

/** The rows whose vectors are nearest to another one, with their distances. */
final class VectorSearch extends SearchFunction {
  VectorSearch() {
    super("vector_search", new String[] {"table", "column", "query_vector", "num_results"},
        new String[] {"metric", "nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef", "use_index",
            "distance_range"});
  }

  Map search(Map arguments, int count) { return Collections.singletonMap("nearest", nearest(arguments, count)); }

  Column order() { return new Column("_distance").asc(); }
}

/** The rows that match a text, with their scores. */
final class TextSearch extends SearchFunction {
  TextSearch() {
    super("text_search", new String[] {"table", "query", "num_results"}, new String[] {"columns", "structured_query"});
  }

  Map search(Map arguments, int count) {
    Map search = new LinkedHashMap();
    search.put("full_text_query", text(arguments));
    search.put("limit", Integer.valueOf(count));
    return search;
  }

  Column order() { return new Column("_score").desc(); }
}

/** The rows that a search of vectors or one of texts finds, with the scores that combine their ranks. */
final class HybridSearch extends SearchFunction {
  HybridSearch() {
    super("hybrid_search", new String[] {"table", "column", "query_vector", "query", "num_results"},
        new String[] {"columns", "structured_query", "rrf_k", "metric", "nprobes", "minimum_nprobes", "maximum_nprobes",
            "refine_factor", "ef", "use_index", "distance_range"});
  }

  Map search(Map arguments, int count) {
    Map search = new LinkedHashMap();
    search.put("full_text_query", text(arguments));
    Object added = arguments.remove("rrf_k");
    if (added != null) search.put("rrf_k", added);
    search.put("nearest", nearest(arguments, count));
    search.put("limit", Integer.valueOf(count));
    return search;
  }

  Column order() { return new Column("_relevance_score").desc(); }
}
