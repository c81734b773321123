package lance;

import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.internal.connector.ToStringSQLBuilder;
import org.apache.spark.unsafe.types.UTF8String;

/** Predicates as SQL for messages. Spark quotes no constant with a collation, and loses the first and last character of it. */
final class PredicateText extends ToStringSQLBuilder {
  protected String visitLiteral(Literal literal) {
    Object value = literal.value();
    return value instanceof UTF8String ? "'" + value.toString().replace("'", "''") + "'" : literal.toString();
  }
}
