// SPDX-License-Identifier: Apache-2.0
//
// Which part of an answer a piece belongs to.

package ai.waste;

/** Which part of an answer a {@link Piece} belongs to. */
public enum Channel {
  /** The answer itself. */
  RESPONSE(WasteNativeConstants.WASTE_CHANNEL_RESPONSE),
  /** What the model thinks before it answers. */
  THINKING(WasteNativeConstants.WASTE_CHANNEL_THINKING),
  /** A call of a tool. */
  TOOL(WasteNativeConstants.WASTE_CHANNEL_TOOL);

  final int code;

  Channel(int code) {
    this.code = code;
  }

  static Channel of(int code) {
    for (Channel channel : values()) if (channel.code == code) return channel;
    return RESPONSE;
  }
}
