// SPDX-License-Identifier: Apache-2.0
//
// What hears an answer that comes by itself.

package ai.waste;

/**
 * Hears an answer of {@link Session#generateAsync}, on one thread, in order: pieces, then one of
 * the two ends. Every method has a default that does nothing. What a method throws ends the answer
 * and comes out of its future.
 */
public interface StreamHandler {
  /** Some text. */
  default void onPiece(Piece piece) {}

  /** The answer is finished. */
  default void onComplete(Completion completion) {}

  /** The answer failed, or was cancelled ({@link GenerationCancelledException}). */
  default void onError(WasteException error) {}
}
