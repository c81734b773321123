package lance;

import org.apache.spark.SparkContext$;

/** The description of the jobs that this thread starts, in Spark's UI and progress bar. See connector/jobs/labels.py. */
final class JobLabel {
  private static final String DESCRIPTION = "spark.job.description";
  private final String text;
  private String former;
  private boolean isPut;

  JobLabel(String text) { this.text = "lance: " + text; }

  void put() {
    former = SparkContext$.MODULE$.getOrCreate().getLocalProperty(DESCRIPTION);
    isPut = true;
    set(text);
  }

  /** Restores the description that the user has set, if any. */
  void remove() {
    if (isPut) set(former);
    isPut = false;
  }

  private static void set(String value) { SparkContext$.MODULE$.getOrCreate().setLocalProperty(DESCRIPTION, value); }
}
