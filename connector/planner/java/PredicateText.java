package lance;

import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.internal.connector.ToStringSQLBuilder;
import org.apache.spark.unsafe.types.UTF8String;

/** Predicates as SQL for messages. Spark quotes no constant with a collation, and loses the first and last character of it. */
final class PredicateText extends ToStringSQLBuilder {
  static String of(Predicate[] predicates) {
    String[] texts = new String[predicates.length];
    for (int i = 0; i < texts.length; i++) texts[i] = new PredicateText().build(predicates[i]);
    return Arrays.toString(texts);
  }

  protected String visitUserDefinedScalarFunction(String name, String canonicalName, String[] inputs) {
    if (!canonicalName.equals(LikeFunction.NAME)) return super.visitUserDefinedScalarFunction(name, canonicalName, inputs);
    return inputs[0] + " LIKE " + inputs[1];
  }

  protected String visitLiteral(Literal literal) {
    Object value = literal.value();
    return value instanceof UTF8String ? "'" + value.toString().replace("'", "''") + "'" : literal.toString();
  }
}
