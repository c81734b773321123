package lance;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * The parser of a session, which also takes ALTER TABLE t SET UNENFORCED PRIMARY KEY (c), as the JVM connector has it: it is
 * parsed as ADD CONSTRAINT. All other texts reach Spark's parser unchanged.
 */
final class Statements implements InvocationHandler {
  private static final Logger LOG = LoggerFactory.getLogger(Statements.class);
  private static final String NAME = "(?:`(?:[^`]|``)+`|[^`\\s;])+";
  private static final Pattern KEY = Pattern.compile(
      "\\s*(ALTER\\s+TABLE\\s+" + NAME + ")\\s+SET\\s+UNENFORCED\\s+PRIMARY\\s+KEY\\s*(\\([^()]*\\))\\s*;?\\s*",
      Pattern.CASE_INSENSITIVE);

  private final ParserInterface parser;

  private Statements(ParserInterface parser) { this.parser = parser; }

  /** Extends the parser of the active session. A session that does not allow it keeps Spark's, and its error for the statement. */
  public static synchronized void install() {
    Option active = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
    if (active.isEmpty()) return;
    SessionState state = ((SparkSession) active.get()).sessionState();
    ParserInterface parser = state.sqlParser();
    if (Proxy.isProxyClass(parser.getClass()) && Proxy.getInvocationHandler(parser) instanceof Statements) return;
    try {
      Field field = SessionState.class.getDeclaredField("sqlParser");
      field.setAccessible(true);
      field.set(state, Proxy.newProxyInstance(
          Statements.class.getClassLoader(), new Class[] {ParserInterface.class}, new Statements(parser)));
    } catch (ReflectiveOperationException e) {
      LOG.warn("ALTER TABLE ... SET UNENFORCED PRIMARY KEY is not understood: write ADD CONSTRAINT", e);
    }
  }

  public Object invoke(Object proxy, Method method, Object[] given) throws Throwable {
    Object[] arguments = given == null ? null : (Object[]) given.clone();
    boolean isText = arguments != null && arguments.length > 0 && arguments[0] instanceof String;
    if (isText && method.getName().startsWith("parsePlan")) arguments[0] = rewritten((String) arguments[0]);
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private static String rewritten(String text) {
    Matcher found = KEY.matcher(text);
    return found.matches() ? found.group(1) + " ADD CONSTRAINT primary_key PRIMARY KEY " + found.group(2) + " NOT ENFORCED" : text;
  }
}
