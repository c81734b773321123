package lance;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** Metrics of the parts that a plan skips before any task runs, for Spark's user interface, which loads the classes by
 * name. */
public final class Metrics {
  private static final CustomMetric[] ALL = {
      new FragmentsPlanned(), new FragmentsSkipped(), new RowsPlanned(), new RowsSkipped()};

  private Metrics() {}

  /** Adds them to others. */
  static CustomMetric[] and(CustomMetric[] others) {
    CustomMetric[] all = new CustomMetric[others.length + ALL.length];
    System.arraycopy(others, 0, all, 0, others.length);
    System.arraycopy(ALL, 0, all, others.length, ALL.length);
    return all;
  }

  /** Fragments and rows that tasks read, out of all. */
  static CustomTaskMetric[] of(long fragments, long allFragments, long rows, long allRows) {
    return new CustomTaskMetric[] {new Value(ALL[0], fragments), new Value(ALL[1], allFragments - fragments),
        new Value(ALL[2], rows), new Value(ALL[3], Math.max(allRows - rows, 0))};
  }

  public static final class FragmentsPlanned extends CustomSumMetric {
    public String name() { return "fragmentsPlanned"; }
    public String description() { return "fragments to look at"; }
  }

  public static final class FragmentsSkipped extends CustomSumMetric {
    public String name() { return "fragmentsSkipped"; }
    public String description() { return "fragments left out by the plan"; }
  }

  public static final class RowsPlanned extends CustomSumMetric {
    public String name() { return "rowsPlanned"; }
    public String description() { return "rows to look at"; }
  }

  public static final class RowsSkipped extends CustomSumMetric {
    public String name() { return "rowsSkipped"; }
    public String description() { return "rows left out by the plan"; }
  }

  private static final class Value implements CustomTaskMetric {
    private final CustomMetric metric;
    private final long value;

    Value(CustomMetric metric, long value) {
      this.metric = metric;
      this.value = value;
    }

    public String name() { return metric.name(); }
    public long value() { return value; }
  }
}
