// SPDX-License-Identifier: Apache-2.0
//
// The error of a session that is full.

package ai.waste;

/** The text does not fit the session's context; the session is as it was. */
public final class ContextFullException extends WasteException {
  private static final long serialVersionUID = 1;

  ContextFullException(String message) {
    super(Status.CONTEXT_FULL, message);
  }
}
