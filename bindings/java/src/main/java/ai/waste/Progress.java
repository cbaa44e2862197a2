// SPDX-License-Identifier: Apache-2.0
//
// How far a job has come.

package ai.waste;

/** How far a {@link Job} has come. Immutable. */
public final class Progress {
  private final long done;
  private final long total;
  private final boolean finished;

  Progress(long done, long total, boolean finished) {
    this.done = done;
    this.total = total;
    this.finished = finished;
  }

  /** In units of the job: bytes for open and verify, tensors for convert. */
  public long done() {
    return done;
  }

  /** In the same units; 0 until it is known. */
  public long total() {
    return total;
  }

  /** Whether the job has ended, well or not. */
  public boolean finished() {
    return finished;
  }

  /** From 0 to 1; 0 until the total is known. */
  public double fraction() {
    return total <= 0 ? 0 : (double) done / total;
  }

  @Override
  public String toString() {
    return done + " of " + total;
  }
}
