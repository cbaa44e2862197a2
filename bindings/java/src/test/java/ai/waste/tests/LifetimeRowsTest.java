// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows about ownership: any order of closing, the collector, threads, and
// memory that comes back.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.waste.ChatSession;
import ai.waste.GenerationOptions;
import ai.waste.Job;
import ai.waste.ModelOptions;
import ai.waste.Session;
import ai.waste.TokenStream;
import ai.waste.WasteModel;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class LifetimeRowsTest {
  private static final int ROUNDS = 200;
  private static final long RSS_BOUND = 32L << 20;
  private static final String MODE = System.getProperty("waste.test.mode");
  // AddressSanitizer keeps what was freed for a while.
  private static final long STRESS_BOUND = (MODE.equals("asan") ? 64L : 12L) << 20;
  private static final int[][] ORDERS =
      {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

  @TempDir Path folder;

  @Test
  void row11_close_in_any_order_in_any_state() throws Exception {
    for (int[] order : ORDERS) {
      for (int pieces = 0; pieces < 3; pieces++) {
        for (boolean cancel : new boolean[] {false, true}) {
          final WasteModel model = Rig.endless(folder);
          final ChatSession chat = model.newChat();
          final TokenStream stream = chat.stream("x");
          for (int i = 0; i < pieces; i++) assertEquals("ha", stream.iterator().next().text());
          if (cancel) stream.cancel();
          final AutoCloseable[] objects = {model, chat, stream};
          for (int i : order) objects[i].close();
          for (AutoCloseable object : objects) object.close();
          assertEquals("ha".repeat(pieces), stream.completion().text());
        }
      }
    }
    Rig.mini().close(); // opened and closed without a session
  }

  @Test
  void row11_collector_frees_what_nobody_closed() throws IOException {
    final ModelOptions options = ModelOptions.builder().contextTokens(512).build();
    try (WasteModel model = WasteModel.open(Rig.MINI, options)) {
      final long before = model.stats().memoryBytes();
      for (int i = 0; i < 20; i++) forget(model);
      assertTrue(model.stats().memoryBytes() > before);
      Rig.await(
          "the collector",
          () -> {
            System.gc();
            return model.stats().memoryBytes() <= before;
          });
    }
    for (int i = 0; i < 20; i++) Rig.mini().newChat().stream("x").iterator().next();
    System.gc();
  }

  private static void forget(WasteModel model) {
    final ChatSession chat = model.newChat();
    assertTrue(chat.stream("x").iterator().next().text().length() > 0);
    model.newSession().eval(new int[] {1, 2, 3});
  }

  @Test
  void row11_collection_during_calls_is_no_close() throws Exception {
    final ExecutorService pool = Executors.newSingleThreadExecutor();
    try (WasteModel model = Rig.mini()) {
      final Future<?> answers =
          pool.submit(
              () -> {
                for (int i = 0; i < 30; i++)
                  assertEquals(Rig.ROME, model.newChat().ask(Rig.ITALY).text());
              });
      while (!answers.isDone()) System.gc();
      answers.get();
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void row17_two_models_four_sessions_four_threads() throws Exception {
    final ExecutorService pool = Executors.newFixedThreadPool(4);
    try (WasteModel one = Rig.mini();
        WasteModel two = Rig.mini()) {
      final List<Future<?>> running = new ArrayList<>();
      for (WasteModel model : new WasteModel[] {one, two, one, two}) {
        running.add(
            pool.submit(
                () -> {
                  try (ChatSession chat = model.newChat()) {
                    assertEquals(Rig.ROME, chat.ask(Rig.ITALY).text());
                    assertEquals(
                        "The capital of Japan is Tokyo.",
                        chat.ask("What is the capital of Japan?").text());
                  }
                }));
      }
      for (Future<?> session : running) session.get();
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void use_after_close_is_an_illegal_state() throws IOException {
    final WasteModel model = Rig.mini();
    final Session session = model.newSession();
    final ChatSession chat = model.newChat();
    final Job<Void> job = WasteModel.verify(Rig.MINI);
    job.close();
    job.close();
    assertClosed(job::progress, job::await, job::nextLogLine);
    session.close();
    session.close();
    assertClosed(
        session::reset, session::tokens, session::stats, session::fork, () -> session.rewind(0),
        () -> session.eval(new int[] {1}), () -> session.ask("x"), () -> session.stream("x"),
        () -> session.save(folder.resolve("x")), () -> session.load(folder.resolve("x")));
    session.cancel();
    model.close();
    model.close();
    assertClosed(
        model::newChat, model::newSession, model::stats, model::nextLogLine, chat::tokens,
        () -> model.tokenizer().encode("x"), () -> model.tokenizer().decode(1));
    assertEquals(2048, model.info().vocabularySize());
  }

  private static void assertClosed(Executable... calls) {
    for (Executable call : calls) {
      final String message = assertThrows(IllegalStateException.class, call).getMessage();
      assertTrue(message.endsWith(" is closed"), message);
    }
  }

  @Test
  void open_and_close_200_times_in_bounded_memory() {
    long settled = 0;
    for (int i = 0; i < ROUNDS; i++) {
      try (WasteModel model = Rig.mini();
          ChatSession chat = model.newChat()) {
        if (i % 2 == 0) assertEquals(2, chat.ask("x", Rig.tokens(2)).tokens().length);
      }
      if (i == ROUNDS / 4) settled = Rig.rssBytes();
    }
    final long growth = Rig.rssBytes() - settled;
    assertTrue(growth < RSS_BOUND, "grown by " + growth + " bytes");
  }

  @Test
  @Tag("stress")
  void short_generations_leave_memory_flat() {
    final int count = MODE.equals("stress") ? 10_000 : 500;
    final GenerationOptions two = Rig.tokens(2);
    final long started = System.nanoTime();
    long settled = 0;
    try (WasteModel model = Rig.mini();
        Session session = model.newSession()) {
      for (int i = 0; i < count; i++) {
        assertEquals(2, session.ask("The", two).tokens().length);
        session.reset();
        if (i == count / 5) settled = Rig.rssBytes();
      }
    }
    final long end = Rig.rssBytes();
    System.out.printf(
        "stress: %s: %d generations in %.1f s, RSS %.1f MiB after a fifth, %.1f MiB at the end%n",
        Rig.RUNTIME, count, (System.nanoTime() - started) / 1e9, settled / 1048576.0,
        end / 1048576.0);
    assertTrue(end - settled < STRESS_BOUND, "grown by " + (end - settled) + " bytes");
  }
}
