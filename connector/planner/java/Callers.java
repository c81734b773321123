package lance;

/** The classes of Spark that led to a call. Spark does not say otherwise why it asks. */
final class Callers {
  private Callers() {}

  /** Whether the name of a class contains a text. */
  static boolean contain(String text) {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) if (calls[i].getClassName().contains(text)) return true;
    return false;
  }

  /** Whether the name of a class ends with a text, which excludes companions and inner classes. */
  static boolean end(String name) {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) if (calls[i].getClassName().endsWith(name)) return true;
    return false;
  }
}
