// SPDX-License-Identifier: Apache-2.0
//
// The twelve errors of the C API as an enum.

package ai.waste;

/** What kind of error a {@link WasteException} is. */
public enum Status {
  /** The system refused an open, a read or a write. */
  IO(WasteNativeConstants.WASTE_ERR_IO),
  /** This is not a file that the library understands. */
  FORMAT(WasteNativeConstants.WASTE_ERR_FORMAT),
  /** It is one, and it is damaged: copy or convert it again. */
  CORRUPT(WasteNativeConstants.WASTE_ERR_CORRUPT),
  /** It is sound, and this build cannot run it. */
  UNSUPPORTED(WasteNativeConstants.WASTE_ERR_UNSUPPORTED),
  /** The caller asked for something that cannot be. */
  ARGUMENT(WasteNativeConstants.WASTE_ERR_ARGUMENT),
  /** The memory budget is below what is needed: see {@link RamBudgetException#neededBytes()}. */
  RAM_BUDGET(WasteNativeConstants.WASTE_ERR_RAM_BUDGET),
  /** The system gave no memory or no thread. */
  NO_MEMORY(WasteNativeConstants.WASTE_ERR_NO_MEMORY),
  /** The text does not fit the session's context. */
  CONTEXT_FULL(WasteNativeConstants.WASTE_ERR_CONTEXT_FULL),
  /** Another call on this session runs, or an answer of it lives. */
  BUSY(WasteNativeConstants.WASTE_ERR_BUSY),
  /** It was cancelled. */
  CANCELLED(WasteNativeConstants.WASTE_ERR_CANCELLED),
  /** The file was written by a newer version. */
  VERSION(WasteNativeConstants.WASTE_ERR_VERSION),
  /** A bug of the library: please report the message. */
  INTERNAL(WasteNativeConstants.WASTE_ERR_INTERNAL);

  final int code;

  Status(int code) {
    this.code = code;
  }

  static Status of(long code) {
    for (Status status : values()) if (status.code == code) return status;
    return INTERNAL;
  }
}
