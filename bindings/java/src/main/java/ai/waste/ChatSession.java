// SPDX-License-Identifier: Apache-2.0
//
// A session whose prompts go through the model's chat format.

package ai.waste;

/** A conversation: prompts are a user's messages. See {@link Session} for its rules. */
public final class ChatSession extends Session {
  ChatSession(WasteModel model, long address) {
    super(model, address);
  }

  /** Adds a user's message; the next answer with a null prompt replies to it. */
  public void addMessage(String text) {
    addMessage(Role.USER, text);
  }

  /**
   * Adds a whole message. It costs nothing until an answer is asked for.
   *
   * @throws ContextFullException if it does not fit
   * @throws WasteException {@code UNSUPPORTED} if the model has no chat format
   */
  public void addMessage(Role role, String text) {
    final byte[] bytes = Utf8.encode(text, "message");
    call(
        (session, error) ->
            WasteNative.waste_session_add_message(session, role.code, bytes, error));
  }

  @Override
  public ChatSession fork() {
    return new ChatSession(model, forkNative());
  }

  @Override
  boolean isRaw(GenerationOptions options) {
    return options.raw();
  }
}
