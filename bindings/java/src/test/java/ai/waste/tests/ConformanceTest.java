// SPDX-License-Identifier: Apache-2.0
//
// The suite that all languages share (bindings/conformance), byte for byte: one test a case.

package ai.waste.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.waste.ChatSession;
import ai.waste.Completion;
import ai.waste.GenerationCancelledException;
import ai.waste.GenerationOptions;
import ai.waste.ModelOptions;
import ai.waste.SessionOptions;
import ai.waste.TokenStream;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

class ConformanceTest {
  private static final double LOGPROB_TOLERANCE = 1e-3;

  private static WasteModel mini;

  @AfterAll
  static void closeMini() {
    if (mini != null) mini.close();
  }

  @TestFactory
  Stream<DynamicTest> mini() throws IOException {
    final JsonObject suite = read("mini.json");
    mini = WasteModel.open(Rig.MINI, context(suite));
    return cases(suite)
        .map(c -> DynamicTest.dynamicTest("mini_" + name(c), () -> runCase(c, mini)));
  }

  @TestFactory
  Stream<DynamicTest> scripted() throws IOException {
    final JsonObject suite = read("scripted.json");
    return cases(suite)
        .map(c -> DynamicTest.dynamicTest("scripted_" + name(c), () -> runScripted(suite, c)));
  }

  @TestFactory
  Stream<DynamicTest> tokenize() throws IOException {
    final JsonArray entries = read("mini.json").getAsJsonArray("tokenize");
    assertTrue(entries.size() > 0);
    return IntStream.range(0, entries.size())
        .mapToObj(
            i ->
                DynamicTest.dynamicTest(
                    "tokenize_" + i, () -> runTokenize(entries.get(i).getAsJsonObject())));
  }

  private static JsonObject read(String file) throws IOException {
    final String text = Files.readString(Rig.CONFORMANCE.resolve(file));
    return JsonParser.parseString(text).getAsJsonObject();
  }

  private static ModelOptions context(JsonObject suite) {
    return ModelOptions.builder().contextTokens(suite.get("context").getAsLong()).build();
  }

  private static Stream<JsonObject> cases(JsonObject suite) {
    final JsonArray cases = suite.getAsJsonArray("cases");
    assertTrue(cases.size() > 0);
    return StreamSupport.stream(cases.spliterator(), false).map(JsonElement::getAsJsonObject);
  }

  private static String name(JsonObject testCase) {
    return testCase.get("name").getAsString();
  }

  private static void runTokenize(JsonObject entry) {
    final String text = entry.get("text").getAsString();
    final int[] tokens = ints(entry.getAsJsonArray("tokens"));
    try (WasteModel model = Rig.mini()) {
      final boolean markup = entry.has("markup") && entry.get("markup").getAsBoolean();
      assertArrayEquals(
          tokens, markup ? model.tokenizer().encodeMarkup(text) : model.tokenizer().encode(text));
      assertEquals(text, model.tokenizer().decode(tokens));
    }
  }

  private static void runScripted(JsonObject suite, JsonObject testCase) {
    final String file = "scripts/" + testCase.get("script").getAsString() + ".json";
    final Path path = Rig.test(Rig.CONFORMANCE.resolve(file));
    try (WasteModel model = WasteModel.open(path, context(suite))) {
      runCase(testCase, model);
    }
  }

  private static void runCase(JsonObject testCase, WasteModel model) {
    final SessionOptions.Builder options = SessionOptions.builder();
    if (testCase.has("system")) options.system(testCase.get("system").getAsString());
    if (testCase.has("thinking")) options.thinking(testCase.get("thinking").getAsBoolean());
    try (ChatSession chat = model.newChat(options.build())) {
      for (JsonElement turn : testCase.getAsJsonArray("turns"))
        runTurn(turn.getAsJsonObject(), chat);
    }
  }

  private static void runTurn(JsonObject turn, ChatSession chat) {
    final JsonObject expect = turn.getAsJsonObject("expect");
    final String prompt = turn.get("prompt").getAsString();
    final long cancelAfter = turn.has("cancel_after") ? turn.get("cancel_after").getAsLong() : -1;
    String error = null;
    Completion result = null;
    try (TokenStream stream = chat.stream(prompt, options(turn))) {
      try {
        long pieces = 0;
        for (Iterator<?> it = stream.iterator(); it.hasNext(); ) {
          it.next();
          if (++pieces == cancelAfter) stream.cancel();
        }
      } catch (GenerationCancelledException e) {
        assertTrue(cancelAfter > 0, "nobody has cancelled");
      } catch (WasteException e) {
        error = e.status().name();
      }
      result = stream.completion();
    } catch (WasteException e) {
      error = e.status().name();
    }
    assertEquals(expect.has("error") ? expect.get("error").getAsString() : null, error);
    assertEquals(expect.get("text").getAsString(), result == null ? "" : result.text());
    assertEquals(expect.get("thinking").getAsString(), result == null ? "" : result.thinking());
    assertArrayEquals(
        ints(expect.getAsJsonArray("tokens")), result == null ? new int[0] : result.tokens());
    if (expect.has("finish"))
      assertEquals(
          expect.get("finish").getAsString(),
          result.finishReason().name().toLowerCase(Locale.ROOT));
    if (expect.has("logprobs"))
      assertArrayEquals(
          doubles(expect.getAsJsonArray("logprobs")), result.logprobs(), LOGPROB_TOLERANCE);
    assertEquals(expect.get("position").getAsLong(), chat.position());
    assertEquals(expect.get("position").getAsLong(), chat.tokens().length);
  }

  private static GenerationOptions options(JsonObject turn) {
    final GenerationOptions.Builder options = GenerationOptions.builder();
    if (turn.has("options"))
      for (Map.Entry<String, JsonElement> option : turn.getAsJsonObject("options").entrySet())
        set(options, option.getKey(), option.getValue());
    if (turn.has("stop")) turn.getAsJsonArray("stop").forEach(s -> options.stop(s.getAsString()));
    if (turn.has("stop_tokens"))
      turn.getAsJsonArray("stop_tokens").forEach(t -> options.stopToken(t.getAsInt()));
    if (turn.has("bias"))
      for (JsonElement pair : turn.getAsJsonArray("bias"))
        options.bias(
            pair.getAsJsonArray().get(0).getAsInt(), pair.getAsJsonArray().get(1).getAsDouble());
    return options.build();
  }

  private static void set(GenerationOptions.Builder options, String key, JsonElement value) {
    switch (key) {
      case "max_tokens": options.maxTokens(value.getAsInt()); break;
      case "temperature": options.temperature(value.getAsDouble()); break;
      case "top_k": options.topK(value.getAsInt()); break;
      case "top_p": options.topP(value.getAsDouble()); break;
      case "min_p": options.minP(value.getAsDouble()); break;
      case "repeat_penalty": options.repeatPenalty(value.getAsDouble()); break;
      case "presence_penalty": options.presencePenalty(value.getAsDouble()); break;
      case "frequency_penalty": options.frequencyPenalty(value.getAsDouble()); break;
      case "penalty_window": options.penaltyWindow(value.getAsInt()); break;
      case "seed": options.seed(value.getAsLong()); break;
      case "logprobs": options.logprobs(value.getAsBoolean()); break;
      case "raw": options.raw(value.getAsBoolean()); break;
      case "markup_out": options.markupOut(value.getAsBoolean()); break;
      default: throw new AssertionError("an option that no builder has: " + key);
    }
  }

  private static int[] ints(JsonArray array) {
    return StreamSupport.stream(array.spliterator(), false)
        .mapToInt(JsonElement::getAsInt)
        .toArray();
  }

  private static double[] doubles(JsonArray array) {
    return StreamSupport.stream(array.spliterator(), false)
        .mapToDouble(JsonElement::getAsDouble)
        .toArray();
  }
}
