package lance;

import java.io.File;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf$;

/** Where the tables of a catalog are, and what is done to its names: in a directory, or by a server. */
abstract class Places {
  static final String STORAGE = "storage.";

  protected final String catalog;
  private final Map storage;

  /** The name of the catalog, and its options of the storage. */
  Places(String catalog, Map storage) {
    this.catalog = catalog;
    this.storage = storage;
  }

  /** A path of this machine in its plain form, or a URI of another storage. */
  static String plain(String given) {
    if (isRemote(given)) return given;
    return new File(new Path(given).toUri().getPath()).getAbsolutePath();
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
