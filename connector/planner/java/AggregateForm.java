package lance;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Groups and functions while they are gathered. */
final class AggregateForm {
  final Values values;
  private final Facts facts;
  private final List groups = new ArrayList();
  private final Set keys = new LinkedHashSet();
  private final List functions = new ArrayList();
  private StructType schema = new StructType();

  AggregateForm(Facts facts) {
    this.facts = facts;
    this.values = new Values(facts);
  }

  /** Returns the name of the column of a group, that of the table's if it is one; null if rows cannot be grouped. */
  String addGroup(Value key) {
    if (key == null || !Aggregates.isOrdered(key.type)) return null;
    boolean isNamed = key.isColumn() && key.form.size() == 2 && isFree((String) key.form.get(1));
    String name = isNamed ? (String) key.form.get(1) : "group_" + groups.size();
    if (isNamed) keys.add(name);
    schema = schema.add(name, key.type, true);
    groups.add(key.form);
    return name;
  }

  /** Whether a column may have this name: no other has it, nor may get it. */
  private boolean isFree(String name) {
    if (name.matches("(?i)(group|aggregate)_[0-9]+")) return false;
    String[] names = schema.fieldNames();
    for (int i = 0; i < names.length; i++) if (names[i].equalsIgnoreCase(name)) return false;
    return true;
  }

  /** Adds a function whose result has a column of each type. */
  void addFunction(String name, Value[] arguments, DataType[] types) {
    List function = new ArrayList();
    function.add(name);
    for (int i = 0; i < arguments.length; i++) function.add(arguments[i].form);
    functions.add(function);
    for (int i = 0; i < types.length; i++) {
      schema = schema.add("aggregate_" + (schema.length() - groups.size()), types[i], true);
    }
  }

  Aggregates made(String shownGroups, String shownFunctions) {
    List forms = new ArrayList(groups);
    forms.addAll(functions);
    Map form = new LinkedHashMap();
    form.put("groups", groups);
    form.put("functions", functions);
    StructType columns = Values.columns(facts.schema(), forms);
    form.put("columns", columns.json());
    String shown = columns.simpleString() + ", groups: " + shownGroups + ", aggregates: " + shownFunctions;
    return new Aggregates(schema, groups.size(), keys, Python.json(form), shown);
  }
}
