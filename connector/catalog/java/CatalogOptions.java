package lance;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a catalog, `spark.sql.catalog.name.option`, which say where its tables are. */
final class CatalogOptions {
  private static final String HEADERS = "headers.";
  private static final List OF_DIRECTORIES = Collections.singletonList("root");
  private static final List OF_SERVERS = Arrays.asList(new String[] {"uri", "delimiter", "parent", "parent_delimiter"});

  private CatalogOptions() {}

  static Places places(String catalog, CaseInsensitiveStringMap options) {
    String impl = (String) options.getOrDefault("impl", "dir");
    boolean isServer = impl.equalsIgnoreCase("rest");
    if (!isServer && !impl.equalsIgnoreCase("dir")) {
      throw refused(catalog, "impl", "is " + impl + ", and a catalog of Lance tables is one of dir, a directory, and of rest, a"
          + " server of namespaces");
    }
    Map storage = new HashMap();
    Map headers = new LinkedHashMap();
    for (Iterator names = options.keySet().iterator(); names.hasNext(); ) {
      String option = (String) names.next();
      if (option.startsWith(Places.STORAGE)) storage.put(option, options.get(option));
      else if (isServer && option.startsWith(HEADERS)) headers.put(option.substring(HEADERS.length()), options.get(option));
      else if (!option.equals("impl") && !(isServer ? OF_SERVERS : OF_DIRECTORIES).contains(option)) {
        throw refused(catalog, option, "is set, but a catalog of Lance tables "
            + (isServer ? "on a server has the options " + String.join(", ", OF_SERVERS) + ", and such that start with " + HEADERS
                + " or " : "has the option root, its directory, and options that start with ")
            + Places.STORAGE + ": remove it");
      }
    }
    if (isServer) return server(catalog, options, storage, headers);
    String root = options.get("root");
    return new DirectoryPlaces(
        catalog, storage, root != null ? root : SQLConf$.MODULE$.get().warehousePath() + "/" + catalog + ".catalog");
  }

  private static Places server(String catalog, CaseInsensitiveStringMap options, Map storage, Map headers) {
    if (options.get("uri") == null) throw refused(catalog, "uri", "is missing: it is the address of the server");
    Map server = new LinkedHashMap();
    server.put("uri", options.get("uri"));
    server.put("headers", headers);
    server.put("delimiter", options.getOrDefault("delimiter", "$"));
    String parent = (String) options.getOrDefault("parent", "");
    String[] parts = parent.isEmpty() ? new String[0]
        : parent.split(Pattern.quote((String) options.getOrDefault("parent_delimiter", ".")));
    return new ServerPlaces(catalog, storage, Python.json(server), Arrays.asList(parts));
  }

  private static IllegalArgumentException refused(String catalog, String option, String why) {
    return new IllegalArgumentException("spark.sql.catalog." + catalog + "." + option + " " + why);
  }
}
