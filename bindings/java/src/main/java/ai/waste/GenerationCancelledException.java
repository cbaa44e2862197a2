// SPDX-License-Identifier: Apache-2.0
//
// The end of an answer that somebody else than its reader ended.

package ai.waste;

/**
 * An answer was cancelled: by {@code cancel()}, by an interrupt of the thread that reads it (its
 * interrupt flag is set then), or because its session or model was closed. A stream that its own
 * reader closes just ends instead.
 */
public final class GenerationCancelledException extends OperationCancelledException {
  private static final long serialVersionUID = 1;

  private final transient Completion partial;

  GenerationCancelledException(String message, Completion partial) {
    super(message);
    this.partial = partial;
  }

  /** What was handed out before, which is what the session holds. Null if that is not known. */
  public Completion partial() {
    return partial;
  }
}
