// SPDX-License-Identifier: Apache-2.0
//
// Who a message is from.

package ai.waste;

/** Who a message of a conversation is from. */
public enum Role {
  /** Instructions for the model. */
  SYSTEM(WasteNativeConstants.WASTE_ROLE_SYSTEM),
  /** The person. */
  USER(WasteNativeConstants.WASTE_ROLE_USER),
  /** The model; for conversations that are put together from a record. */
  ASSISTANT(WasteNativeConstants.WASTE_ROLE_ASSISTANT);

  final int code;

  Role(int code) {
    this.code = code;
  }
}
