// SPDX-License-Identifier: Apache-2.0
//
// The jars as users get them, used from scratch in a folder of their own: class path, module path,
// a jar inside a jar, two class loaders, and the cache that the native library is taken out into.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Tag("package")
@Timeout(120)
class PackageTest {
  private static final String PLATFORM = "linux-x64";
  private static final String HELLO =
      "import ai.waste.*;\n"
          + "public class Hello {\n"
          + "  public static void main(String[] path) {\n"
          + "    try (WasteModel model = WasteModel.open(java.nio.file.Path.of(path[0]));\n"
          + "        ChatSession chat = model.newChat()) {\n"
          + "      System.out.println(chat.ask(\"" + Rig.ITALY + "\").text());\n"
          + "    }\n"
          + "  }\n"
          + "}\n";

  @TempDir static Path jars;
  private static Path main;
  private static Path natives;
  private static Path all;

  @TempDir Path folder;

  @BeforeAll
  static void makePackage() throws IOException {
    Command.of("bash")
        .with(Rig.ROOT.resolve("bindings/java/package.sh").toString())
        .with(Rig.NATIVE.toString(), jars.toString())
        .succeed();
    main = jar("waste-\\d[^-]*\\.jar");
    natives = jar("waste-\\d.*-" + PLATFORM + "\\.jar");
    all = jar("waste-all-.*\\.jar");
    jar("waste-.*\\.pom");
  }

  private static Path jar(String pattern) throws IOException {
    final List<Path> found = listing(jars);
    found.removeIf(file -> !file.getFileName().toString().matches(pattern));
    assertEquals(1, found.size(), pattern);
    return found.get(0);
  }

  private static List<Path> listing(Path at) throws IOException {
    try (Stream<Path> files = Files.list(at)) {
      return files.collect(Collectors.toList());
    }
  }

  /** Compiles files below {@code folder}/src to {@code folder}/classes. */
  private Path compile(String... options) throws IOException {
    final Path classes = folder.resolve("classes");
    final Command javac = Command.javac().with(options).with("-d", classes.toString());
    for (Path source : listing(folder.resolve("src"))) javac.with(source.toString());
    javac.succeed();
    return classes;
  }

  private void source(String name, String code) throws IOException {
    Files.createDirectories(folder.resolve("src"));
    Files.writeString(folder.resolve("src").resolve(name), code);
  }

  private Path cache() {
    return folder.resolve("cache");
  }

  /** A Java that finds no native library but in jars. */
  private Command java() {
    return Command.java()
        .with("-Dwaste.cache.path=" + cache(), "-Djava.io.tmpdir=" + folder)
        .with("-Djava.library.path=" + folder)
        .in(folder);
  }

  private Command classPath(Path... path) {
    final String joined = Stream.of(path).map(Path::toString).collect(Collectors.joining(":"));
    return java().with("-cp", joined, "Hello", Rig.MINI.toString());
  }

  private void assertNothingLeft() throws IOException {
    for (Path left : listing(folder))
      assertFalse(left.getFileName().toString().startsWith("waste-"), left::toString);
  }

  @Test
  void class_path_and_its_cache() throws IOException {
    source("Hello.java", HELLO);
    final Path classes = compile("-cp", main.toString());
    final Path foreign = folder.resolve("foreign/META-INF/native/" + PLATFORM);
    Files.createDirectories(foreign);
    Files.writeString(foreign.resolve("libother.so"), "another library's");
    final Command hello = classPath(folder.resolve("foreign"), main, natives, classes);
    assertEquals(Rig.ROME, hello.succeed().trim());

    final Path kept = onlyFile(cache());
    assertEquals("libwaste_jni.so", kept.getFileName().toString());
    assertEquals(64, kept.getParent().getFileName().toString().length());
    for (Path own : List.of(cache(), kept.getParent()))
      assertEquals(
          "rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(own)));
    final FileTime written = Files.getLastModifiedTime(kept);
    assertEquals(Rig.ROME, hello.succeed().trim());
    assertEquals(written, Files.getLastModifiedTime(kept), "the second run uses what is there");

    Files.writeString(kept, "damaged");
    assertEquals(Rig.ROME, hello.succeed().trim());
    assertEquals(Files.size(Rig.NATIVE.resolve("libwaste_jni.so")), Files.size(kept));

    Files.setPosixFilePermissions(kept.getParent(), PosixFilePermissions.fromString("rwxrwxrwx"));
    Files.writeString(kept, "put there by somebody else");
    assertEquals(Rig.ROME, hello.succeed().trim(), "others may write there: a private copy");
    assertNothingLeft();
  }

  private static Path onlyFile(Path at) throws IOException {
    try (Stream<Path> files = Files.walk(at)) {
      final List<Path> found = files.filter(Files::isRegularFile).collect(Collectors.toList());
      assertEquals(1, found.size(), found.toString());
      return found.get(0);
    }
  }

  @Test
  void natives_missing() throws IOException {
    source("Hello.java", HELLO);
    final Command hello = classPath(main, compile("-cp", main.toString())).run();
    assertNotEquals(0, hello.exitCode);
    assertTrue(hello.output.contains("System.loadLibrary(\"waste_jni\") in " + folder));
    assertTrue(hello.output.contains("META-INF/native/linux-x64/libwaste_jni.so: no jar has it"));
    assertTrue(hello.output.contains("Add the jar for this platform (linux-x64)"), hello.output);
  }

  @Test
  void named_module() throws IOException {
    source("module-info.java", "module hello { requires ai.waste; }\n");
    source("Hello.java", "package hello;\n" + HELLO);
    final Path classes = compile("-p", main.toString());
    final String only = Rig.RUNTIME.equals("java-17") ? "" : "--enable-native-access=ai.waste";
    final Command one =
        java().with(only, "-p", all + ":" + classes, "-m", "hello/hello.Hello", Rig.MINI + "");
    // Command.java opens access for the class path; here the module alone must do.
    one.words.remove("--enable-native-access=ALL-UNNAMED");
    assertEquals(Rig.ROME, one.succeed().trim());
    final Command two =
        java().with(only, "-p", main + ":" + natives + ":" + classes)
            .with("--add-modules", "ai.waste.natives.linux.x64")
            .with("-m", "hello/hello.Hello", Rig.MINI.toString());
    assertEquals(Rig.ROME, two.succeed().trim());
  }

  @Test
  void jar_in_a_jar_and_two_class_loaders() throws Exception {
    source("Hello.java", HELLO);
    final Path classes = compile("-cp", main.toString());
    final Path app = folder.resolve("app.jar");
    try (OutputStream file = Files.newOutputStream(app);
        ZipOutputStream zip = new ZipOutputStream(file)) {
      for (Path inner : List.of(main, natives)) {
        zip.putNextEntry(new ZipEntry("BOOT-INF/lib/" + inner.getFileName()));
        Files.copy(inner, zip);
      }
      zip.putNextEntry(new ZipEntry("BOOT-INF/classes/Hello.class"));
      Files.copy(classes.resolve("Hello.class"), zip);
    }
    final Command nested =
        java().with("-cp", System.getProperty("waste.test.classes"))
            .with(NestedJarLoader.class.getName(), app.toString(), Rig.MINI.toString());
    assertEquals(Rig.ROME + "\n" + Rig.ROME, nested.succeed().trim());
    onlyFile(cache());
    assertNothingLeft();

    // The same with a library that is named: the second loader gets a copy.
    final Command named =
        Command.java()
            .with("-Dwaste.library.path=" + Rig.NATIVE, "-Djava.io.tmpdir=" + folder)
            .with("-cp", System.getProperty("waste.test.classes"))
            .with(NestedJarLoader.class.getName(), app.toString(), Rig.MINI.toString());
    assertEquals(Rig.ROME + "\n" + Rig.ROME, named.succeed().trim());
    final Command onPath =
        Command.java()
            .with("-Djava.library.path=" + Rig.NATIVE, "-Djava.io.tmpdir=" + folder)
            .with("-cp", System.getProperty("waste.test.classes"))
            .with(NestedJarLoader.class.getName(), app.toString(), Rig.MINI.toString());
    assertEquals(Rig.ROME + "\n" + Rig.ROME, onPath.succeed().trim());
    assertNothingLeft();
  }

  @Test
  void the_page_s_programs_compile_and_the_first_one_runs() throws IOException {
    final String[] parts = Files.readString(Rig.ROOT.resolve("docs/java.md")).split("```");
    int blocks = 0;
    for (int i = 1; i < parts.length; i += 2) {
      if (!parts[i].startsWith("java\n")) continue;
      final String code = parts[i].substring("java\n".length());
      final String name = blocks++ == 0 ? "First" : "Page" + blocks;
      source(name + ".java", name.equals("First") ? code : fragment(name, code));
    }
    assertTrue(blocks > 4);
    final Path classes = compile("-cp", all.toString());
    final String output =
        java().in(Rig.ROOT).with("-cp", all + ":" + classes, "First").succeed();
    assertTrue(output.contains(Rig.ROME), output);
  }

  private static String fragment(String name, String code) {
    return "import ai.waste.*;\nimport java.nio.file.Path;\n"
        + "import java.util.concurrent.CompletableFuture;\n"
        + "class " + name + " {\n"
        + "void run(WasteModel model, ChatSession chat, Path path) {\n" + code + "}\n}\n";
  }
}
