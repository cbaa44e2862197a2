// SPDX-License-Identifier: Apache-2.0
//
// The error of work that was told to stop.

package ai.waste;

/** A {@link Job} or an answer was cancelled. */
public class OperationCancelledException extends WasteException {
  private static final long serialVersionUID = 1;

  OperationCancelledException(String message) {
    super(Status.CANCELLED, message);
  }
}
