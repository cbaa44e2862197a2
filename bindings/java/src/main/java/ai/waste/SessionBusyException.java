// SPDX-License-Identifier: Apache-2.0
//
// The error of the second of two callers.

package ai.waste;

/**
 * Another call on this session runs, or an answer of it lives. What runs is not affected. Close the
 * {@link TokenStream}, or wait for the {@link Generation}, before the next one.
 */
public final class SessionBusyException extends WasteException {
  private static final long serialVersionUID = 1;

  SessionBusyException(String message) {
    super(Status.BUSY, message);
  }
}
