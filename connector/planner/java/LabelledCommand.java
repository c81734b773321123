package lance;

import java.util.Arrays;
import java.util.Collections;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A command all of whose jobs have a label: also the shuffles, which run before Spark asks the write for anything. If
 * one of these fails, Spark neither commits nor aborts the write, so that only this command can remove the label.
 */
public final class LabelledCommand extends V2CommandExec {
  private final SparkPlan command;
  private final String text;

  /** Public, as Spark copies plans by their constructors. */
  public LabelledCommand(SparkPlan command, String text) {
    this.command = command;
    this.text = text;
  }

  public Seq run() {
    JobLabel label = new JobLabel(text);
    label.put();
    try {
      return CollectionConverters.asScala(Arrays.asList(command.executeCollect())).toSeq();
    } finally {
      label.remove();
    }
  }

  public Seq output() { return command.output(); }
  public Seq children() { return CollectionConverters.asScala(Collections.singletonList(command)).toSeq(); }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new LabelledCommand((SparkPlan) children.head(), text);
  }

  public int productArity() { return 2; }
  public Object productElement(int i) { return i == 0 ? (Object) command : text; }
  public boolean canEqual(Object other) { return other instanceof LabelledCommand; }
}
