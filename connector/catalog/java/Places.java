package lance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf$;

/** Where the tables of a catalog are, and what is done to its names: in a directory, or by a server. */
abstract class Places {
  static final String STORAGE = "storage.";
  private static final Pattern CODES = Pattern.compile("(%[0-9a-fA-F]{2})+");

  protected final String catalog;
  private final Map storage;

  /** The name of the catalog, and its options of the storage. */
  Places(String catalog, Map storage) {
    this.catalog = catalog;
    this.storage = storage;
  }

  /** An absolute path of this machine, or a URI of another storage; for locations as Spark gives them. */
  static String plain(String given) {
    if (isRemote(given)) return given;
    boolean isBelowHome = given.equals("~") || given.startsWith("~/");  // Hadoop drops the point of ./~/t.
    String path = new Path(given).toUri().getPath();
    return new File(isBelowHome ? home() + path.substring(1) : path).getAbsolutePath();
  }

  /** As for Python. Java takes the home directory of the account, whatever the environment says. */
  private static String home() {
    String given = System.getenv("HOME");
    return given == null || given.isEmpty() ? System.getProperty("user.home") : given;
  }

  /** The same for names and roots, where a percent sign in a URI begins the code of a character, as for DataFrames. */
  static String named(String given) { return given.startsWith("file:") ? plain(decoded(given)) : plain(given); }

  private static String decoded(String uri) {
    Matcher codes = CODES.matcher(uri);
    StringBuilder path = new StringBuilder();
    int end = 0;
    while (codes.find()) {
      path.append(uri, end, codes.start()).append(text(uri, codes.group()));
      end = codes.end();
    }
    return path.append(uri.substring(end)).toString();
  }

  private static String text(String uri, String codes) {
    byte[] bytes = new byte[codes.length() / 3];
    for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) Integer.parseInt(codes.substring(3 * i + 1, 3 * i + 3), 16);
    try {
      String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
      if (text.indexOf(0) < 0) return text;
    } catch (CharacterCodingException e) {
      // Below.
    }
    throw new IllegalArgumentException(uri + " is not a path: its codes, as %41, are not those of a text in UTF-8");
  }

  static boolean isRemote(String given) {
    String scheme = new Path(given).toUri().getScheme();
    return scheme != null && !scheme.equals("file");
  }

  /** The options of all tables; that of a path has it. */
  final Map options(String path) {
    Map options = new HashMap(storage);
    if (path != null) options.put("path", path);
    options.put("__lance.catalog", "own");
    options.put("__lance.time_zone", SQLConf$.MODULE$.get().sessionLocalTimeZone());
    return options;
  }

  static Map details(String name, Object value) { return new LinkedHashMap(Collections.singletonMap(name, value)); }

  /** The options of the table of a name, without a path if there is none. */
  abstract Map options(Identifier table);

  /** Where a table is to be created. The location is null if the statement has none. */
  abstract NewPlace place(Identifier table, String location);

  /** Gives up a table that was declared, and could not be created. */
  abstract void abandon(Identifier table);

  /** Checks that a new table, which another program had declared, is still at its place. */
  abstract void confirm(Identifier table, Map options);

  /** What to do about the files of a dropped table, which are where a new one would be. */
  abstract String remedy(Identifier table);

  abstract void drop(Identifier table, boolean purge);
  abstract void rename(Identifier from, Identifier to);

  abstract boolean exists(String[] namespace);

  /** `exists`, `namespaces` and `tables` of a namespace. */
  abstract Map contents(String[] namespace);

  /** Null if there is no such namespace. */
  abstract Map properties(String[] namespace);

  abstract void make(String[] namespace, Map properties);

  /** Returns false if it is not empty. */
  abstract boolean remove(String[] namespace, boolean cascade);
}

/** Where a table is to be created: its options, and whether the statement has declared it there. */
final class NewPlace {
  final Map options;
  final boolean isDeclared;

  NewPlace(Map options, boolean isDeclared) {
    this.options = options;
    this.isDeclared = isDeclared;
  }
}
