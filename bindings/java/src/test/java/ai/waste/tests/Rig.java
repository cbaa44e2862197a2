// SPDX-License-Identifier: Apache-2.0
//
// What the tests share: where things are (system properties that test.sh sets), scripted models,
// and waiting for a condition instead of for a while.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.waste.ChatSession;
import ai.waste.GenerationOptions;
import ai.waste.ModelOptions;
import ai.waste.Piece;
import ai.waste.TokenStream;
import ai.waste.WasteModel;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Arrays;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

final class Rig {
  static final Path ROOT = Path.of(System.getProperty("waste.test.root"));
  static final Path NATIVE = Path.of(System.getProperty("waste.test.native"));
  static final Path MINI = ROOT.resolve("examples/mini/mini.waste");
  static final Path CONFORMANCE = ROOT.resolve("bindings/conformance");
  static final String RUNTIME = System.getProperty("waste.test.runtime");
  static final String ENDLESS = "{\"answers\": [[{\"repeat\": \"ha\"}]], \"context\": 10000000}";
  static final ModelOptions LONG = ModelOptions.builder().contextTokens(10_000_000).build();
  static final String ITALY = "What is the capital of Italy?";
  static final String ROME = "The capital of Italy is Rome.";

  private static final long PATIENCE_NANOS = 20_000_000_000L;

  private Rig() {}

  static WasteModel mini() {
    return WasteModel.open(MINI, ModelOptions.builder().contextTokens(512).build());
  }

  /** A model that says what {@code json} tells it (docs/capi.md), from a file in {@code folder}. */
  static WasteModel scripted(Path folder, String json) throws IOException {
    return WasteModel.open(script(folder, json));
  }

  /** A model whose answers do not end within a test. */
  static WasteModel endless(Path folder) throws IOException {
    return WasteModel.open(script(folder, ENDLESS), LONG);
  }

  static Path script(Path folder, String json) throws IOException {
    final Path file = Files.createTempFile(folder, "script", ".json");
    Files.writeString(file, json);
    return test(file);
  }

  static Path test(Path file) {
    return Path.of("test:" + file.toAbsolutePath());
  }

  static GenerationOptions tokens(int most) {
    return GenerationOptions.builder().maxTokens(most).build();
  }

  static String text(TokenStream stream) {
    final StringBuilder text = new StringBuilder();
    for (Piece piece : stream) text.append(piece.text());
    return text.toString();
  }

  /** The session works: what a test asks after something went wrong in it. */
  static void assertAnswers(ChatSession chat) {
    assertTrue(chat.ask("again", tokens(4)).text().length() > 0);
  }

  static void await(String what, BooleanSupplier condition) {
    final long deadline = System.nanoTime() + PATIENCE_NANOS;
    while (!condition.getAsBoolean()) {
      assertTrue(System.nanoTime() < deadline, "waited in vain: " + what);
      Thread.onSpinWait();
    }
  }

  /** Waits until {@code thread} is inside the native function. */
  static void awaitInside(Thread thread, String function) {
    await(
        "a thread inside " + function,
        () -> {
          final StackTraceElement[] stack = thread.getStackTrace();
          return stack.length > 0 && stack[0].getMethodName().equals(function);
        });
  }

  /** Waits until {@code thread} is inside the method, or what that has called. */
  static void awaitOnStack(Thread thread, String method) {
    await(
        "a thread inside " + method,
        () ->
            Arrays.stream(thread.getStackTrace())
                .anyMatch(frame -> frame.getMethodName().equals(method)));
  }

  static long rssBytes() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
      final String line = lines.filter(l -> l.startsWith("VmRSS:")).findFirst().orElseThrow();
      return Long.parseLong(line.replaceAll("\\D", "")) << 10;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** A copy of the mini model, to be damaged. */
  static Path copyOfMini(Path target) throws IOException {
    Files.createDirectories(target);
    try (Stream<Path> files = Files.list(MINI)) {
      for (Path file : (Iterable<Path>) files::iterator)
        Files.copy(file, target.resolve(file.getFileName()));
    }
    return target;
  }

  static void deleteTree(Path folder) throws IOException {
    Files.walkFileTree(
        folder,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes a) throws IOException {
            Files.delete(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path at, IOException e) throws IOException {
            Files.delete(at);
            return FileVisitResult.CONTINUE;
          }
        });
  }
}
