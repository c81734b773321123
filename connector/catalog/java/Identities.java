package lance;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;

/**
 * Ids of tables, by which Spark notices that a table was dropped and created again since a query was analyzed. A Lance
 * table has no id. Here the tables that a location had are numbered while this process sees them: two versions are those
 * of two tables if one remembers another transaction for the number of the other. Without such proof they are of one.
 */
final class Identities {
  private static final int DIGITS = 16;
  private static final Map KNOWN = new HashMap();

  private final String id = UUID.randomUUID().toString();
  private final Facts facts;

  private Identities(Facts facts) { this.facts = facts; }

  /** Returns the id of the table that has a version; null for what is no table. */
  static synchronized String of(Facts facts) {
    if (facts == null || facts.trace() == null) return null;
    Identities known = (Identities) KNOWN.get(facts.uri());
    if (known == null || differ(known.facts, facts)) KNOWN.put(facts.uri(), known = new Identities(facts));
    return known.id;
  }

  private static boolean differ(Facts one, Facts other) {
    if (one.number() < other.number()) return differ(other, one);
    String remembered = digest(one.trace(), one.number() - other.number());
    String made = digest(other.trace(), 0);
    return remembered != null && made != null && !remembered.equals(made);
  }

  /** The digest of a version, counted from the latest; null if it is not remembered. */
  private static String digest(String trace, long position) {
    if (position >= trace.length() / DIGITS) return null;
    String found = trace.substring((int) position * DIGITS, (int) (position + 1) * DIGITS);
    return found.matches("0+") ? null : found;
  }
}
