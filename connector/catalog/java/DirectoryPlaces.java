package lance;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;

/** Tables in a directory, which is listed again for every question: subdirectories are namespaces. */
final class DirectoryPlaces extends Places {
  private final String root;

  DirectoryPlaces(String catalog, Map storage, String root) {
    super(catalog, storage);
    this.root = root.replaceAll("(?<=[^/])/+$", "");
  }

  private String directory(String[] namespace) {
    StringBuilder all = new StringBuilder(root);
    for (int i = 0; i < namespace.length; i++) all.append('/').append(checked("namespace", namespace[i]));
    return all.toString();
  }

  private String path(Identifier table) {
    return directory(table.namespace()) + "/" + checked("table", table.name()) + ".lance";
  }

  /** Characters that are codes in URIs would name another object there. */
  private String checked(String what, String part) {
    if (isRemote(root) && part.matches(".*[%?#].*")) {
      throw new IllegalArgumentException("`" + part + "` cannot be the name of a " + what + " in " + root + ": names there do"
          + " not contain %, ? or #");
    }
    boolean isOthers = part.isEmpty() || part.startsWith(".") || part.startsWith("_") || part.endsWith(".lance");
    if (isOthers || part.indexOf('/') >= 0 || part.indexOf('\\') >= 0 || part.indexOf('$') >= 0) {
      throw new IllegalArgumentException("`" + part + "` cannot be the name of a " + what + ", which is one of a directory"
          + " and does not start with . or _, contain / or $, or end with .lance. A table by its path has no namespace");
    }
    return part;
  }

  Map options(Identifier table) { return options(path(table)); }

  NewPlace place(Identifier table, String location) {
    String path = path(table);
    if (location != null && !plain(location).equals(path)) {
      throw new UnsupportedOperationException("LOCATION: a table of the catalog " + catalog + " is where its name says, at "
          + path + ". Leave the clause out, or create the table by its path, as " + catalog + ".`/path/to/table.lance`");
    }
    return new NewPlace(options(path), false);
  }

  void abandon(Identifier table) {}
  void confirm(Identifier table, Map options) {}

  String remedy(Identifier table) {
    return "The files of a dropped table " + catalog + "." + table + " are still at " + path(table) + ". DROP TABLE "
        + catalog + ".`" + path(table) + "` PURGE deletes them; then there can be a new table";
  }

  void drop(Identifier table, boolean purge) {
    Catalog.act("drop", options(table), details("purge", Boolean.valueOf(purge)), null);
  }

  void rename(Identifier from, Identifier to) { Catalog.act("rename", options(from), details("to", path(to)), null); }

  boolean exists(String[] namespace) { return Boolean.TRUE.equals(contents(namespace).get("exists")); }

  Map contents(String[] namespace) { return actIn("list", namespace, Collections.emptyMap()); }

  private Map actIn(String what, String[] namespace, Map details) {
    return Catalog.act(what, options(directory(namespace)), details, null);
  }

  Map properties(String[] namespace) {
    if (namespace.length > 0 && !exists(namespace)) return null;
    return Collections.singletonMap(SupportsNamespaces.PROP_LOCATION, directory(namespace));
  }

  void make(String[] namespace, Map properties) {
    if (!properties.isEmpty()) {
      throw new UnsupportedOperationException("A namespace of the catalog " + catalog + " is a directory, which keeps neither"
          + " properties nor a comment, and is where its name says: leave out " + properties.keySet());
    }
    actIn("make", namespace, Collections.emptyMap());
  }

  boolean remove(String[] namespace, boolean cascade) {
    Map found = actIn("remove", namespace, details("cascade", Boolean.valueOf(cascade)));
    return !Boolean.FALSE.equals(found.get("removed"));
  }
}
