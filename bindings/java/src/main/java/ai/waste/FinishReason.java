// SPDX-License-Identifier: Apache-2.0
//
// Why an answer ended.

package ai.waste;

/** Why an answer ended. */
public enum FinishReason {
  /** It is still going on, or it ended in an error. */
  NONE(WasteNativeConstants.WASTE_FINISH_NONE),
  /** The model ended its turn, or a stop string or stop token came. */
  STOP(WasteNativeConstants.WASTE_FINISH_STOP),
  /** {@link GenerationOptions.Builder#maxTokens} or the end of the context is reached. */
  LENGTH(WasteNativeConstants.WASTE_FINISH_LENGTH),
  /** It was cancelled, or closed by its reader. */
  CANCELLED(WasteNativeConstants.WASTE_FINISH_CANCELLED);

  final int code;

  FinishReason(int code) {
    this.code = code;
  }

  static FinishReason of(int code) {
    for (FinishReason reason : values()) if (reason.code == code) return reason;
    return NONE;
  }
}
