// SPDX-License-Identifier: Apache-2.0
//
// One native generation and what it has said so far. Pulls a piece at a time on the reader's
// thread, so nothing runs ahead of the reader. Whoever frees it (the end of the text, its reader, a
// closed session, the collector) reads tokens and counters first: they become the Completion.
//
// It must not refer to public objects: a session's handle refers to it.

package ai.waste;

import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

final class Answer extends Handle {
  private static final int PIECE_BYTES = 1024;
  private static final long RESULT_WAIT_MILLIS = 1000;
  private static final long BUSY_NANOS = 1_000_000_000L;

  private final byte[] buffer = new byte[PIECE_BYTES];
  private final waste_token token = new waste_token();
  private final NativeError error = new NativeError();
  private final Map<Channel, StringBuilder> said = new EnumMap<>(Channel.class);
  private final AtomicBoolean reading = new AtomicBoolean();
  private boolean failed;
  private Completion completion;

  Answer(Handle session, long address) {
    super("answer", session, address);
    for (Channel channel : Channel.values()) said.put(channel, new StringBuilder());
  }

  /** Blocks for the next piece; null at the end. After the end or an error the session is free. */
  Piece pull(Object caller) {
    if (!reading.compareAndSet(false, true))
      throw new SessionBusyException("another thread is reading this answer");
    try {
      final Piece piece = enterAndPull(caller);
      if (piece == null) close();
      return piece;
    } catch (OperationCancelledException e) {
      close();
      throw new GenerationCancelledException(e.getMessage(), resultIfKnown());
    } catch (SessionBusyException e) {
      throw e; // a call of another thread is in the way; this answer can be read on
    } catch (WasteException e) {
      failed = true;
      close();
      throw e;
    } finally {
      reading.set(false);
    }
  }

  private Piece enterAndPull(Object caller) {
    final long entered = tryEnter(caller);
    if (entered == 0)
      throw new OperationCancelledException("the answer was cancelled: it was closed");
    try {
      Interrupts.begin(this);
      final long size;
      try {
        size = patiently(() -> WasteNative.waste_next(entered, buffer, token, error.image));
      } finally {
        Interrupts.end(this);
      }
      if (error.check(size) == 0) return null;
      final String text = new String(buffer, 0, (int) size, StandardCharsets.UTF_8);
      final Piece piece = new Piece(text, token);
      said.get(piece.channel()).append(text);
      return piece;
    } finally {
      leave();
    }
  }

  /** What the answer came to; it has ended or is about to be freed by another thread. */
  Completion result() {
    final Completion known = resultIfKnown();
    if (known != null) return known;
    throw new IllegalStateException("the answer is not finished");
  }

  private synchronized Completion resultIfKnown() {
    final long deadline = System.currentTimeMillis() + RESULT_WAIT_MILLIS;
    boolean interrupted = false;
    while (completion == null && isClosed()) {
      final long left = deadline - System.currentTimeMillis();
      if (left <= 0) break;
      try {
        wait(left);
      } catch (InterruptedException e) {
        interrupted = true; // bounded, and the flag is the caller's to see
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
    return completion;
  }

  @Override
  void release(long address) {
    try {
      final Completion collected = collect(address);
      synchronized (this) {
        completion = collected;
        notifyAll();
      }
    } finally {
      token.delete();
      WasteNative.waste_free(address);
    }
  }

  private Completion collect(long address) {
    final Stats stats = Stats.of(address, WasteNative::waste_generation_stats);
    final int count = (int) Math.max(0, tokens(address, null, null));
    final int[] tokens = new int[count];
    final double[] logprobs = new double[count];
    tokens(address, tokens, logprobs);
    FinishReason reason = stats.finishReason();
    if (reason == FinishReason.NONE && !failed) reason = FinishReason.CANCELLED;
    return new Completion(said, tokens, logprobs, reason, stats);
  }

  private long tokens(long address, int[] tokens, double[] logprobs) {
    return patiently(
        () -> WasteNative.waste_generation_tokens(address, tokens, logprobs, error.image));
  }

  /**
   * A call that a short call of another thread on the session may be in the way of for a moment,
   * and that is not to be affected. The library refuses most calls without touching a session whose
   * answer lives; but it allows the reading of the session's tokens then, and a call that began
   * just before the answer did may be refused just behind its beginning.
   */
  static long patiently(LongSupplier call) {
    final long deadline = System.nanoTime() + BUSY_NANOS;
    long result = call.getAsLong();
    while (result == WasteNativeConstants.WASTE_ERR_BUSY && System.nanoTime() < deadline) {
      Thread.yield();
      result = call.getAsLong();
    }
    return result;
  }
}
