// SPDX-License-Identifier: Apache-2.0
//
// The examples, run as a person would: the terminal with what is typed and Ctrl-C, the window on a
// screen of Xvfb with a key press.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.awt.image.BufferedImage;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Tag("package")
@Timeout(120)
class ExamplesTest {
  private static final Path FX = Path.of("/usr/share/openjfx/lib");

  private static final String MAIN = System.getProperty("waste.test.main");

  @TempDir Path folder;

  @TempDir static Path classes;

  @BeforeAll
  static void compileChat() {
    Command.javac()
        .with("-cp", MAIN, "-d", classes.toString())
        .with(Rig.ROOT.resolve("examples/java-chat/Chat.java").toString())
        .succeed();
  }

  private static Command chat(String model) {
    return Command.java()
        .with("-Dwaste.library.path=" + Rig.NATIVE, "-cp")
        .with(classes + ":" + MAIN, "Chat", model);
  }

  @Test
  void chat_in_a_terminal() {
    final String typed = Rig.ITALY + "\n\nTell me a story about a fox.\n";
    final String output = chat(Rig.MINI.toString()).typing(typed).succeed();
    assertTrue(output.contains("> " + Rig.ROME), output);
    assertEquals(3, output.split("tokens/s]", -1).length, output);
    assertTrue(output.endsWith("> \n"), output);
    assertEquals(1, chat(folder.resolve("nothing").toString()).run().exitCode);
  }

  @Test
  void chat_stops_at_ctrl_c() throws Exception {
    final String script = "{\"answers\": [[{\"repeat\": \"ha\"}], [\"fine\"]]}";
    final Process process = chat(Rig.script(folder, script).toString()).start();
    try (Writer in =
            new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8);
        BufferedReader out =
            new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      in.write("x\n");
      in.flush();
      readUntil(out, "haha");
      interrupt(process);
      readUntil(out, "[stopped]");
      in.write("y\n");
      in.flush();
      readUntil(out, "fine");
      readUntil(out, "> ");
      interrupt(process);
      assertTrue(process.waitFor(20, TimeUnit.SECONDS));
      assertEquals(130, process.exitValue());
    } finally {
      process.destroyForcibly();
    }
  }

  private static void interrupt(Process process) {
    Command.of("kill").with("-INT", String.valueOf(process.pid())).succeed();
  }

  private static void readUntil(BufferedReader out, String wanted) throws IOException {
    final StringBuilder read = new StringBuilder();
    while (!read.toString().endsWith(wanted)) {
      final int next = out.read();
      assertTrue(next >= 0, () -> wanted + " is not in " + read);
      read.append((char) next);
      if (read.length() > 4096) read.delete(0, 2048);
    }
  }

  @Test
  void window_shows_the_answer() throws Exception {
    assumeTrue(
        Rig.RUNTIME.equals("java-17"), "JavaFX 11, which Debian has, does not run on this Java");
    assumeTrue(Files.isDirectory(FX), "openjfx is not installed");
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/Xvfb")), "xvfb is not installed");
    Command.of(System.getProperty("waste.test.jdk") + "/bin/javac")
        .with("-Xlint:all", "-Werror", "-p", FX.toString())
        .with("--add-modules", "javafx.controls,javafx.swing")
        .with("-cp", MAIN, "-d", folder.toString())
        .with(Rig.ROOT.resolve("examples/java-window/ChatWindow.java").toString())
        .with(Rig.ROOT.resolve("examples/java-window/WindowCheck.java").toString())
        .succeed();
    final Process screen =
        Command.of("Xvfb").with("-displayfd", "1", "-screen", "0", "800x600x24")
            .with("-nolisten", "tcp").start();
    try (BufferedReader out =
        new BufferedReader(
            new InputStreamReader(screen.getInputStream(), StandardCharsets.UTF_8))) {
      String display = out.readLine();
      while (display != null && !display.matches("\\d+")) display = out.readLine();
      final Path picture = folder.resolve("window.png");
      final String shown = window(":" + display, picture);
      assertEquals("You: " + Rig.ITALY + "\n" + Rig.ROME, shown.trim());
      final BufferedImage image = ImageIO.read(picture.toFile());
      assertTrue(darkPixels(image) > 500, "the screen shows text: " + darkPixels(image));
    } finally {
      screen.destroy();
    }
  }

  /** Without -Xcheck:jni, since JavaFX itself does not pass it. */
  private String window(String display, Path picture) {
    return Command.of("env")
        .with("DISPLAY=" + display, "HOME=" + folder, "XDG_CACHE_HOME=" + folder)
        .with(Path.of(System.getProperty("java.home"), "bin/java").toString())
        .with("-p", FX.toString(), "--add-modules", "javafx.controls,javafx.swing")
        .with("-Dprism.order=sw", "-Djava.io.tmpdir=" + folder, "-Duser.home=" + folder)
        .with("-Dwaste.library.path=" + Rig.NATIVE, "-cp")
        .with(folder + ":" + MAIN, "WindowCheck")
        .with(Rig.MINI.toString(), Rig.ITALY, picture.toString())
        .succeed();
  }

  private static int darkPixels(BufferedImage image) {
    int count = 0;
    for (int y = 40; y < image.getHeight() - 60; y++)
      for (int x = 0; x < image.getWidth(); x++)
        if ((image.getRGB(x, y) & 0xFF) < 0x60) count++;
    return count;
  }
}
