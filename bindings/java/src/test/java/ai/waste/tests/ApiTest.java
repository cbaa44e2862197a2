// SPDX-License-Identifier: Apache-2.0
//
// What the conformance suite and the matrix do not touch: plans, infos, counters, raw sessions,
// forks, jobs, asynchronous answers, builders.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.waste.ChatSession;
import ai.waste.Completion;
import ai.waste.ConvertOptions;
import ai.waste.DataSize;
import ai.waste.Generation;
import ai.waste.GenerationCancelledException;
import ai.waste.GenerationOptions;
import ai.waste.Job;
import ai.waste.MemoryPlan;
import ai.waste.ModelInfo;
import ai.waste.ModelOptions;
import ai.waste.OperationCancelledException;
import ai.waste.Piece;
import ai.waste.Progress;
import ai.waste.Role;
import ai.waste.Session;
import ai.waste.SessionBusyException;
import ai.waste.SessionOptions;
import ai.waste.Stats;
import ai.waste.Status;
import ai.waste.StreamHandler;
import ai.waste.SynthesisOptions;
import ai.waste.TokenStream;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ApiTest {
  @TempDir Path folder;

  /** Hears an answer and writes down what it heard. */
  private static final class Recorder implements StreamHandler {
    private final List<String> heard = new ArrayList<>();

    @Override
    public void onPiece(Piece piece) {
      heard.add(piece.text());
    }

    @Override
    public void onComplete(Completion completion) {
      heard.add("complete " + completion.text());
    }

    @Override
    public void onError(WasteException error) {
      heard.add("error " + error.status());
    }
  }

  @Test
  void plan_and_info() {
    final ModelOptions small = ModelOptions.builder().contextTokens(256).threads(1).build();
    final long budget = WasteModel.plan(Rig.MINI, small).floorBytes() + DataSize.mib(1).toBytes();
    final ModelOptions options =
        small.toBuilder().ramBudget(budget).io(ModelOptions.Io.BUFFERED).verify(true)
            .lookahead(false).arithmetic(ModelOptions.Arithmetic.EXACT)
            .instructionSet(ModelOptions.InstructionSet.SCALAR).readLanes(3).build();
    final MemoryPlan plan = WasteModel.plan(Rig.MINI, options);
    assertTrue(plan.fits());
    assertEquals(budget, plan.budgetBytes());
    assertEquals(
        plan.floorBytes(),
        plan.trunkBytes() + plan.stateBytes() + plan.scratchBytes() + plan.stagingBytes());
    assertTrue(plan.budgetBytes() >= plan.floorBytes() + plan.cacheBytes()); // longer prefill
    assertTrue(plan.recommendedBytes() > plan.floorBytes() && plan.usableBytes() > 0);
    final List<Progress> progress = new ArrayList<>();
    try (WasteModel model = WasteModel.open(Rig.MINI, options, progress::add)) {
      final ModelInfo info = model.info();
      assertEquals("kimi-k3", info.name());
      assertEquals(2048, info.vocabularySize());
      assertEquals(8, info.layerCount());
      assertEquals(192, info.hiddenSize());
      assertEquals(32, info.expertCount());
      assertEquals(4, info.expertsPerToken());
      assertEquals(256, info.contextTokens());
      assertEquals(16384, info.expertBytes());
      assertTrue(info.containerBytes() > 6_000_000 && info.cacheSlots() > 0);
      assertEquals(plan.budgetBytes(), info.budgetBytes());
      assertEquals(1, info.threads());
      assertEquals(ModelOptions.InstructionSet.SCALAR, info.instructionSet());
      assertEquals(false, info.directIo());
      assertEquals(3, info.readLanes());
      assertTrue(info.canThink() && info.hasChat());
      assertTrue(info.tokenTrunkBytes() > 0 && info.tokenTrunkBytes() <= plan.trunkBytes());
      assertTrue(info.tokenFlops() > info.tokenTrunkBytes(), "a weight has at most 8 bits here");
      assertEquals("<|end_of_msg|>", model.tokenizer().decode(info.endToken()));
      assertNull(model.nextLogLine());
    }
    final Progress last = progress.get(progress.size() - 1);
    assertTrue(last.finished() && last.fraction() == 1, last.toString());
  }

  @Test
  void counters_of_model_session_and_answer() {
    try (WasteModel model = Rig.mini();
        ChatSession chat = model.newChat()) {
      final Completion answer = chat.ask(Rig.ITALY);
      assertEquals(answer.tokens().length, answer.usage().generatedTokens());
      assertTrue(answer.usage().promptTokens() > 0);
      assertTrue(answer.timings().prefill().toNanos() > 0);
      assertTrue(answer.timings().decode().toNanos() > 0 && answer.timings().tokensPerSecond() > 0);
      final Stats session = chat.stats();
      assertEquals(chat.position(), session.position());
      assertEquals(512, session.contextTokens());
      assertEquals(answer.usage().generatedTokens(), session.generatedTokens());
      final Stats all = model.stats();
      assertTrue(all.expertsHit() + all.expertsMissed() > 0);
      assertTrue(all.memoryBytes() > 0 && all.peakRssBytes() > 0);
      try (TokenStream stream = chat.stream("x")) {
        stream.iterator().next();
        assertTrue(stream.stats().generatedTokens() > 0);
        assertThrows(IllegalStateException.class, stream::completion);
      }
    }
  }

  @Test
  void every_use_of_an_expert_is_counted_once() {
    for (boolean lookahead : new boolean[] {true, false}) {
      final ModelOptions small =
          ModelOptions.builder().contextTokens(256).lookahead(lookahead).build();
      final long floor = WasteModel.plan(Rig.MINI, small).floorBytes(); // nothing fills the cache
      try (WasteModel model =
              WasteModel.open(Rig.MINI, small.toBuilder().ramBudget(floor).build());
          Session session = model.newSession()) {
        for (int i = 0; i < 3; ++i) session.eval(new int[] {65});
        final Stats stats = model.stats();
        final long expertBytes = model.info().expertBytes();
        final long missed = stats.expertsMissed();
        final long unforeseen = missed - stats.expertsForeseen();
        assertEquals(3 * 7 * 4, stats.expertsHit() + missed, "3 tokens, 7 layers with experts");
        assertTrue(stats.expertsForeseen() >= 0 && unforeseen > 0, "the first reads are not");
        assertEquals(stats.speculativeReads() * expertBytes, stats.speculativeBytes());
        assertTrue(stats.bytesRead() >= unforeseen * expertBytes + stats.speculativeBytes());
        assertTrue(stats.readStalls() > 0 || stats.readTime().isZero());
        assertTrue(stats.readStalls() <= missed + stats.speculativeReads());
        if (!lookahead) assertEquals(0, stats.expertsForeseen() + stats.speculativeReads());
      }
    }
  }

  @Test
  void raw_session_eval_rewind_fork() {
    try (WasteModel model = Rig.mini();
        Session session = model.newSession()) {
      final int width = model.info().vocabularySize();
      final int[] tokens = model.tokenizer().encode("The capital of Italy is");
      assertThrows(IllegalStateException.class, session::logits);
      session.eval(tokens);
      final float[] last = session.logits();
      assertEquals(width, last.length);
      assertArrayEquals(tokens, session.tokens());
      session.rewind(1);
      assertEquals(1, session.position());
      final float[] rows = session.eval(Arrays.copyOfRange(tokens, 1, tokens.length), 2);
      assertEquals(2 * width, rows.length);
      assertArrayEquals(last, Arrays.copyOfRange(rows, width, 2 * width), 1e-3f);
      assertEquals(0, session.eval(new int[] {1}, 0).length);
      session.rewind(tokens.length);
      try (Session twin = session.fork()) {
        assertArrayEquals(session.tokens(), twin.tokens());
        assertArrayEquals(
            session.ask(null, Rig.tokens(3)).tokens(), twin.ask(null, Rig.tokens(3)).tokens());
      }
      session.reset();
      assertEquals(0, session.tokens().length);
      assertEquals(
          Status.ARGUMENT,
          assertThrows(WasteException.class, () -> session.eval(new int[] {width})).status());
    }
  }

  @Test
  void chats_are_put_together_from_messages_and_forked() {
    try (WasteModel model = Rig.mini();
        ChatSession chat = model.newChat(SessionOptions.builder().contextTokens(400).build())) {
      chat.addMessage(Role.USER, Rig.ITALY);
      chat.addMessage(Role.ASSISTANT, Rig.ROME);
      chat.addMessage("What is the capital of Japan?");
      try (ChatSession twin = chat.fork()) {
        assertEquals("The capital of Japan is Tokyo.", twin.ask(null).text());
      }
      assertEquals(400, chat.stats().contextTokens());
      assertEquals("The capital of Japan is Tokyo.", chat.ask(null).text());
    }
  }

  @Test
  void tokenizer_bytes() {
    try (WasteModel model = Rig.mini()) {
      assertArrayEquals(new byte[] {(byte) 0xF0}, model.tokenizer().decodeBytes(0xF0));
      assertEquals("\uFFFD", model.tokenizer().decode(0xF0));
      assertEquals(0, model.tokenizer().encode("").length);
      assertEquals(1, model.tokenizer().encodeMarkup("<|open|>").length);
      assertTrue(model.tokenizer().encode("<|open|>").length > 1);
    }
  }

  @Test
  void verify_and_convert_are_jobs() throws IOException {
    final List<Progress> progress = new ArrayList<>();
    try (Job<Void> job = WasteModel.verify(Rig.MINI)) {
      assertNull(job.await(progress::add));
      assertNull(job.await());
      assertTrue(job.progress().done() > 6_000_000);
      assertEquals(1, progress.get(progress.size() - 1).fraction());
    }
    final Path damaged = Rig.copyOfMini(folder.resolve("damaged.waste"));
    try (java.io.RandomAccessFile bank =
        new java.io.RandomAccessFile(damaged.resolve("experts-L1.bin").toFile(), "rw")) {
      bank.seek(100);
      bank.write(bank.read() ^ 1);
    }
    try (Job<Void> job = WasteModel.verify(damaged)) {
      final WasteException failure = assertThrows(WasteException.class, job::await);
      assertEquals(Status.CORRUPT, failure.status());
    }
    final ConvertOptions options =
        ConvertOptions.builder().threads(1).stages(3).indexBits(8).trunkBits(4).expertBeam(1)
            .quantiseFrom(1).build();
    final Path source = folder.resolve("no checkpoint");
    try (Job<Void> job = WasteModel.convert(source, folder.resolve("made.waste"), options)) {
      final WasteException failure = assertThrows(WasteException.class, job::await);
      assertTrue(failure.getMessage().contains("no checkpoint"), failure.getMessage());
      assertNull(job.nextLogLine());
    }
  }

  @Test
  void synthesize_writes_a_model_that_opens() {
    final SynthesisOptions options =
        SynthesisOptions.builder().layers(3).experts(8).seed(7).build();
    final Path made = folder.resolve("made.waste");
    final List<Progress> progress = new ArrayList<>();
    try (Job<Void> job = WasteModel.synthesize("mini", made, options)) {
      assertNull(job.await(progress::add));
      assertTrue(progress.get(progress.size() - 1).finished());
    }
    try (WasteModel model = WasteModel.open(made, ModelOptions.builder().contextTokens(64).build());
        Session session = model.newSession()) {
      assertEquals(3, model.info().layerCount());
      assertEquals(8, model.info().expertCount());
      final int[] tokens = session.ask("The", Rig.tokens(4)).tokens();
      session.reset();
      assertArrayEquals(tokens, session.ask("The", Rig.tokens(4)).tokens());
    }
    final Path other = folder.resolve("other.waste");
    assertEquals(Status.ARGUMENT, synthesisFailure("nothing", other, options));
    assertEquals(Status.ARGUMENT, synthesisFailure("mini", made, options));
    final SynthesisOptions many = options.toBuilder().layers(1_000_000).build();
    assertEquals(Status.ARGUMENT, synthesisFailure("mini", other, many));
    assertTrue(Files.notExists(other));
  }

  private static Status synthesisFailure(String shape, Path target, SynthesisOptions options) {
    return assertThrows(
            WasteException.class,
            () -> {
              try (Job<Void> job = WasteModel.synthesize(shape, target, options)) {
                job.await();
              }
            })
        .status();
  }

  @Test
  void a_cancelled_synthesis_leaves_nothing() throws IOException {
    final Path target = folder.resolve("large.waste");
    try (Job<Void> job =
        WasteModel.synthesize("k3", target, SynthesisOptions.builder().layers(2).build())) {
      Rig.await("the first bytes", () -> job.progress().total() > 0);
      job.cancel();
      assertThrows(OperationCancelledException.class, job::await);
    }
    try (java.util.stream.Stream<Path> left = Files.list(folder)) {
      assertEquals(0, left.count());
    }
  }

  @Test
  void asynchronous_answers() throws Exception {
    final ExecutorService pool = Executors.newSingleThreadExecutor();
    try (WasteModel model = Rig.scripted(folder, "{\"answers\": [[\"one \", \"two\"]]}");
        ChatSession chat = model.newChat()) {
      for (ExecutorService executor : new ExecutorService[] {null, pool}) {
        final Recorder recorder = new Recorder();
        final Generation generation =
            chat.generateAsync("x", GenerationOptions.defaults(), executor, recorder);
        assertEquals("one two", generation.completion().get().text());
        assertEquals(List.of("one ", "two", "complete one two"), recorder.heard);
      }
      pool.shutdown();
      assertThrows(
          java.util.concurrent.RejectedExecutionException.class,
          () -> chat.generateAsync("x", GenerationOptions.defaults(), pool, new Recorder()));
      Rig.assertAnswers(chat);
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void asynchronous_answers_are_cancelled() throws Exception {
    try (WasteModel model = Rig.endless(folder);
        ChatSession chat = model.newChat()) {
      final Recorder recorder = new Recorder();
      final Generation generation =
          chat.generateAsync("x", GenerationOptions.defaults(), null, recorder);
      assertThrows(
          SessionBusyException.class,
          () -> chat.generateAsync("y", GenerationOptions.defaults(), null, recorder));
      generation.cancel();
      assertSame(GenerationCancelledException.class, causeOf(generation.completion()).getClass());
      assertEquals("error CANCELLED", recorder.heard.get(recorder.heard.size() - 1));

      final Generation byFuture =
          chat.generateAsync("x", GenerationOptions.defaults(), null, new Recorder());
      byFuture.completion().cancel(true);
      Rig.await("the session", () -> answers(chat));

      final IllegalStateException mine = new IllegalStateException("enough");
      final StreamHandler thrower =
          new StreamHandler() {
            @Override
            public void onPiece(Piece piece) {
              throw mine;
            }
          };
      final Generation thrown =
          chat.generateAsync("x", GenerationOptions.defaults(), null, thrower);
      assertSame(mine, causeOf(thrown.completion()));
      Rig.assertAnswers(chat);
    }
  }

  private static Throwable causeOf(CompletableFuture<?> future) {
    return assertThrows(ExecutionException.class, future::get).getCause();
  }

  private static boolean answers(ChatSession chat) {
    try {
      Rig.assertAnswers(chat);
      return true;
    } catch (SessionBusyException e) {
      return false;
    }
  }

  @Test
  void cpu_lists_reach_the_library() throws Exception {
    final String name = "Cpus_allowed_list:\t";
    final String granted =
        Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(line -> line.startsWith(name)).findFirst().orElseThrow();
    final String first = granted.substring(name.length()).split("[-,]")[0];
    final ModelOptions one = ModelOptions.builder().cpuList(first).build();
    try (WasteModel model = WasteModel.open(Rig.MINI, one);
        ChatSession chat = model.newChat()) {
      assertEquals(1, model.info().threads());
      assertEquals(
          "The capital of Italy is Rome.", chat.ask("What is the capital of Italy?").text());
    }
    for (String list : List.of("x", first + ",", "8191", first + "\0")) {
      final ModelOptions bad = one.toBuilder().cpuList(list).build();
      final WasteException refused =
          assertThrows(WasteException.class, () -> WasteModel.open(Rig.MINI, bad));
      assertEquals(Status.ARGUMENT, refused.status());
      assertTrue(refused.getMessage().contains("cpu_list"), refused.getMessage());
    }
  }

  @Test
  void builders_refuse_what_cannot_be() {
    final GenerationOptions.Builder generation = GenerationOptions.builder();
    final List<Executable> refused =
        List.of(
            () -> generation.maxTokens(-1), () -> generation.temperature(Double.NaN),
            () -> generation.topK(-1), () -> generation.topP(0), () -> generation.topP(1.5),
            () -> generation.minP(-0.1), () -> generation.repeatPenalty(0),
            () -> generation.penaltyWindow(-1), () -> generation.stop(""),
            () -> generation.bias(1, Double.NaN), () -> generation.presencePenalty(Double.NaN),
            () -> ModelOptions.builder().threads(-1), () -> ModelOptions.builder().ramBudget(-1),
            () -> ModelOptions.builder().contextTokens(-1),
            () -> ModelOptions.builder().readLanes(-1), () -> DataSize.ofBytes(-1),
            () -> SessionOptions.builder().contextTokens(-1),
            () -> ConvertOptions.builder().stages(-1),
            () -> SynthesisOptions.builder().layers(-1),
            () -> SynthesisOptions.builder().experts(-1));
    for (Executable call : refused) assertThrows(IllegalArgumentException.class, call);
    final ModelOptions lanes = ModelOptions.builder().readLanes(33).build();
    assertEquals(
        Status.ARGUMENT,
        assertThrows(WasteException.class, () -> WasteModel.open(Rig.MINI, lanes)).status());
    final GenerationOptions.Builder builder = GenerationOptions.builder().maxTokens(2);
    final GenerationOptions built = builder.build();
    builder.maxTokens(5).stop("x");
    try (WasteModel model = Rig.mini();
        ChatSession chat = model.newChat()) {
      assertEquals(2, chat.ask("x", built).tokens().length, "what was built does not change");
      assertEquals(
          Status.ARGUMENT,
          assertThrows(
                  WasteException.class,
                  () -> chat.ask("x", GenerationOptions.builder().stopToken(-5).build()))
              .status());
      Rig.assertAnswers(chat);
    }
  }
}
