package lance;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.TableChange;

/** The changes of an ALTER TABLE as Python takes them. */
final class Changes {
  private Changes() {}

  static Map of(String table, TableChange[] changes) {
    Map set = new LinkedHashMap();
    List unset = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof TableChange.SetProperty) {
        TableChange.SetProperty change = (TableChange.SetProperty) changes[i];
        set.put(change.property(), change.value());
      } else if (changes[i] instanceof TableChange.RemoveProperty) {
        unset.add(((TableChange.RemoveProperty) changes[i]).property());
      } else {
        throw new UnsupportedOperationException("ALTER TABLE " + table + " " + Commands.clause(changes[i])
            + " is not supported; nothing was changed. CREATE OR REPLACE TABLE " + table + " AS SELECT ..., which may read"
            + " the table itself, gives it other columns");
      }
    }
    Map details = new LinkedHashMap();
    details.put("set", set);
    details.put("unset", unset);
    return details;
  }
}
