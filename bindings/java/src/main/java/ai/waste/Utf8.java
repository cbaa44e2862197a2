// SPDX-License-Identifier: Apache-2.0
//
// Text and paths as the bytes that cross. Only byte[] crosses: JNI's own strings are modified
// UTF-8, which breaks a NUL and aborts Android's VM on an emoji.

package ai.waste;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.ToLongFunction;

final class Utf8 {
  private Utf8() {}

  /** Null stays null. A lone surrogate is an argument error and never silently a question mark. */
  static byte[] encode(String text, String what) {
    return text == null ? null : encode(text, what, StandardCharsets.UTF_8);
  }

  /** The bytes the system knows this path by. */
  static byte[] encode(Path path) {
    final String system = System.getProperty("sun.jnu.encoding");
    final boolean known =
        File.separatorChar == '/' && system != null && Charset.isSupported(system);
    return encode(
        path.toString(), "path", known ? Charset.forName(system) : StandardCharsets.UTF_8);
  }

  private static byte[] encode(String text, String what, Charset charset) {
    try {
      final ByteBuffer bytes =
          charset
              .newEncoder()
              .onMalformedInput(CodingErrorAction.REPORT)
              .onUnmappableCharacter(CodingErrorAction.REPORT)
              .encode(CharBuffer.wrap(text));
      return Arrays.copyOf(bytes.array(), bytes.limit());
    } catch (CharacterCodingException e) {
      throw new WasteException(
          Status.ARGUMENT, "the " + what + " holds what is no character of " + charset, e);
    }
  }

  /** Calls {@code fill} with a buffer until what it has to say fits. */
  static byte[] collect(int guess, ToLongFunction<byte[]> fill) {
    byte[] buffer = new byte[guess];
    while (true) {
      final int size = Math.toIntExact(fill.applyAsLong(buffer));
      if (size <= buffer.length) return Arrays.copyOf(buffer, size);
      buffer = new byte[size];
    }
  }

  static String decode(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
