package lance;

import scala.runtime.AbstractPartialFunction;

/** Puts another node in the place of one in a plan. */
final class Exchange extends AbstractPartialFunction {
  private final Object old;
  private final Object made;

  Exchange(Object old, Object made) {
    this.old = old;
    this.made = made;
  }

  public boolean isDefinedAt(Object plan) { return plan == old; }
  public Object apply(Object plan) { return made; }
}
