// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows about stopping: every moment a cancel can come at, who gets what, and
// a process that ends meanwhile.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.waste.ChatSession;
import ai.waste.FinishReason;
import ai.waste.GenerationCancelledException;
import ai.waste.OperationCancelledException;
import ai.waste.Piece;
import ai.waste.Session;
import ai.waste.SessionBusyException;
import ai.waste.TokenStream;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class CancelRowsTest {
  private static final long PROMPTLY = TimeUnit.SECONDS.toNanos(1);
  private static final String STALLED =
      "{\"answers\": [[\"first\", {\"stall_ms\": 60000}, \"never\"], [\"fine\"]],"
          + " \"context\": 10000000}";
  private static final String SLOW_PREFILL =
      "{\"answers\": [[\"never\"], [\"fine\"]], \"prefill_stall_ms\": 60000}";

  private static final String SLOW_EVAL = "{\"answers\": [[\"x\"]], \"prefill_stall_ms\": 20000}";
  private static final String SHORT_EVAL = "{\"answers\": [[\"x\"]], \"prefill_stall_ms\": 300}";

  @TempDir Path folder;

  /** A thread that reads a stream to its end, and what it got. */
  private static final class Reader extends Thread {
    private final TokenStream stream;
    private final StringBuffer text = new StringBuffer();
    private volatile Throwable failure;
    private volatile boolean interruptFlag;
    private volatile long ended;

    private Reader(TokenStream stream) {
      this.stream = stream;
      start();
    }

    @Override
    public void run() {
      try {
        for (Piece piece : stream) text.append(piece.text());
      } catch (Throwable e) {
        failure = e;
      }
      interruptFlag = isInterrupted();
      ended = System.nanoTime();
    }

    /** It is told to stop by {@code stop} while it is inside waste_next, and obeys at once. */
    private GenerationCancelledException stopped(Runnable stop) throws InterruptedException {
      Rig.awaitInside(this, "waste_next");
      final long told = System.nanoTime();
      stop.run();
      join();
      assertTrue(ended - told < PROMPTLY, "it took " + (ended - told) / 1_000_000 + " ms");
      assertNotNull(failure);
      assertEquals(GenerationCancelledException.class, failure.getClass(), failure::toString);
      return (GenerationCancelledException) failure;
    }
  }

  /** A thread that is inside eval, and how that ended. */
  private static final class Evaluator extends Thread {
    private final Session session;
    private volatile Throwable failure;
    private volatile boolean interruptFlag;
    private volatile long ended;

    private Evaluator(Session session) {
      this.session = session;
      start();
    }

    @Override
    public void run() {
      try {
        session.eval(new int[] {1, 2, 3});
      } catch (Throwable e) {
        failure = e;
      }
      interruptFlag = isInterrupted();
      ended = System.nanoTime();
    }

    /** It is told to stop, and obeys at once; a stop that waits for it is as prompt. */
    private void stopped(Runnable stop) throws InterruptedException {
      final long told = System.nanoTime();
      stop.run();
      final long returned = System.nanoTime();
      join();
      assertTrue(ended - told < PROMPTLY, "it took " + (ended - told) / 1_000_000 + " ms");
      assertTrue(returned - told < PROMPTLY, "waited " + (returned - told) / 1_000_000 + " ms");
      assertNotNull(failure);
      assertEquals(OperationCancelledException.class, failure.getClass(), failure::toString);
    }
  }

  @Test
  void row07_eval_is_cancelled_and_the_session_holds_what_it_held() throws Exception {
    try (WasteModel model = Rig.scripted(folder, SLOW_EVAL);
        Session session = model.newSession()) {
      final Evaluator cancelled = new Evaluator(session);
      Rig.awaitInside(cancelled, "waste_eval");
      assertThrows(SessionBusyException.class, () -> session.eval(new int[] {1}));
      cancelled.stopped(session::cancel);
      assertFalse(cancelled.interruptFlag);
      assertEquals(0, session.position());

      final Evaluator interrupted = new Evaluator(session);
      Rig.awaitInside(interrupted, "waste_eval");
      interrupted.stopped(interrupted::interrupt);
      assertTrue(interrupted.interruptFlag);
      assertEquals(0, session.tokens().length);

      Thread.currentThread().interrupt();
      assertThrows(OperationCancelledException.class, () -> session.eval(new int[] {1}));
      assertTrue(Thread.interrupted(), "the flag is still set");
    }
    try (WasteModel model = Rig.scripted(folder, SHORT_EVAL);
        Session session = model.newSession()) {
      session.cancel();
      session.eval(new int[] {1}); // a cancel when nothing ran is none
      final Evaluator cancelled = new Evaluator(session);
      Rig.awaitInside(cancelled, "waste_eval");
      cancelled.stopped(session::cancel);
      assertEquals(1, session.position());
      session.eval(new int[] {2, 3});
      assertEquals(3, session.position());
    }
  }

  @Test
  void row07_an_interrupt_that_comes_at_any_moment_of_an_eval_stops_it() throws Exception {
    try (WasteModel model = Rig.scripted(folder, SLOW_EVAL);
        Session session = model.newSession()) {
      for (int i = 0; i < 50; i++) {
        final Evaluator evaluator = new Evaluator(session);
        final long until = System.nanoTime() + i * 10_000L; // before, at and behind the entry to C
        while (System.nanoTime() < until) Thread.onSpinWait();
        evaluator.stopped(evaluator::interrupt);
      }
      assertEquals(0, session.position());
    }
  }

  @Test
  void row10_close_during_eval() throws Exception {
    final List<Consumer<Session>> closes =
        List.of(Session::close, session -> session.model().close());
    for (Consumer<Session> close : closes) {
      for (int i = 0; i < 20; i++) {
        try (WasteModel model = Rig.scripted(folder, SLOW_EVAL);
            Session session = model.newSession()) {
          final Evaluator evaluator = new Evaluator(session);
          Rig.awaitOnStack(evaluator, "evalNative"); // the close may come before C has begun
          evaluator.stopped(() -> close.accept(session));
          assertThrows(IllegalStateException.class, session::position);
        }
      }
    }
  }

  @Test
  void row07_cancel_before_the_first_piece() throws IOException {
    try (WasteModel model = Rig.endless(folder);
        ChatSession chat = model.newChat()) {
      final TokenStream stream = chat.stream("x");
      stream.cancel();
      stream.cancel();
      final Iterator<Piece> pieces = stream.iterator();
      assertThrows(GenerationCancelledException.class, pieces::hasNext);
      assertThrows(GenerationCancelledException.class, pieces::next);
      assertEquals("", stream.completion().text());
      assertEquals(FinishReason.CANCELLED, stream.completion().finishReason());
      Rig.assertAnswers(chat);
    }
  }

  @Test
  void row07_cancel_in_prefill() throws Exception {
    try (WasteModel model = Rig.scripted(folder, SLOW_PREFILL);
        ChatSession chat = model.newChat();
        TokenStream stream = chat.stream("x")) {
      final Reader reader = new Reader(stream);
      assertEquals("", reader.stopped(stream::cancel).partial().text());
      assertEquals("", reader.text.toString());
    }
  }

  @Test
  void row07_cancel_in_a_token_from_another_thread() throws Exception {
    try (WasteModel model = Rig.scripted(folder, STALLED);
        ChatSession chat = model.newChat();
        TokenStream stream = chat.stream("x")) {
      final Reader reader = new Reader(stream);
      Rig.await("the first piece", () -> reader.text.length() > 0);
      assertEquals("first", reader.stopped(stream::cancel).partial().text());
      assertEquals("first", reader.text.toString());
      assertEquals("fine", chat.ask("y").text());
    }
  }

  @Test
  void row07_cancel_of_an_endless_answer_by_the_session() throws Exception {
    try (WasteModel model = Rig.endless(folder);
        ChatSession chat = model.newChat();
        TokenStream stream = chat.stream("x")) {
      final Reader reader = new Reader(stream);
      final GenerationCancelledException end = reader.stopped(chat::cancel);
      assertEquals(reader.text.toString(), end.partial().text());
      assertEquals(chat.position(), chat.tokens().length);
      Rig.assertAnswers(chat);
    }
  }

  @Test
  void row07_interrupt_cancels_and_keeps_the_flag() throws Exception {
    try (WasteModel model = Rig.scripted(folder, STALLED);
        ChatSession chat = model.newChat();
        TokenStream stream = chat.stream("x")) {
      final Reader reader = new Reader(stream);
      Rig.await("the first piece", () -> reader.text.length() > 0);
      reader.stopped(reader::interrupt);
      assertTrue(reader.interruptFlag);
      assertEquals("first", reader.text.toString());

      Thread.currentThread().interrupt();
      assertThrows(GenerationCancelledException.class, () -> chat.ask("y"));
      assertTrue(Thread.interrupted(), "the flag is still set");
      Rig.assertAnswers(chat);
    }
  }

  @Test
  void row07_cancel_behind_the_end_and_twice() throws IOException {
    try (WasteModel model = Rig.scripted(folder, "{\"answers\": [[\"done\"]]}");
        ChatSession chat = model.newChat();
        TokenStream stream = chat.stream("x")) {
      assertEquals("done", Rig.text(stream));
      stream.cancel();
      stream.cancel();
      assertFalse(stream.iterator().hasNext());
      assertEquals(FinishReason.STOP, stream.completion().finishReason());
    }
  }

  @Test
  void row07_a_pulled_piece_comes_before_the_cancel() throws IOException {
    try (WasteModel model = Rig.endless(folder);
        ChatSession chat = model.newChat();
        TokenStream stream = chat.stream("x")) {
      final Iterator<Piece> pieces = stream.iterator();
      assertTrue(pieces.hasNext());
      stream.cancel();
      final Piece pulled = pieces.next();
      assertEquals("ha", pulled.text());
      assertThrows(GenerationCancelledException.class, pieces::hasNext);
      assertEquals(pulled.position(), chat.position());
    }
  }

  @Test
  void row08_break_out_of_the_loop() throws IOException {
    try (WasteModel model = Rig.endless(folder);
        ChatSession chat = model.newChat()) {
      long position = 0;
      final TokenStream stream = chat.stream("x");
      for (Piece piece : stream) {
        position = piece.position();
        break;
      }
      stream.close();
      assertFalse(stream.iterator().hasNext(), "a stream closed by its reader just ends");
      assertEquals("ha", stream.completion().text());
      assertEquals(FinishReason.CANCELLED, stream.completion().finishReason());
      assertEquals(position, chat.position());
      Rig.assertAnswers(chat);
    }
  }

  @Test
  void row08_a_dropped_stream_frees_its_session() throws IOException {
    try (WasteModel model = Rig.endless(folder);
        ChatSession chat = model.newChat()) {
      drop(chat);
      Rig.await(
          "the collector",
          () -> {
            System.gc();
            try {
              Rig.assertAnswers(chat);
              return true;
            } catch (SessionBusyException e) {
              return false;
            }
          });
    }
  }

  private static void drop(ChatSession chat) {
    assertTrue(chat.stream("x").iterator().next().text().length() > 0);
  }

  @Test
  void row09_second_generation_is_busy() throws IOException {
    final String script = "{\"answers\": [[\"one \", \"two\"], [\"three\"]]}";
    try (WasteModel model = Rig.scripted(folder, script);
        ChatSession chat = model.newChat();
        TokenStream first = chat.stream("x")) {
      final Iterator<Piece> pieces = first.iterator();
      assertEquals("one ", pieces.next().text());
      assertThrows(SessionBusyException.class, () -> chat.stream("y"));
      assertThrows(SessionBusyException.class, () -> chat.ask("y"));
      assertThrows(SessionBusyException.class, () -> chat.addMessage("y"));
      assertEquals("two", pieces.next().text());
      assertFalse(pieces.hasNext());
      assertEquals("three", chat.ask("y").text());
    }
  }

  @Test
  void row09_attempts_from_another_thread_do_not_disturb_the_first() throws Exception {
    try (WasteModel model = Rig.mini();
        ChatSession chat = model.newChat()) {
      final String alone = chat.ask("Tell me a story about a fox.").text();
      chat.reset();
      try (TokenStream stream = chat.stream("Tell me a story about a fox.")) {
        final Reader reader = new Reader(stream);
        int refused = 0;
        while (!reader.text.toString().equals(alone) && reader.failure == null)
          if (isRefused(chat)) refused++;
        reader.join();
        assertEquals(null, reader.failure);
        assertEquals(alone, reader.text.toString());
        assertTrue(refused > 0);
      }
    }
  }

  private static boolean isRefused(ChatSession chat) {
    try (TokenStream second = chat.stream("x")) {
      return second == null;
    } catch (SessionBusyException e) {
      return true;
    }
  }

  @Test
  void row10_close_session_during_generate() throws Exception {
    closeDuring(ChatSession::close);
  }

  @Test
  void row10_close_model_during_generate() throws Exception {
    closeDuring(chat -> chat.model().close());
  }

  private void closeDuring(Consumer<ChatSession> close) throws Exception {
    for (String script : new String[] {STALLED, Rig.ENDLESS, SLOW_PREFILL}) {
      final boolean endless = script.equals(Rig.ENDLESS);
      try (WasteModel model = endless ? Rig.endless(folder) : Rig.scripted(folder, script);
          ChatSession chat = model.newChat();
          TokenStream stream = chat.stream("x")) {
        final Reader reader = new Reader(stream);
        final GenerationCancelledException end = reader.stopped(() -> close.accept(chat));
        assertEquals(reader.text.toString(), end.partial().text());
        assertThrows(IllegalStateException.class, () -> chat.ask("y"));
        assertThrows(IllegalStateException.class, chat::position);
      }
    }
  }

  @Test
  void row10_a_stream_between_two_reads_ends_cancelled_when_its_model_closes() throws IOException {
    final WasteModel model = Rig.endless(folder);
    final Iterator<Piece> pieces = model.newChat().stream("x").iterator();
    assertEquals("ha", pieces.next().text());
    model.close();
    assertThrows(GenerationCancelledException.class, pieces::hasNext);
  }

  @Test
  void row14_process_exit_during_generate() throws IOException {
    final String stalled = Rig.script(folder, STALLED).toString();
    final String endless = Rig.script(folder, Rig.ENDLESS).toString();
    for (String path : new String[] {stalled, endless, Rig.MINI.toString()}) {
      for (boolean exit : new boolean[] {true, false}) {
        final Command child = Command.child(Rig.NATIVE, "exit", path, String.valueOf(exit)).run();
        assertEquals(exit ? Child.EXIT_CODE : 0, child.exitCode, child.output);
        assertEquals("reading", child.output.trim());
      }
    }
  }

  @Test
  void an_error_of_the_model_frees_the_session() throws IOException {
    final String script =
        "{\"answers\": [[\"be\", {\"error\": \"IO\", \"message\": \"bank 3\", \"times\": 1}]]}";
    try (WasteModel model = Rig.scripted(folder, script);
        ChatSession chat = model.newChat();
        TokenStream stream = chat.stream("x")) {
      final WasteException failure =
          assertThrows(WasteException.class, () -> stream.forEach(piece -> {}));
      assertTrue(failure.getMessage().contains("bank 3"), failure.getMessage());
      assertEquals(FinishReason.NONE, stream.completion().finishReason());
      Rig.assertAnswers(chat);
    }
  }
}
