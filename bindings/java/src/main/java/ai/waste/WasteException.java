// SPDX-License-Identifier: Apache-2.0
//
// The root of the errors, and what those have that no subclass is for.

package ai.waste;

/** An error of the library. The message is the library's own: it names the file and the numbers. */
public class WasteException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final Status status;

  WasteException(Status status, String message) {
    this(status, message, null);
  }

  WasteException(Status status, String message, Throwable cause) {
    super(message, cause);
    this.status = status;
  }

  /** What kind of error this is. */
  public Status status() {
    return status;
  }
}
