// SPDX-License-Identifier: Apache-2.0
//
// An answer that comes by itself: reads a TokenStream on an executor's thread, or one of its own.

package ai.waste;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/** An answer that is read on another thread. All methods are for any thread. */
public final class Generation {
  private final TokenStream stream;
  private final StreamHandler handler;
  private final CompletableFuture<Completion> completion = new CompletableFuture<>();

  private Generation(TokenStream stream, StreamHandler handler) {
    this.stream = stream;
    this.handler = handler;
  }

  /** Without an executor, on a new daemon thread: a blocked answer must not take a shared one. */
  static Generation start(TokenStream stream, Executor executor, StreamHandler handler) {
    final Generation generation = new Generation(stream, handler);
    generation.completion.whenComplete((result, error) -> stream.cancel());
    try {
      if (executor == null) {
        Daemon.start("waste-generation", generation::run);
      } else {
        executor.execute(generation::run);
      }
    } catch (Throwable e) {
      stream.close();
      throw e;
    }
    return generation;
  }

  /** Stops the answer; its handler and its future hear of it. Returns at once. */
  public void cancel() {
    stream.cancel();
  }

  /**
   * The whole answer, or the error that ended it: a {@link WasteException}, or what the handler
   * threw. Completing or cancelling this future stops the answer.
   */
  public CompletableFuture<Completion> completion() {
    return completion;
  }

  private void run() {
    try {
      final WasteException failure = readAll();
      if (failure == null) {
        final Completion result = stream.completion();
        handler.onComplete(result);
        completion.complete(result);
      } else {
        handler.onError(failure);
        completion.completeExceptionally(failure);
      }
    } catch (Throwable e) {
      completion.completeExceptionally(e);
    }
  }

  /** What ended the answer early, or null. The session is free then. */
  private WasteException readAll() {
    try (TokenStream reading = stream) {
      for (Piece piece : reading) handler.onPiece(piece);
      return null;
    } catch (WasteException e) {
      return e;
    }
  }
}
