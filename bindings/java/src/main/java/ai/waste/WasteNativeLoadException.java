// SPDX-License-Identifier: Apache-2.0
//
// The error of a machine or package without a usable native library.

package ai.waste;

/** The native library could not be loaded. The message lists everything that was tried, and why. */
public final class WasteNativeLoadException extends WasteException {
  private static final long serialVersionUID = 1;

  WasteNativeLoadException(String message) {
    super(Status.UNSUPPORTED, message);
  }
}
