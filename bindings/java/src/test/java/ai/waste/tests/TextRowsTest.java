// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows about text: characters over tokens, stops, the end of the context, and
// a conversation that goes on in another process.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import ai.waste.ChatSession;
import ai.waste.Completion;
import ai.waste.ContextFullException;
import ai.waste.FinishReason;
import ai.waste.GenerationOptions;
import ai.waste.ModelOptions;
import ai.waste.Piece;
import ai.waste.Role;
import ai.waste.Status;
import ai.waste.TokenStream;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class TextRowsTest {
  private static final String JAPAN = "What is the capital of Japan?";

  @TempDir Path folder;

  @Test
  void row05_emoji_over_tokens_nul_and_lone_surrogates() throws IOException {
    final String script =
        "{\"answers\": [[\"a\", {\"bytes\": \"f09f\"}, {\"bytes\": \"909d\"},"
            + " {\"bytes\": \"00\"}, \"b\", {\"bytes\": \"f09f\"}]]}";
    try (WasteModel model = Rig.scripted(folder, script);
        ChatSession chat = model.newChat()) {
      final List<String> pieces = new ArrayList<>();
      try (TokenStream stream = chat.stream("emoji 🐝 and \0 NUL")) {
        for (Piece piece : stream) {
          pieces.add(piece.text());
          if (piece.text().equals("🐝")) assertEquals(2, piece.tokenCount());
        }
      }
      assertEquals(List.of("a", "🐝", "\0", "b", "\uFFFD"), pieces);

      final String nul = "a\0b 🐝";
      assertEquals(nul, model.tokenizer().decode(model.tokenizer().encode(nul)));
      final long before = chat.position();
      for (String bad : new String[] {"\uD83D", "x\uDC1Dy", "\uDC1D\uD83D"}) {
        assertArgument(() -> chat.ask(bad));
        assertArgument(() -> chat.addMessage(bad));
        assertArgument(() -> model.tokenizer().encode(bad));
        final GenerationOptions stop = GenerationOptions.builder().stop(bad).build();
        assertArgument(() -> chat.ask("x", stop));
      }
      assertEquals(before, chat.position());
      Rig.assertAnswers(chat);
    }
  }

  private static void assertArgument(Runnable call) {
    assertEquals(Status.ARGUMENT, assertThrows(WasteException.class, call::run).status());
  }

  @Test
  void row06_stop_string_across_pieces() throws IOException {
    final String script =
        "{\"answers\": [[\"one E\", \"N\", \"D two\"], [\"one E\", \"N\", \"X\"]]}";
    try (WasteModel model = Rig.scripted(folder, script);
        ChatSession chat = model.newChat()) {
      final GenerationOptions options = GenerationOptions.builder().stop("END").build();
      final List<String> pieces = new ArrayList<>();
      try (TokenStream stream = chat.stream("x", options)) {
        for (Piece piece : stream) pieces.add(piece.text());
        assertEquals(FinishReason.STOP, stream.completion().finishReason());
        assertEquals("one ", stream.completion().text());
      }
      assertEquals("one ", String.join("", pieces));
      assertEquals("one ENX", chat.ask("x", options).text());
    }
  }

  @Test
  void row12_longer_than_the_context() {
    final ModelOptions small = ModelOptions.builder().contextTokens(64).build();
    try (WasteModel model = WasteModel.open(Rig.MINI, small);
        ChatSession chat = model.newChat()) {
      chat.addMessage(Role.USER, "hi");
      final int[] before = chat.tokens();
      final String endless = "word ".repeat(200);
      assertThrows(ContextFullException.class, () -> chat.stream(endless));
      assertThrows(ContextFullException.class, () -> chat.addMessage(endless));
      assertThrows(
          ContextFullException.class, () -> chat.eval(model.tokenizer().encode(endless)));
      assertArrayEquals(before, chat.tokens());
      chat.reset();
      final Completion cut = chat.ask("Tell me a story about a fox.");
      assertEquals(FinishReason.LENGTH, cut.finishReason());
      assertEquals(64, chat.position());
    }
  }

  @Test
  void row13_save_new_process_load_continue() {
    final Path saved = folder.resolve("conversation");
    final int[] expected;
    try (WasteModel model = Rig.mini();
        ChatSession chat = model.newChat()) {
      assertEquals(Rig.ROME, chat.ask(Rig.ITALY).text());
      chat.save(saved);
      expected = chat.ask(JAPAN).tokens();
    }
    assertFalse(expected.length == 0);
    final String there = Command.child(Rig.NATIVE, "continue", saved.toString()).succeed();
    assertEquals(Arrays.toString(expected), there.trim());
  }
}
