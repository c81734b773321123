package lance;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Puts expressions in the place of columns. */
final class Substitution extends AbstractPartialFunction {
  private final Map values = new HashMap();

  /** What a project computes in the place of its columns. */
  static Substitution of(Seq projectList) {
    Substitution made = new Substitution();
    for (int i = 0; i < projectList.size(); i++) {
      Object column = projectList.apply(i);
      if (column instanceof Alias) made.put((Alias) column, ((Alias) column).child());
    }
    return made;
  }

  void put(NamedExpression column, Object value) { values.put(column.exprId(), value); }

  public boolean isDefinedAt(Object e) {
    return e instanceof AttributeReference && values.containsKey(((AttributeReference) e).exprId());
  }

  public Object apply(Object e) { return values.get(((AttributeReference) e).exprId()); }
}
