package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * The table function vector_search('t', 'column', array(0.1, 0.2), 10): the rows whose vectors are nearest to another one,
 * nearest first, with their distances. All arguments can be named, as those after the fourth have to be.
 */
final class VectorSearch extends AbstractFunction1 {
  private static final String NAME = "vector_search";
  private static final List POSITIONAL = Arrays.asList("table", "column", "query_vector", "num_results");
  /** Names of arguments, and what Python calls them. */
  private static final String[][] OTHERS = {{"metric", "metric"}, {"filter", "filter"}, {"nprobes", "nprobes"},
      {"minimum_nprobes", "minimum_nprobes"}, {"maximum_nprobes", "maximum_nprobes"},
      {"refine_factor", "refine_factor"}, {"use_index", "use_index"}, {"distance_range", "distance_range"}};

  /** The registries of sessions that have the function. */
  private static final Set INSTALLED = Collections.newSetFromMap(new WeakHashMap());

  private final SparkSession session;

  private VectorSearch(SparkSession session) { this.session = session; }

  /** The active session has the function, once, unless it has another one of the name. */
  public static synchronized void install() {
    Option active = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
    if (active.isEmpty()) return;
    SparkSession session = (SparkSession) active.get();
    TableFunctionRegistry functions = session.sessionState().tableFunctionRegistry();
    if (!INSTALLED.add(functions) || session.catalog().functionExists(NAME)) return;
    functions.createOrReplaceTempFunction(NAME, new VectorSearch(session), "internal");
  }

  public Object apply(Object given) {
    Map arguments = arguments((Seq) given);
    String table = (String) required(arguments, "table", String.class);
    Map search = new LinkedHashMap();
    search.put("column", required(arguments, "column", String.class));
    search.put("q", required(arguments, "query_vector", List.class));
    Object count = arguments.containsKey("num_results") ? required(arguments, "num_results", Number.class) : Integer.valueOf(10);
    search.put("k", count);
    for (int i = 0; i < OTHERS.length; i++) {
      Object value = arguments.get(OTHERS[i][0]);
      if (value != null && !OTHERS[i][0].equals("filter")) search.put(OTHERS[i][1], value);
    }
    Map options = Python.merged(optionsOf(table), new LinkedHashMap());
    options.put("__lance.nearest", Python.json(search));
    if (arguments.get("filter") != null) options.put("filter", filter(options, (String) required(arguments, "filter", String.class)));
    if (((Number) count).longValue() > Integer.MAX_VALUE) throw refused("num_results is " + count + ", which is too many");
    String path = (String) options.remove("path");
    Dataset rows = session.read().format(Python.NAME).options(options).load(path);
    return rows.orderBy("_distance", new String[0]).limit(((Number) count).intValue()).queryExecution().analyzed();
  }

  private static String filter(Map options, String filter) {
    Object own = options.get("filter");
    return own == null ? filter : "(" + own + ") AND (" + filter + ")";
  }

  private static Map arguments(Seq given) {
    Map found = new LinkedHashMap();
    for (int i = 0; i < given.size(); i++) {
      Expression each = (Expression) given.apply(i);
      boolean isNamed = each instanceof NamedArgumentExpression;
      if (!isNamed && i >= POSITIONAL.size()) throw refused("argument " + (i + 1) + " has no name: write metric => 'l2'");
      String name = isNamed ? ((NamedArgumentExpression) each).key().toLowerCase() : (String) POSITIONAL.get(i);
      if (!isKnown(name)) throw refused("there is no argument " + name + "; the arguments are " + known());
      if (found.containsKey(name)) throw refused("the argument " + name + " is given twice");
      found.put(name, value(name, isNamed ? ((NamedArgumentExpression) each).value() : each));
    }
    return found;
  }

  private static boolean isKnown(String name) {
    for (int i = 0; i < OTHERS.length; i++) if (OTHERS[i][0].equals(name)) return true;
    return POSITIONAL.contains(name);
  }

  private static String known() {
    StringBuilder all = new StringBuilder(String.join(", ", POSITIONAL));
    for (int i = 0; i < OTHERS.length; i++) all.append(", ").append(OTHERS[i][0]);
    return all.toString();
  }

  /** The value of a constant, in the form of JSON. */
  private static Object value(String name, Expression given) {
    if (!given.foldable()) {
      throw refused("the argument " + name + " is " + given.sql() + ", and no constant: pass a value that a query has found as"
          + " a parameter, as spark.sql(..., args = ...) takes it");
    }
    return plain(CatalystTypeConverters.convertToScala(given.eval(null), given.dataType()));
  }

  private static Object plain(Object value) {
    if (value instanceof scala.collection.Iterable) {
      List all = new ArrayList();
      scala.collection.Iterator each = ((scala.collection.Iterable) value).iterator();
      while (each.hasNext()) all.add(plain(each.next()));
      return all;
    }
    return value instanceof java.math.BigDecimal ? Double.valueOf(((Number) value).doubleValue()) : value;
  }

  private static Object required(Map arguments, String name, Class type) {
    Object found = arguments.get(name);
    if (type.isInstance(found)) return found;
    String wanted = type == String.class ? "text" : type == List.class ? "an array of numbers" : "a whole number";
    throw refused(found == null ? "the argument " + name + " is missing" : name + " is " + found + "; " + wanted + " is needed");
  }

  /** The options by which a table that a name stands for is read. */
  private Map optionsOf(String name) {
    LogicalPlan plan = session.table(name).queryExecution().analyzed();
    Seq leaves = plan.collectLeaves();
    Object leaf = leaves.size() == 1 ? leaves.apply(0) : null;
    Table table = leaf instanceof DataSourceV2Relation ? ((DataSourceV2Relation) leaf).table() : null;
    boolean isWhole = plan.collect(new Steps()).size() == 0;
    if (!(table instanceof LanceTable) || !isWhole) throw refused(name + " is not a Lance table");
    return ((LanceTable) table).searched();
  }

  private static IllegalArgumentException refused(String why) {
    return new IllegalArgumentException(NAME + ": " + why);
  }

  /** The steps of a query that leave out or change rows of the table that it reads. */
  private static final class Steps extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object step) {
      return !(step instanceof DataSourceV2Relation)
          && !(step instanceof org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias);
    }

    public Object apply(Object step) { return step; }
    public Object applyOrElse(Object step, scala.Function1 other) { return isDefinedAt(step) ? step : other.apply(step); }
  }
}
