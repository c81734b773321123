package lance;

import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a catalog, `spark.sql.catalog.name.option`, which say where its tables are. Python checks those of servers. */
final class CatalogOptions {
  private CatalogOptions() {}

  static Places places(String catalog, CaseInsensitiveStringMap options) {
    boolean isDirectory = ((String) options.getOrDefault("impl", "dir")).equalsIgnoreCase("dir");
    Map storage = new HashMap();
    Map settings = new LinkedHashMap();
    for (Iterator names = options.keySet().iterator(); names.hasNext(); ) {
      String option = (String) names.next();
      settings.put(option, options.get(option));
      if (option.startsWith(Places.STORAGE)) storage.put(option, options.get(option));
      else if (isDirectory && !option.equals("impl") && !option.equals("root")) {
        throw new IllegalArgumentException("spark.sql.catalog." + catalog + "." + option + " is set, but a catalog of Lance"
            + " tables has the option root, its directory, and options that start with " + Places.STORAGE + ": remove it, or"
            + " set impl to what the catalog is on, such as rest, glue or hive2");
      }
    }
    if (!isDirectory) return new ServerPlaces(catalog, storage, settings);
    String root = options.get("root");
    String warehouse = Places.plain(SQLConf$.MODULE$.get().warehousePath());
    return new DirectoryPlaces(
        catalog, storage, root != null ? Places.named(root) : warehouse + "/" + catalog + ".catalog");
  }
}
