// SPDX-License-Identifier: Apache-2.0
//
// Long work on a thread of the library: open, convert, synthesize, verify. Waiting polls, so that
// an interrupt of the waiting thread is seen and a listener hears of progress.

package ai.waste;

import java.util.function.LongFunction;

/**
 * Long work that runs by itself. All methods are for any thread. Closing it cancels and frees;
 * closing it after {@link #await()} just frees.
 *
 * @param <T> what comes out of it
 */
public final class Job<T> implements AutoCloseable {
  private static final long POLL_MILLIS = 25;

  private final Handle handle;
  private final LongFunction<T> take;
  private T result;
  private boolean taken;

  /** {@code take} gets the job's address once it has ended well, and makes the result. */
  Job(long address, LongFunction<T> take) {
    this.take = take;
    handle = new Handle("job", null, address);
    handle.ownedBy(this);
  }

  /** How far it has come. */
  public Progress progress() {
    final waste_progress out = new waste_progress();
    try {
      handle.call(this, (job, error) -> WasteNative.waste_job_progress(job, out, error));
      return new Progress(out.getDone(), out.getTotal(), out.getFinished() != 0);
    } finally {
      out.delete();
    }
  }

  /** The next line that the work has to say; null when there is none. */
  public String nextLogLine() {
    return WasteModel.nextLogLine(handle, this);
  }

  /** Tells the work to stop. Returns at once. */
  public void cancel() {
    handle.cancel();
  }

  /** Waits for the end without listening. See {@link #await(ProgressListener)}. */
  public T await() {
    return await(progress -> {});
  }

  /**
   * Waits for the end. An interrupt of this thread cancels the work.
   *
   * @throws OperationCancelledException if it was cancelled; after an interrupt the thread's flag
   *     is set
   * @throws WasteException what the work failed with
   */
  public T await(ProgressListener listener) {
    try {
      long status = WasteNativeConstants.WASTE_RUNNING;
      while (status == WasteNativeConstants.WASTE_RUNNING) {
        if (Thread.currentThread().isInterrupted()) cancel();
        status =
            handle.call(
                this, (job, error) -> WasteNative.waste_job_wait(job, POLL_MILLIS, error));
        listener.onProgress(progress());
      }
      return takeResult();
    } catch (RuntimeException | Error e) {
      cancel();
      throw e;
    }
  }

  /** Cancels what runs, waits for it to stop, and frees. */
  @Override
  public void close() {
    handle.close();
  }

  private synchronized T takeResult() {
    if (!taken) {
      final long entered = handle.enter(this);
      try {
        result = take.apply(entered);
      } finally {
        handle.leave();
      }
      taken = true;
    }
    return result;
  }
}
