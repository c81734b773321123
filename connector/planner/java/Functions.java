package lance;

import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.Tuple3;
import scala.runtime.AbstractFunction1;

/** The functions of SQL that this library adds: table functions that search, and conditions on texts. */
final class Functions {
  private static final SqlFunction[] SEARCHES = {new VectorSearch(), new TextSearch(), new HybridSearch()};
  private static final SqlFunction[] CONDITIONS = {new Match(), new MatchPhrase(), new MultiMatch()};

  /** The registries of sessions that have the functions. */
  private static final Set INSTALLED = Collections.newSetFromMap(new WeakHashMap());

  /** The extensions by which later sessions get the functions. */
  private static final Set EXTENDED = Collections.newSetFromMap(new WeakHashMap());

  private Functions() {}

  /** The active session, and those made after it, have the functions unless they have others of their names. */
  public static synchronized void install() {
    Option active = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
    if (active.isEmpty()) return;
    SparkSession session = (SparkSession) active.get();
    add(session, session.sessionState().tableFunctionRegistry(), SEARCHES);
    add(session, session.sessionState().functionRegistry(), CONDITIONS);
    if (!EXTENDED.add(session.extensions())) return;
    for (int i = 0; i < SEARCHES.length; i++) session.extensions().injectTableFunction(SEARCHES[i].described());
    for (int i = 0; i < CONDITIONS.length; i++) session.extensions().injectFunction(CONDITIONS[i].described());
  }

  private static void add(SparkSession session, FunctionRegistryBase registry, SqlFunction[] functions) {
    if (!INSTALLED.add(registry)) return;
    for (int i = 0; i < functions.length; i++) {
      String name = functions[i].name;
      if (!session.catalog().functionExists(name)) registry.createOrReplaceTempFunction(name, functions[i], "internal");
    }
  }
}

/** A function of SQL, which makes an expression or a plan of its arguments. */
abstract class SqlFunction extends AbstractFunction1 {
  protected final String name;

  SqlFunction(String name) { this.name = name; }

  final Tuple3 described() {
    return new Tuple3(FunctionIdentifier.apply(name), new ExpressionInfo(getClass().getName(), name), this);
  }

  /** The value of an expression that is foldable. */
  static Object valueOf(Expression constant) {
    return CatalystTypeConverters.convertToScala(constant.eval(null), constant.dataType());
  }

  final IllegalArgumentException refused(String why) { return new IllegalArgumentException(name + ": " + why); }
}
