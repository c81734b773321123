package lance;

import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.unsafe.types.UTF8String;
import scala.runtime.AbstractPartialFunction;

/**
 * Has Spark offer a scan the filters with `LIKE` that it does not write as a prefix, a suffix or a part, such as
 * `'%special%requests%'`, which it offers no source: as a function while it asks the scan, which this rule writes as `LIKE`
 * again where the scan has not taken it.
 */
final class Patterns extends Rule {
  static boolean isLike(UserDefinedScalarFunc function) { return function.canonicalName().equals(LikeFunction.NAME); }

  public TreeNode apply(TreeNode plan) { return ((LogicalPlan) plan).transformAllExpressions(new Written()); }

  private static final class Written extends AbstractPartialFunction {
    public boolean isDefinedAt(Object term) {
      return term instanceof ApplyFunctionExpression && ((ApplyFunctionExpression) term).function() instanceof LikeFunction;
    }

    public Object apply(Object term) {
      ApplyFunctionExpression offered = (ApplyFunctionExpression) term;
      return new Like((Expression) offered.children().head(), (Expression) offered.children().last(), '\\');
    }
  }
}

/** The part of it that runs before Spark asks. */
final class OfferedPatterns extends Rule {
  public TreeNode apply(TreeNode plan) { return ((LogicalPlan) plan).transform(new OverTables()); }

  private static final class OverTables extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      if (!(node instanceof Filter) || !(((Filter) node).child() instanceof DataSourceV2Relation)) return false;
      return ((DataSourceV2Relation) ((Filter) node).child()).table() instanceof LanceTable;
    }

    public Object apply(Object node) { return ((LogicalPlan) node).transformExpressions(new Offered()); }
  }

  private static final class Offered extends AbstractPartialFunction {
    /** Other patterns are written as comparisons, or refused when they are evaluated. */
    private static final Pattern SIMPLE = Pattern.compile("[^_%]*|%?[^_%]+%?|[^_%]+%[^_%]+", Pattern.DOTALL);
    private static final Pattern VALID = Pattern.compile("[^\\\\]*+(\\\\[_%\\\\][^\\\\]*+)*+", Pattern.DOTALL);

    public boolean isDefinedAt(Object term) {
      if (!(term instanceof Like) || ((Like) term).escapeChar() != '\\') return false;
      Expression pattern = ((Like) term).right();
      boolean isText = StringType$.MODULE$.equals(((Like) term).left().dataType())
          && pattern instanceof Literal && ((Literal) pattern).value() instanceof UTF8String;
      String text = isText ? ((Literal) pattern).value().toString() : "";
      boolean isSimple = text.indexOf('\\') < 0 && SIMPLE.matcher(text).matches();
      return isText && !isSimple && VALID.matcher(text).matches() && UTF8String.fromString(text).equals(((Literal) pattern).value());
    }

    public Object apply(Object term) { return new ApplyFunctionExpression(new LikeFunction(), ((Like) term).children()); }
  }
}

/** `LIKE` as a function of a text and a pattern. */
final class LikeFunction implements ScalarFunction {
  static final String NAME = "lance.like";

  public String name() { return "LIKE"; }
  public String canonicalName() { return NAME; }
  public DataType[] inputTypes() { return new DataType[] {DataTypes.StringType, DataTypes.StringType}; }
  public DataType resultType() { return DataTypes.BooleanType; }
  public boolean equals(Object other) { return other instanceof LikeFunction; }
  public int hashCode() { return NAME.hashCode(); }

  public Object produceResult(InternalRow row) {
    if (row.isNullAt(0)) return null;
    String pattern = StringUtils.escapeLikeRegex(row.getString(1), '\\');
    return Boolean.valueOf(Pattern.compile(pattern).matcher(row.getString(0)).matches());
  }
}
