// SPDX-License-Identifier: Apache-2.0
//
// A conversation as tokens: what raw sessions and chats have in common. Checks nothing that the
// library checks (busy, full): its errors are typed and leave the session as it was. The exception
// is a second eval, so that the interrupt of the one that is refused cannot stop the other.

package ai.waste;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A list of tokens that the model has seen. Prompts of a plain session are text to continue; those
 * of a {@link ChatSession} are messages.
 *
 * <p>A session is for one call at a time: a second one, or any but {@link #stats()}, {@link
 * #position()}, {@link #cancel()} and {@link #close()} while an answer lives, gets a {@link
 * SessionBusyException}. Using a closed session is an {@link IllegalStateException}.
 */
public class Session implements AutoCloseable {
  final WasteModel model;
  final Handle handle;
  private final AtomicBoolean evaluating = new AtomicBoolean();
  private volatile float[] lastLogits;

  Session(WasteModel model, long address) {
    this.model = model;
    handle = new Handle("session", model.handle, address);
    handle.ownedBy(this);
  }

  /** The model of this session. */
  public WasteModel model() {
    return model;
  }

  /** Starts an answer with default options. See {@link #stream(String, GenerationOptions)}. */
  public TokenStream stream(String prompt) {
    return stream(prompt, GenerationOptions.defaults());
  }

  /**
   * Starts an answer; nothing runs before the first piece is asked for.
   *
   * @param prompt text; null to go on from what the session holds: to answer messages that were
   *     added, or to finish an answer that was cut short
   * @throws ContextFullException if the prompt does not fit
   * @throws SessionBusyException if an answer of this session lives
   * @throws WasteException {@code ARGUMENT} or {@code UNSUPPORTED}, with the reason
   */
  public TokenStream stream(String prompt, GenerationOptions options) {
    final byte[] text = Utf8.encode(prompt, "prompt");
    final long[] made = new long[1];
    final waste_generation_options wanted = options.toNative(isRaw(options));
    try {
      call((session, error) -> WasteNative.waste_generate(session, text, wanted, made, error));
    } finally {
      wanted.delete();
    }
    final Answer answer = new Answer(handle, made[0]);
    final TokenStream stream = new TokenStream(this, answer);
    try {
      answer.call(stream, options::addTo);
      return stream;
    } catch (RuntimeException e) {
      stream.close();
      throw e;
    }
  }

  /** Waits for a whole answer with default options. */
  public Completion ask(String prompt) {
    return ask(prompt, GenerationOptions.defaults());
  }

  /**
   * Waits for a whole answer. Errors are those of {@link #stream(String, GenerationOptions)} and of
   * reading.
   *
   * @throws GenerationCancelledException after {@link #cancel()} from another thread, an interrupt
   *     of this one, or when the session or model is closed
   */
  public Completion ask(String prompt, GenerationOptions options) {
    try (TokenStream stream = stream(prompt, options)) {
      return stream.readAll();
    }
  }

  /**
   * Starts an answer that is read on another thread. Errors of starting are thrown here.
   *
   * @param executor where to read it, which occupies one of its threads; null for a new daemon
   *     thread
   */
  public Generation generateAsync(
      String prompt, GenerationOptions options, Executor executor, StreamHandler handler) {
    Objects.requireNonNull(handler);
    return Generation.start(stream(prompt, options), executor, handler);
  }

  /** Stops the answer or the eval that runs, if one does. Returns at once. Any thread. */
  public void cancel() {
    handle.cancelChildren();
    Interrupts.cancel(handle);
  }

  /** Runs tokens through the model and keeps the logits of the last one for {@link #logits()}. */
  public void eval(int[] tokens) {
    eval(tokens, 1);
  }

  /**
   * Runs tokens through the model. If that fails or is cancelled, the session holds what it held.
   *
   * @return the logits of the last {@code rows} tokens, one row of the vocabulary behind another
   * @throws ContextFullException if the tokens do not fit
   * @throws OperationCancelledException after {@link #cancel()} from another thread, an interrupt
   *     of this one (whose flag stays set), or when the session or model is closed
   */
  public float[] eval(int[] tokens, int rows) {
    Check.that(rows >= 0, "rows", rows);
    Objects.requireNonNull(tokens);
    final int width = model.info().vocabularySize();
    final float[] logits = new float[Math.multiplyExact(width, rows)];
    if (!evaluating.compareAndSet(false, true))
      throw new SessionBusyException("another thread is inside eval of this session");
    try {
      call((session, error) -> evalNative(session, tokens, rows == 0 ? null : logits, error));
    } finally {
      evaluating.set(false);
    }
    lastLogits =
        rows == 0 ? null : Arrays.copyOfRange(logits, logits.length - width, logits.length);
    return logits;
  }

  private long evalNative(long session, int[] tokens, float[] logits, byte[] error) {
    // A cancel before the call would be forgotten, and a short eval over before the next.
    if (Thread.currentThread().isInterrupted())
      throw new OperationCancelledException("the eval was cancelled: its thread was interrupted");
    Interrupts.begin(handle);
    try {
      return WasteNative.waste_eval(session, tokens, logits, error);
    } finally {
      Interrupts.end(handle);
    }
  }

  /**
   * The logits of the last token of the last eval. A copy.
   *
   * @throws IllegalStateException if there was none, or it asked for no rows
   */
  public float[] logits() {
    final float[] logits = lastLogits;
    if (logits == null) throw new IllegalStateException("no eval has kept its logits");
    return logits.clone();
  }

  /** The tokens that the session holds. */
  public int[] tokens() {
    int[] tokens = new int[0];
    while (true) {
      final int[] buffer = tokens;
      final int count =
          (int) call((session, error) -> WasteNative.waste_session_tokens(session, buffer, error));
      if (count == tokens.length) return tokens;
      tokens = new int[count];
    }
  }

  /** How many tokens the session holds. At any time. */
  public long position() {
    return stats().position();
  }

  /** Forgets everything, a system message too. */
  public void reset() {
    call((session, error) -> WasteNative.waste_session_reset(session, error));
    lastLogits = null;
  }

  /** Goes back to the first {@code position} tokens; some may have to be run again. */
  public void rewind(long position) {
    call((session, error) -> WasteNative.waste_session_rewind(session, position, error));
    lastLogits = null;
  }

  /** A second session that holds the same, charged to the model's budget like a new one. */
  public Session fork() {
    return new Session(model, forkNative());
  }

  final long forkNative() {
    final long[] made = new long[1];
    call((session, error) -> WasteNative.waste_session_fork(session, made, error));
    return made[0];
  }

  /** Writes tokens and state to a file. */
  public void save(Path path) {
    final byte[] name = Utf8.encode(path);
    call((session, error) -> WasteNative.waste_session_save(session, name, error));
  }

  /**
   * Reads back what {@link #save} wrote. A file that is damaged, too long or of another model is
   * refused, and changes nothing.
   */
  public void load(Path path) {
    final byte[] name = Utf8.encode(path);
    call((session, error) -> WasteNative.waste_session_load(session, name, error));
    lastLogits = null;
  }

  /** Counters of this session. At any time. */
  public Stats stats() {
    return Stats.read(handle, this, WasteNative::waste_session_stats);
  }

  /**
   * Cancels its answer or eval, waits up to a second for what is inside, and frees. Any thread,
   * any time.
   */
  @Override
  public void close() {
    handle.close();
  }

  boolean isRaw(GenerationOptions options) {
    return true;
  }

  final long call(NativeCall call) {
    return handle.call(this, call);
  }
}
