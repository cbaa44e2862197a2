// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows about opening: bad files, budgets, cancelling, paths, the native
// library itself.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.waste.ChatSession;
import ai.waste.DataSize;
import ai.waste.Job;
import ai.waste.MemoryPlan;
import ai.waste.ModelFormatException;
import ai.waste.ModelOptions;
import ai.waste.OperationCancelledException;
import ai.waste.ProgressListener;
import ai.waste.RamBudgetException;
import ai.waste.Status;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class OpenRowsTest {
  private static final Duration PROMPTLY = Duration.ofSeconds(1);
  private static final String SLOW_OPEN = "{\"answers\": [[\"x\"]], \"open_stall_ms\": 30000}";

  @TempDir Path folder;

  @Test
  void row01_open_missing_truncated_wrong_magic_wrong_version() throws IOException {
    final Path missing = folder.resolve("nothing.waste");
    assertEquals(Status.IO, openFails(missing, WasteException.class, "nothing.waste").status());

    final Path truncated = Rig.copyOfMini(folder.resolve("truncated.waste"));
    final Path trunk = truncated.resolve("trunk.bin");
    try (FileChannel file = FileChannel.open(trunk, StandardOpenOption.WRITE)) {
      file.truncate(1000);
    }
    openFails(truncated, ModelFormatException.class, "trunk.bin");

    final Path magic = Rig.copyOfMini(folder.resolve("magic.waste"));
    final byte[] books = Files.readAllBytes(magic.resolve("codebooks.bin"));
    books[0] ^= 0x55;
    Files.write(magic.resolve("codebooks.bin"), books);
    openFails(magic, ModelFormatException.class, "codebooks.bin");

    final Path version = Rig.copyOfMini(folder.resolve("version.waste"));
    final Path manifest = version.resolve("manifest.json");
    final String json = Files.readString(manifest);
    Files.writeString(manifest, json.replace("\"format_version\": 0", "\"format_version\": 9"));
    final WasteException newer = openFails(version, ModelFormatException.class, "manifest.json");
    assertEquals(Status.VERSION, newer.status());

    Files.writeString(manifest, "no JSON");
    openFails(version, ModelFormatException.class, "manifest.json");
    try (WasteModel sound = Rig.mini()) {
      assertEquals(2048, sound.info().vocabularySize());
    }
  }

  private static <T extends WasteException> T openFails(Path path, Class<T> type, String named) {
    final T failure = assertThrows(type, () -> WasteModel.open(path).close());
    assertTrue(failure.getMessage().contains(named), failure.getMessage());
    assertEquals(
        failure.status(),
        assertThrows(type, () -> WasteModel.plan(path, ModelOptions.defaults())).status());
    return failure;
  }

  @Test
  void row02_budget_too_small() {
    final ModelOptions tiny = ModelOptions.builder().ramBudget(DataSize.ofBytes(1000)).build();
    final MemoryPlan plan = WasteModel.plan(Rig.MINI, tiny);
    assertEquals(false, plan.fits());
    final RamBudgetException failure =
        assertThrows(RamBudgetException.class, () -> WasteModel.open(Rig.MINI, tiny).close());
    assertEquals(Status.RAM_BUDGET, failure.status());
    assertEquals(plan.floorBytes(), failure.neededBytes());
    final ModelOptions enough = tiny.toBuilder().ramBudget(failure.neededBytes()).build();
    WasteModel.open(Rig.MINI, enough).close();
  }

  @Test
  void row03_open_cancelled_by_job_by_interrupt_by_listener() throws Exception {
    final Path slow = Rig.script(folder, SLOW_OPEN);
    try (Job<WasteModel> job = WasteModel.openJob(slow, ModelOptions.defaults())) {
      final long cancelled = System.nanoTime();
      job.cancel();
      assertThrows(OperationCancelledException.class, job::await);
      assertPrompt(cancelled);
      assertTrue(job.progress().finished());
    }

    final AtomicReference<WasteException> caught = new AtomicReference<>();
    final AtomicLong ended = new AtomicLong();
    final Thread opener =
        new Thread(
            () -> {
              final WasteException e =
                  assertThrows(
                      OperationCancelledException.class, () -> WasteModel.open(slow).close());
              ended.set(System.nanoTime());
              if (Thread.currentThread().isInterrupted()) caught.set(e);
            });
    opener.start();
    Rig.awaitInside(opener, "waste_job_wait");
    final long interrupted = System.nanoTime();
    opener.interrupt();
    opener.join();
    assertNotNull(caught.get(), "cancelled, with the interrupt flag set");
    assertTrue(ended.get() - interrupted < PROMPTLY.toNanos());

    Thread.currentThread().interrupt();
    final long begun = System.nanoTime();
    assertThrows(OperationCancelledException.class, () -> WasteModel.open(slow).close());
    assertTrue(Thread.interrupted(), "the flag is still set");
    assertPrompt(begun);

    final long started = System.nanoTime();
    final IllegalStateException mine = new IllegalStateException("enough");
    final ProgressListener thrower =
        progress -> {
          throw mine;
        };
    final IllegalStateException thrown =
        assertThrows(
            IllegalStateException.class,
            () -> WasteModel.open(slow, ModelOptions.defaults(), thrower).close());
    assertEquals(mine, thrown);
    assertPrompt(started);
  }

  private static void assertPrompt(long since) {
    assertTrue(System.nanoTime() - since < PROMPTLY.toNanos());
  }

  @Test
  void row04_paths_with_spaces_emoji_cyrillic() throws IOException {
    for (String name : new String[] {"a model.waste", "пчела.waste", "bee 🐝.waste"}) {
      final Path path = Rig.copyOfMini(folder.resolve(name));
      try (WasteModel model = WasteModel.open(path);
          ChatSession chat = model.newChat()) {
        assertEquals(Rig.ROME, chat.ask(Rig.ITALY).text());
        final Path saved = folder.resolve(name + " saved");
        chat.save(saved);
        chat.load(saved);
      }
    }
  }

  @Test
  void row15_abi_mismatch() throws IOException {
    final String other = "int32_t waste_other(void) { return 99; }";
    final String output = childWith(stub("version", "-Dwaste_abi_version=waste_other", other));
    assertTrue(output.contains("WasteNativeLoadException"), output);
    assertTrue(output.contains("ABI 99") && output.contains("ABI 0"), output);

    final String sizes =
        "int64_t waste_other(int32_t *s, int64_t n) { if (s && n > 0) s[0] = 8; return 1; }";
    final String mixed = childWith(stub("sizes", "-Dwaste_abi_sizes=waste_other", sizes));
    assertTrue(mixed.contains("WasteNativeLoadException"), mixed);
    assertTrue(mixed.contains("differ in size"), mixed);

    final Path foreign = Files.createDirectory(folder.resolve("foreign"));
    final Path source = Files.writeString(folder.resolve("other.c"), "int x(void) { return 1; }\n");
    compile(foreign, source);
    assertTrue(childWith(foreign).contains("no libwaste_jni"));
  }

  private static String childWith(Path library) {
    return Command.child(library, "version").succeed();
  }

  /** A libwaste_jni in which one function of the engine is another one. */
  private Path stub(String name, String define, String code) throws IOException {
    final Path source = folder.resolve(name + ".c");
    Files.writeString(source, "#include <stdint.h>\n" + code + "\n");
    final String jni = System.getProperty("waste.test.jdk") + "/include";
    final Path made = Files.createDirectory(folder.resolve(name));
    compile(
        made, source, Rig.ROOT.resolve("bindings/java/native/waste_wrap.c").toString(), define,
        "-I" + Rig.ROOT.resolve("capi/include"), "-I" + jni, "-I" + jni + "/linux",
        "-L" + Rig.NATIVE, "-Wl,-rpath," + Rig.NATIVE, "-lwaste");
    return made;
  }

  private static void compile(Path made, Path source, String... more) {
    Command.of("cc")
        .with("-shared", "-fPIC", "-fno-strict-aliasing", source.toString())
        .with("-o", made.resolve("libwaste_jni.so").toString())
        .with(more)
        .succeed();
  }

  @Test
  void row16_native_library_missing() {
    final String nowhere = folder.resolve("nowhere").toString();
    final String named = Command.child(Path.of(nowhere), "version").succeed();
    assertTrue(named.contains("WasteNativeLoadException"), named);
    assertTrue(named.contains("-Dwaste.library.path=" + nowhere), named);

    final Command child =
        Command.java().with("-Djava.library.path=" + nowhere, "-cp")
            .with(System.getProperty("waste.test.classes"), Child.class.getName(), "version");
    final String output = child.succeed();
    assertEquals(1, output.split("WasteNativeLoadException", -1).length - 1, output);
    assertTrue(output.contains("System.loadLibrary(\"waste_jni\") in " + nowhere), output);
    assertTrue(output.contains("META-INF/native/linux-x64/libwaste_jni.so"), output);
    assertTrue(output.contains("-Dwaste.library.path"), output);
  }
}
