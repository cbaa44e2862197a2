// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back, with the tokenizer of a model.

package ai.waste;

import java.util.Arrays;
import java.util.Objects;

/** The tokenizer of an open model. For any number of threads. */
public final class Tokenizer {
  private final WasteModel model;

  Tokenizer(WasteModel model) {
    this.model = model;
  }

  /** Plain text to tokens; special tokens in it are text. */
  public int[] encode(String text) {
    return encode(text, WasteNative::waste_tokenize);
  }

  /** Text in which special tokens ({@code <|open|>}) mean themselves. Never for text of a user. */
  public int[] encodeMarkup(String text) {
    return encode(text, WasteNative::waste_tokenize_markup);
  }

  /** Tokens to text, special ones as their text; bytes that are no character become U+FFFD. */
  public String decode(int... tokens) {
    return Utf8.decode(decodeBytes(tokens));
  }

  /** Tokens to their raw bytes, which may be no whole UTF-8. */
  public byte[] decodeBytes(int... tokens) {
    Objects.requireNonNull(tokens);
    return Utf8.collect(
        8 * tokens.length,
        buffer ->
            model.handle.call(
                model,
                (object, error) ->
                    WasteNative.waste_detokenize(object, tokens, buffer, error)));
  }

  private interface Function {
    long call(long model, byte[] text, int[] tokens, byte[] error);
  }

  private int[] encode(String text, Function function) {
    final byte[] bytes = Utf8.encode(Objects.requireNonNull(text), "text");
    final int[] tokens = new int[bytes.length]; // a token is at least one byte
    final long count =
        model.handle.call(
            model, (object, error) -> function.call(object, bytes, tokens, error));
    return Arrays.copyOf(tokens, Math.toIntExact(count));
  }
}
