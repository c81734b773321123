package lance;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Groups and functions while they are gathered. */
final class AggregateForm {
  final Values values;
  private final Facts facts;
  private final List groups = new ArrayList();
  private final List functions = new ArrayList();
  private StructType schema = new StructType();

  AggregateForm(Facts facts) {
    this.facts = facts;
    this.values = new Values(facts);
  }

  /** Returns whether rows can be grouped by a value. */
  boolean addGroup(Value key) {
    if (key == null || !Aggregates.isOrdered(key.type)) return false;
    schema = schema.add("group_" + groups.size(), key.type, true);
    groups.add(key.form);
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
    return new Aggregates(schema, groups.size(), Python.json(form), shown);
  }
}
