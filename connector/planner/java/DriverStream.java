package lance;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxBytes;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/**
 * A stream whose offsets and tasks the driver's Python process finds; its tasks are those of batches. Spark would start a
 * process per query, which costs two seconds of CPU time before the first row.
 */
class DriverStream implements MicroBatchStream {
  private final LanceScan scan;
  private final String id;
  private final String function;

  DriverStream(LanceScan scan, String id, Map opened) {
    this.scan = scan;
    this.id = id;
    this.function = (String) opened.get("function");
  }

  static MicroBatchStream open(LanceScan scan) {
    String id = UUID.randomUUID().toString();
    Map opened = ask(scan, id, "open", Collections.emptyMap());
    Map limit = (Map) opened.get("limit");
    return limit == null ? new DriverStream(scan, id, opened) : new LimitedDriverStream(scan, id, opened, limit);
  }

  private static Map ask(LanceScan scan, String id, String call, Map details) {
    Map question = new HashMap(details);
    question.put("id", id);
    question.put("call", call);
    return scan.askStream(question);
  }

  Map ask(String call, Map details) { return ask(scan, id, call, details); }
  Map ask(String call) { return ask(call, Collections.emptyMap()); }
  static Offset offset(Map answer) { return new DriverOffset((String) answer.get("offset")); }

  public Offset initialOffset() { return offset(ask("initial")); }
  public Offset latestOffset() { return offset(ask("latest")); }
  public Offset deserializeOffset(String json) { return new DriverOffset(json); }
  public void commit(Offset end) { ask("commit", Collections.singletonMap("end", end.json())); }
  public void stop() { ask("stop"); }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    Map details = new HashMap();
    details.put("start", start.json());
    details.put("end", end.json());
    return scan.planned(function, (List) ask("plan", details).get("partitions")).planInputPartitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    PartitionReaderFactory rows = scan.planned(function, Collections.emptyList()).createReaderFactory();
    return Columns.areReachable() ? new Columns(rows) : rows;
  }
}

/** The same, in batches that options and triggers limit. */
final class LimitedDriverStream extends DriverStream implements SupportsTriggerAvailableNow {
  private final ReadLimit limit;

  LimitedDriverStream(LanceScan scan, String id, Map opened, Map limit) {
    super(scan, id, opened);
    Number files = (Number) limit.get("files");
    Number bytes = (Number) limit.get("bytes");
    if (files != null) this.limit = ReadLimit.maxFiles(files.intValue());
    else this.limit = bytes == null ? ReadLimit.allAvailable() : ReadLimit.maxBytes(bytes.longValue());
  }

  public void prepareForTriggerAvailableNow() { ask("prepare"); }
  public ReadLimit getDefaultReadLimit() { return limit; }
  public Offset reportLatestOffset() { return offset(ask("report")); }

  public Offset latestOffset(Offset start, ReadLimit limit) {
    Map details = new HashMap();
    details.put("start", start.json());
    if (limit instanceof ReadMaxFiles) details.put("files", Integer.valueOf(((ReadMaxFiles) limit).maxFiles()));
    if (limit instanceof ReadMaxBytes) details.put("bytes", Long.valueOf(((ReadMaxBytes) limit).maxBytes()));
    return offset(ask("latest", details));
  }
}

/** An offset in the form that Spark keeps. */
final class DriverOffset extends Offset {
  private final String json;

  DriverOffset(String json) { this.json = json; }

  public String json() { return json; }
}
