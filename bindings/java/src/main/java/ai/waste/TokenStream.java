// SPDX-License-Identifier: Apache-2.0
//
// An answer as its reader sees it: pieces, pulled one at a time, and one of three ends. The end of
// the text and a close by the reader just end; any other cancel throws, behind the piece that was
// already pulled.

package ai.waste;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * An answer, piece by piece. Close it (try-with-resources does) when you stop reading early: that
 * cancels the answer, keeps in the session what was read, and makes the session free at once. An
 * answer that was read to its end has done so by itself.
 *
 * <p>Reading is for one thread at a time; {@link #cancel()} and {@link #close()} are for any
 * thread. It can be read once: each {@link #iterator()} goes on where the last one stopped.
 */
public final class TokenStream implements Iterable<Piece>, AutoCloseable {
  private final Session session; // reachable as long as its answer is read
  private final Answer answer;
  private volatile Thread reader;
  private volatile boolean ended;
  private Piece ahead;
  private WasteException failure;

  TokenStream(Session session, Answer answer) {
    this.session = session;
    this.answer = answer;
    answer.ownedBy(this);
  }

  /**
   * The pieces. Both methods of the iterator block until there is text, and throw a {@link
   * GenerationCancelledException} once somebody else has cancelled the answer or this thread was
   * interrupted, and other {@link WasteException}s for what goes wrong.
   */
  @Override
  public Iterator<Piece> iterator() {
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return pull();
      }

      @Override
      public Piece next() {
        if (!pull()) throw new NoSuchElementException("the answer has ended");
        final Piece piece = ahead;
        ahead = null;
        return piece;
      }
    };
  }

  private boolean pull() {
    if (ahead != null) return true;
    if (ended) return false;
    if (failure != null) throw failure;
    reader = Thread.currentThread();
    try {
      ahead = answer.pull(this);
    } catch (SessionBusyException e) {
      throw e; // not the end: it can be read on
    } catch (WasteException e) {
      if (ended) return false; // its own reader closed it, from code called by this very read
      failure = e;
      throw e;
    }
    ended = ahead == null;
    return !ended;
  }

  /** Reads what is left. Errors are those of the iterator. */
  public Completion readAll() {
    while (pull()) ahead = null;
    return completion();
  }

  /**
   * What the answer came to, once it has ended, was closed or has failed.
   *
   * @throws IllegalStateException if it goes on
   */
  public Completion completion() {
    return answer.result();
  }

  /** Counters, at any time. */
  public Stats stats() {
    try {
      return Stats.read(answer, this, WasteNative::waste_generation_stats);
    } catch (IllegalStateException e) {
      return completion().stats(); // it has ended
    }
  }

  /** The session that this is an answer of. */
  public Session session() {
    return session;
  }

  /**
   * Stops the answer, within a layer or one read. Returns at once; the reader gets a {@link
   * GenerationCancelledException}. Does nothing behind the end. Any thread.
   */
  public void cancel() {
    answer.cancel();
  }

  /**
   * Stops the answer and frees it; waits up to a second for a reader inside. Does nothing the
   * second time. Any thread; a reader on another thread gets a
   * {@link GenerationCancelledException}.
   */
  @Override
  public void close() {
    final Thread last = reader;
    if (last == null || last == Thread.currentThread()) ended = true;
    answer.close();
  }
}
