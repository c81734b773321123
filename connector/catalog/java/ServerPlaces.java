package lance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;

/** Tables whose names and places a server keeps: one of Lance's namespaces, AWS Glue, a Hive metastore. */
final class ServerPlaces extends Places {
  private final String server;

  /** The settings are all options of the catalog. */
  ServerPlaces(String catalog, Map storage, Map settings) {
    super(catalog, storage);
    Map server = new LinkedHashMap();
    server.put("catalog", catalog);
    server.put("settings", settings);
    this.server = Python.json(server);
  }

  private List id(String[] namespace) { return new ArrayList(Arrays.asList(namespace)); }

  private List id(Identifier table) {
    List all = id(table.namespace());
    all.add(table.name());
    return all;
  }

  private Map act(String what, Map details) {
    Map options = options((String) null);
    options.put("__lance.server", server);
    return Catalog.act(what, options, details, null);
  }

  private Map act(String what, List id, String name, Object value) {
    Map details = details("id", id);
    if (name != null) details.put(name, value);
    return act(what, details);
  }

  private Map located(Map found) {
    Map options = options((String) found.get("path"));
    if (found.containsKey("storage")) options.putAll((Map) found.get("storage"));
    return options;
  }

  Map options(Identifier table) { return located(act("locate", id(table), null, null)); }

  /** A table that another program has declared is not declared again, and stays if the statement fails. */
  NewPlace place(Identifier table, String location) {
    Map found = act("declare", id(table), "location", location == null ? null : plain(location));
    if (found.containsKey("occupied")) throw new IllegalArgumentException(occupied(table, (String) found.get("occupied")));
    return new NewPlace(located(found), Boolean.TRUE.equals(found.get("is_new")));
  }

  /** Some servers derive the place from the name. */
  private String occupied(Identifier table, String path) {
    return "The place of the new table " + catalog + "." + table + " is " + path + ", where another table is, perhaps a"
        + " dropped one; nothing was changed. DROP TABLE " + catalog + ".`" + path + "` PURGE deletes it; then there can be a"
        + " new table";
  }

  void abandon(Identifier table) { act("abandon", id(table), null, null); }

  void confirm(Identifier table, Map options) {
    Object path = options.get("path");
    if (path.equals(options(table).get("path"))) return;
    throw new IllegalArgumentException("The rows of the new table " + catalog + "." + table + " are at " + path + ", but the"
        + " server no longer has it there: another program, which had declared the name, has given it up. Run the statement"
        + " again; DROP TABLE " + catalog + ".`" + path + "` PURGE deletes these rows");
  }

  String remedy(Identifier table) { throw new IllegalStateException("a server forgets a table that is dropped"); }

  void drop(Identifier table, boolean purge) { act("drop", id(table), "purge", Boolean.valueOf(purge)); }

  void rename(Identifier from, Identifier to) { act("rename", id(from), "to", id(to)); }

  boolean exists(String[] namespace) {
    return Boolean.TRUE.equals(act("exists", id(namespace), null, null).get("exists"));
  }

  Map contents(String[] namespace) { return act("list", id(namespace), null, null); }

  /** Spark asks for them several times per statement. The root has none. */
  Map properties(String[] namespace) {
    return namespace.length == 0 ? Collections.emptyMap() : (Map) act("about", id(namespace), null, null).get("properties");
  }

  void make(String[] namespace, Map properties) { act("make", id(namespace), "properties", properties); }

  boolean remove(String[] namespace, boolean cascade) {
    Map found = act("remove", id(namespace), "cascade", Boolean.valueOf(cascade));
    return !Boolean.FALSE.equals(found.get("removed"));
  }
}
