package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** The least and greatest of many values that a column may have, as predicates. Floating-point values have none. */
final class RuntimeBounds {
  private static final Set ORDERED = new HashSet(Arrays.asList(new Class[] {Byte.class, Short.class, Integer.class,
      Long.class, Decimal.class, UTF8String.class}));

  private RuntimeBounds() {}

  /** Returns predicates that are true if the given one is: of IN two, of others none. */
  static List of(Predicate predicate) {
    Expression[] all = predicate.children();
    if (!predicate.name().equals("IN") || all.length < 2) return Collections.emptyList();
    Comparable least = null;
    Comparable greatest = null;
    for (int i = 1; i < all.length; i++) {
      if (!(all[i] instanceof Literal)) return Collections.emptyList();
      Object value = ((Literal) all[i]).value();
      if (value == null) continue;
      if (!ORDERED.contains(value.getClass())) return Collections.emptyList();
      if (least == null || least.compareTo(value) > 0) least = (Comparable) value;
      if (greatest == null || greatest.compareTo(value) < 0) greatest = (Comparable) value;
    }
    if (least == null) return Collections.emptyList();
    DataType type = ((Literal) all[1]).dataType();
    List both = new ArrayList();
    both.add(new Predicate(">=", new Expression[] {all[0], new LiteralValue(least, type)}));
    both.add(new Predicate("<=", new Expression[] {all[0], new LiteralValue(greatest, type)}));
    return both;
  }
}
