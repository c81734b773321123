package lance;

import org.apache.spark.sql.connector.read.SampleMethod;
import org.apache.spark.sql.connector.read.SupportsPushDownTableSample;

/** What Spark says of samples, where it also knows those of blocks. */
abstract class SampledBuilder implements SupportsPushDownTableSample {
  /** Rows of a block: enough for a few chunks of each column, of which all others need not be read. */
  private static final int BLOCK = 8192;

  /** Draws runs of so many rows, if it can. */
  abstract boolean pushSample(double lower, double upper, boolean withReplacement, long seed, int run);

  public boolean pushTableSample(double lower, double upper, boolean withReplacement, long seed, SampleMethod method) {
    return pushSample(lower, upper, withReplacement, seed, method == SampleMethod.SYSTEM ? BLOCK : 1);
  }
}
