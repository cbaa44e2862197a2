// SPDX-License-Identifier: Apache-2.0
//
// What is told how far a job has come.

package ai.waste;

/** Hears of the progress of a job, on the thread that waits for it. */
@FunctionalInterface
public interface ProgressListener {
  /** Called about 40 times a second. What it throws cancels the job and comes out of the wait. */
  void onProgress(Progress progress);
}
