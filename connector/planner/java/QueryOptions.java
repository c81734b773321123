package lance;

import java.util.Collections;
import java.util.Map;
import org.apache.hadoop.fs.Path;

/**
 * The options of a query, together with those of the table that it names. A query may choose a version or a branch where
 * its table has none. It cannot move the name to another table: Spark would check its columns and rights, and refresh what
 * is cached, for one table, while rows are read from another one or added to it.
 */
final class QueryOptions {
  private static final String[] COLUMNS = {"columns", "metadata_columns"};
  private static final String CHANGES = "readChangeFeed";
  private static final String[] CHOICES = {"branch", "version", "tag", "timestamp"};

  private QueryOptions() {}

  /** Returns all options; those of the query override those of the table. */
  static Map of(Map table, Map query) {
    check(table, query);
    return Python.merged(table, query);
  }

  /** Refuses options of a query that contradict its table. */
  static void check(Map table, Map query) {
    Map own = Python.merged(table, Collections.emptyMap());
    Map given = Python.merged(query, Collections.emptyMap());
    if (given.containsKey("path") && !isSamePath((String) own.get("path"), (String) given.get("path"))) {
      throw refusal("path", own, given);
    }
    for (int i = 0; i < COLUMNS.length; i++) {
      if (!given.containsKey(COLUMNS[i]) || own.containsKey(COLUMNS[i])) continue;
      throw new IllegalArgumentException(
          "the option '" + COLUMNS[i] + "' is for paths: select the columns of a table that has a name");
    }
    if (given.containsKey("metadata_table") && !own.containsKey("metadata_table")) {
      throw new IllegalArgumentException("the option 'metadata_table' is for paths: name the metadata table of a table of"
          + " a catalog, as t." + given.get("metadata_table"));
    }
    String changes = (String) given.getOrDefault(CHANGES, "false");
    if (!changes.equalsIgnoreCase("false") && !own.containsKey(CHANGES)) {
      throw new IllegalArgumentException("the option '" + CHANGES + "' is for paths: read the changes of a table that has a"
          + " name as in SELECT * FROM t CHANGES FROM VERSION 3, or load its path");
    }
    refuseOther("metadata_table", own, given);
    for (int i = 0; i < CHOICES.length; i++) refuseOther(CHOICES[i], own, given);
  }

  /** Whether all options choose a version or a branch, and those of the table alone do not. */
  static boolean choose(Map table, Map all) {
    Map own = Python.merged(table, Collections.emptyMap());
    for (int i = 0; i < CHOICES.length; i++) if (all.containsKey(CHOICES[i]) && !own.containsKey(CHOICES[i])) return true;
    return false;
  }

  private static void refuseOther(String name, Map own, Map given) {
    boolean hasBoth = own.containsKey(name) && given.containsKey(name);
    if (hasBoth && !own.get(name).equals(given.get(name))) throw refusal(name, own, given);
  }

  private static IllegalArgumentException refusal(String name, Map own, Map given) {
    return new IllegalArgumentException("the option '" + name + "' of the query is '" + given.get(name) + "', but that of"
        + " its table is '" + own.get(name) + "'. They contradict each other: leave the option out, or name the other"
        + " table");
  }

  private static boolean isSamePath(String one, String other) {
    return one != null && other != null && (one.equals(other) || plain(one).equals(plain(other)));
  }

  /** A path in one of its forms: local ones have `file:` or no scheme, those of S3 one of several. */
  private static String plain(String path) {
    java.net.URI place = new Path(path).toUri();
    String scheme = place.getScheme();
    if (scheme == null && !place.getPath().startsWith("/")) return new java.io.File(place.getPath()).getAbsolutePath();
    if (scheme == null || scheme.equalsIgnoreCase("file")) return place.getPath();
    boolean isS3 = scheme.equalsIgnoreCase("s3a") || scheme.equalsIgnoreCase("s3n");
    return (isS3 ? "s3" : scheme) + "://" + place.getAuthority() + place.getPath();
  }
}
