package lance;

import org.apache.spark.sql.connector.read.SupportsPushDownTableSample;

/** What Spark says of samples, where it only knows those of rows. */
abstract class SampledBuilder implements SupportsPushDownTableSample {
  /** Draws runs of so many rows, if it can. */
  abstract boolean pushSample(double lower, double upper, boolean withReplacement, long seed, int run);

  public boolean pushTableSample(double lower, double upper, boolean withReplacement, long seed) {
    return pushSample(lower, upper, withReplacement, seed, 1);
  }
}
