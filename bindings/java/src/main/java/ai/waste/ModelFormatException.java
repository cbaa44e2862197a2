// SPDX-License-Identifier: Apache-2.0
//
// Errors of a file.

package ai.waste;

/** A file is not what it should be: {@code FORMAT}, {@code CORRUPT} or {@code VERSION}. */
public final class ModelFormatException extends WasteException {
  private static final long serialVersionUID = 1;

  ModelFormatException(Status status, String message) {
    super(status, message);
  }
}
