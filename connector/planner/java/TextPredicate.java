package lance;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A condition on texts that the index of their column finds: lance_match(c, 'words'), lance_match_phrase(c, 'a phrase') and
 * lance_multi_match('words', c, d). Scans take it as a predicate; Spark cannot compute it.
 */
abstract class TextPredicate extends SqlFunction {
  TextPredicate(String name) { super(name); }

  abstract Expression match(List arguments);

  public Object apply(Object given) { return match(CollectionConverters.asJava((Seq) given)); }

  final Expression condition(String kind, Map parameters, List columns) {
    for (int i = 0; i < columns.size(); i++) {
      Expression column = (Expression) columns.get(i);
      if (column.foldable()) throw refused(column.sql() + " is a constant, and a column is needed");
    }
    Commands.install(); // They refuse plans in which Spark would compute the condition.
    TextMatch function = new TextMatch(name, kind, parameters, columns.size());
    return new ApplyFunctionExpression(function, CollectionConverters.asScala(columns).toSeq());
  }

  static Map parameters(String words) { return new LinkedHashMap(Collections.singletonMap("terms", words)); }

  final String text(List arguments, int position, String what) {
    Object found = constant(arguments, position);
    if (found instanceof String) return (String) found;
    throw refused("argument " + (position + 1) + " is to be the " + what + ", as a constant text");
  }

  static Object constant(List arguments, int position) {
    Expression found = position < arguments.size() ? (Expression) arguments.get(position) : null;
    return found != null && found.foldable() ? valueOf(found) : null;
  }
}

/** Some words of a text, or all of them: lance_match(c, 'words'[, 'operator=AND,fuzziness=1']). */
final class Match extends TextPredicate {
  Match() { super("lance_match"); }

  Expression match(List arguments) {
    if (arguments.size() < 2 || arguments.size() > 3) throw refused("a column and words are needed, and options may follow");
    Map parameters = parameters(text(arguments, 1, "words"));
    if (arguments.size() > 2) parameters.put("options", text(arguments, 2, "options"));
    return condition("match", parameters, arguments.subList(0, 1));
  }
}

/** A phrase, in which some words may be missing: lance_match_phrase(c, 'a phrase'[, slop]). */
final class MatchPhrase extends TextPredicate {
  MatchPhrase() { super("lance_match_phrase"); }

  Expression match(List arguments) {
    if (arguments.size() < 2 || arguments.size() > 3) throw refused("a column and a phrase are needed, and a slop may follow");
    Map parameters = parameters(text(arguments, 1, "phrase"));
    if (arguments.size() > 2) {
      Object slop = constant(arguments, 2);
      if (!(slop instanceof Integer)) throw refused("argument 3 is to be the slop, as a constant whole number");
      parameters.put("slop", slop);
    }
    return condition("phrase", parameters, arguments.subList(0, 1));
  }
}

/** Words in one of several columns, or in all of them: lance_multi_match('words'[, 'operator=AND'], c, d, ...). */
final class MultiMatch extends TextPredicate {
  MultiMatch() { super("lance_multi_match"); }

  Expression match(List arguments) {
    boolean hasOptions = constant(arguments, 1) instanceof String;
    List columns = arguments.subList(Math.min(hasOptions ? 2 : 1, arguments.size()), arguments.size());
    if (columns.isEmpty()) throw refused("words and columns are needed, and options may stand between them");
    Map parameters = parameters(text(arguments, 0, "words"));
    if (hasOptions) parameters.put("options", text(arguments, 1, "options"));
    return condition("multi_match", parameters, columns);
  }
}

/** The condition as a function of Spark, whose name tells a scan what to search for. */
final class TextMatch implements ScalarFunction {
  private static final String MARK = "lance.text_match:";

  private final String name;
  private final String form;
  private final int columns;

  TextMatch(String name, String kind, Map parameters, int columns) {
    this.name = name;
    this.form = Python.json(Arrays.asList(new Object[] {"MATCH", kind, parameters}));
    this.columns = columns;
  }

  /** The condition on columns as a list that connector/read/text_matches.py reads; null of other functions. */
  static List form(UserDefinedScalarFunc function, List columns) {
    if (!function.canonicalName().startsWith(MARK)) return null;
    List form = Python.list(function.canonicalName().substring(MARK.length()));
    form.addAll(columns);
    return form;
  }

  /** Equal conditions are equal to Spark, which so finds rows that it has cached. */
  public boolean equals(Object other) {
    return other instanceof TextMatch && ((TextMatch) other).name.equals(name) && ((TextMatch) other).form.equals(form);
  }

  public int hashCode() { return form.hashCode(); }

  public String name() { return name; }
  public String canonicalName() { return MARK + form; }
  public DataType resultType() { return DataTypes.BooleanType; }
  public boolean isResultNullable() { return false; }

  public DataType[] inputTypes() {
    DataType[] types = new DataType[columns];
    Arrays.fill(types, DataTypes.StringType);
    return types;
  }

  /** Refuses a step in which Spark would compute the condition, because no scan has taken it; it plans some at once. */
  static void refuseIn(LogicalPlan step) {
    boolean isRow = step instanceof Filter || step instanceof Project;
    if (isRow || step instanceof Join || step instanceof Aggregate) refuseIn(step.expressions());
    if (isRow) refuseIn((LogicalPlan) step.children().head());
  }

  private static void refuseIn(Seq expressions) {
    for (int i = 0; i < expressions.size(); i++) {
      Expression each = (Expression) expressions.apply(i);
      if (each instanceof ApplyFunctionExpression) {
        Object function = ((ApplyFunctionExpression) each).function();
        if (function instanceof TextMatch) throw ((TextMatch) function).refusal();
      }
      refuseIn(each.children());
    }
  }

  private RuntimeException refusal() {
    return new UnsupportedOperationException(name + " is a condition on columns of texts of one Lance table, which the table"
        + " searches. It stands in WHERE, also below AND, OR and NOT, but there only with other conditions on that table that"
        + " it can evaluate; here Spark would have to compute it");
  }

  public Object produceResult(InternalRow row) { throw refusal(); }
}
