// SPDX-License-Identifier: Apache-2.0
//
// Programs that tests start: the Java under test, javac of the JDK, scripts. What they print comes
// back whole, and no Java may print a warning.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

final class Command {
  private static final int LIMIT_SECONDS = 60;

  final List<String> words = new ArrayList<>();
  private String input = "";
  private Path folder = Rig.ROOT;
  int exitCode;
  String output;

  private Command(String program) {
    words.add(program);
  }

  static Command of(String program) {
    return new Command(program);
  }

  /** The runtime under test, with the flags that the tests themselves run under. */
  static Command java() {
    final Command command = of(Path.of(System.getProperty("java.home"), "bin/java").toString());
    return command.with("-Xshare:auto").with(System.getProperty("waste.test.flags").split(" "));
  }

  /** The same with the test classes and a native library, to run a main method of Child. */
  static Command child(Path nativePath, String... arguments) {
    return java()
        .with("-Dwaste.library.path=" + nativePath, "-Dwaste.test.root=" + Rig.ROOT)
        .with("-Dwaste.test.native=" + nativePath)
        .with("-cp", System.getProperty("waste.test.classes"), Child.class.getName())
        .with(arguments);
  }

  static Command javac() {
    return of(System.getProperty("waste.test.jdk") + "/bin/javac")
        .with("-Xlint:all", "-Werror", "--release", "11");
  }

  Command with(String... more) {
    for (String word : more) if (!word.isEmpty()) words.add(word);
    return this;
  }

  Command in(Path working) {
    folder = working;
    return this;
  }

  Command typing(String text) {
    input = text;
    return this;
  }

  Process start() {
    try {
      return new ProcessBuilder(words).directory(folder.toFile()).redirectErrorStream(true).start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  Command run() {
    final Process process = start();
    try {
      process.getOutputStream().write(input.getBytes(StandardCharsets.UTF_8));
      process.getOutputStream().close();
      output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertTrue(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS), () -> "it goes on: " + words);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    } finally {
      process.destroyForcibly();
    }
    exitCode = process.exitValue();
    assertFalse(output.contains("WARNING"), () -> words + " warns:\n" + output);
    return this;
  }

  /** Runs it, and it must end well. */
  String succeed() {
    run();
    assertEquals(0, exitCode, () -> words + "\n" + output);
    return output;
  }
}
