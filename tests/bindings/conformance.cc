// SPDX-License-Identifier: Apache-2.0

#include "bindings/conformance.h"

#include <cmath>

namespace waste_test {
namespace {

constexpr const char* kFinish[] = {"none", "stop", "length", "cancelled"};
constexpr const char* kErrors[] = {
    "OK",        "IO",           "FORMAT", "CORRUPT",   "UNSUPPORTED", "ARGUMENT", "RAM_BUDGET",
    "NO_MEMORY", "CONTEXT_FULL", "BUSY",   "CANCELLED", "VERSION",     "INTERNAL"};

waste_generation_options Options(const Json& json) {
  waste_generation_options options = Sized<waste_generation_options>();
  for (const auto& [key, value] : json.items()) {
    if (key == "max_tokens")
      options.max_tokens = value;
    else if (key == "temperature")
      options.temperature = value;
    else if (key == "top_p")
      options.top_p = value;
    else if (key == "min_p")
      options.min_p = value;
    else if (key == "repeat_penalty")
      options.repeat_penalty = value;
    else if (key == "presence_penalty")
      options.presence_penalty = value;
    else if (key == "frequency_penalty")
      options.frequency_penalty = value;
    else if (key == "seed")
      options.seed = value;
    else if (key == "top_k")
      options.top_k = value;
    else if (key == "penalty_window")
      options.penalty_window = value;
    else if (key == "logprobs")
      options.logprobs = value.get<bool>() ? 1 : 0;
    else if (key == "raw")
      options.raw = value.get<bool>() ? 1 : 0;
    else if (key == "markup_out")
      options.markup_out = value.get<bool>() ? 1 : 0;
    else
      throw std::runtime_error("unknown option " + key);
  }
  return options;
}

void AddStops(const Json& turn, const Generation& generation) {
  for (const std::string text : turn.value("stop", Json::array()))
    Require(!waste_generation_add_stop(generation.get(), text.data(),
                                       static_cast<int64_t>(text.size()), nullptr),
            "stop");
  for (const int32_t token : turn.value("stop_tokens", Json::array()))
    Require(!waste_generation_add_stop_token(generation.get(), token, nullptr), "stop token");
  for (const Json& bias : turn.value("bias", Json::array()))
    Require(!waste_generation_add_bias(generation.get(), bias[0], bias[1], nullptr), "bias");
}

void AddTokens(const Generation& generation, bool logprobs, Json& expect) {
  const int64_t count = waste_generation_tokens(generation.get(), nullptr, 0, nullptr, 0, nullptr);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::vector<double> values(static_cast<size_t>(count));
  waste_generation_tokens(generation.get(), tokens.data(), count, values.data(), count, nullptr);
  expect["tokens"] = tokens;
  if (!logprobs) return;
  for (double& value : values) value = std::round(value * 1e6) / 1e6;
  expect["logprobs"] = values;
}

Json ExpectOfFailure(int64_t status) {
  return Json{
      {"tokens", Json::array()}, {"text", ""}, {"thinking", ""}, {"error", kErrors[-status]}};
}

Json RunTurn(const Json& turn, const Session& session) {
  const std::string prompt = turn.at("prompt");
  const waste_generation_options options = Options(turn.value("options", Json::object()));
  waste_generation* made = nullptr;
  const int64_t started = waste_generate(
      session.get(), prompt.data(), static_cast<int64_t>(prompt.size()), &options, &made, nullptr);
  Json expect;
  if (started != 0) {
    expect = ExpectOfFailure(started);
  } else {
    const Generation generation(made);
    AddStops(turn, generation);
    std::string text, thinking;
    int64_t size = 0, pieces = 0;
    char buffer[256];
    waste_token token = Sized<waste_token>();
    while ((size = waste_next(generation.get(), buffer, sizeof buffer, &token, nullptr)) > 0) {
      (token.channel == WASTE_CHANNEL_THINKING ? thinking : text)
          .append(buffer, static_cast<size_t>(size));
      if (++pieces == turn.value("cancel_after", int64_t{-1})) waste_cancel(generation.get());
    }
    AddTokens(generation, options.logprobs != 0, expect);
    expect["text"] = text;
    expect["thinking"] = thinking;
    if (size < 0 && size != WASTE_ERR_CANCELLED)
      expect["error"] = kErrors[-size];
    else
      expect["finish"] = kFinish[token.finish_reason];
  }
  expect["position"] = Tokens(session).size();
  return expect;
}

}  // namespace

std::string ConformanceFolder() { return WASTE_SOURCE_DIR "/bindings/conformance/"; }

Json ReadConformance(const std::string& file) {
  std::ifstream stream(ConformanceFolder() + file);
  return Json::parse(stream);
}

Model OpenSuite(const Json& suite, int32_t isa) {
  if (!suite.contains("model")) return nullptr;
  Require(suite["model"] == "mini", "a suite of another model");
  waste_open_options options = Sized<waste_open_options>();
  options.context = suite.at("context");
  options.isa = isa;
  return Open(MiniModel(), &options);
}

std::vector<Json> RunCase(const Json& suite, const Json& test_case, const Model& shared) {
  Model own;
  if (test_case.contains("script")) {
    waste_open_options options = Sized<waste_open_options>();
    options.context = suite.at("context");
    own = Open("test:" + ConformanceFolder() + "scripts/" + test_case["script"].get<std::string>() +
                   ".json",
               &options);
  }
  waste_session_options options = Sized<waste_session_options>();
  options.thinking = test_case.value("thinking", false) ? 1 : 0;
  const Session session = NewSession(own ? own : shared, &options);
  if (test_case.contains("system")) {
    const std::string text = test_case["system"];
    Require(!waste_session_add_message(session.get(), WASTE_ROLE_SYSTEM, text.data(),
                                       static_cast<int64_t>(text.size()), nullptr),
            "system");
  }
  std::vector<Json> results;
  for (const Json& turn : test_case.at("turns")) results.push_back(RunTurn(turn, session));
  return results;
}

std::vector<int32_t> RunTokenize(const Json& entry, const Model& model) {
  const std::string text = entry.at("text");
  const auto tokenize = entry.value("markup", false) ? waste_tokenize_markup : waste_tokenize;
  std::vector<int32_t> tokens(text.size() + 1);
  const int64_t count = tokenize(model.get(), text.data(), static_cast<int64_t>(text.size()),
                                 tokens.data(), static_cast<int64_t>(tokens.size()), nullptr);
  Require(count >= 0 && count <= static_cast<int64_t>(tokens.size()), "tokenize");
  tokens.resize(static_cast<size_t>(count));
  return tokens;
}

std::string Difference(const Json& expected, const Json& actual) {
  Json rest = actual, wanted = expected;
  const std::vector<double> have = rest.value("logprobs", std::vector<double>());
  const std::vector<double> want = wanted.value("logprobs", std::vector<double>());
  rest.erase("logprobs");
  wanted.erase("logprobs");
  // Compared as text, and so byte by byte.
  if (rest.dump() != wanted.dump())
    return "expected " + wanted.dump() + "\nbut it is " + rest.dump();
  if (have.size() != want.size()) return "another number of log-probabilities";
  for (size_t i = 0; i < have.size(); i++)
    if (std::abs(have[i] - want[i]) > 1e-3)
      return "log-probability " + std::to_string(i) + " is " + std::to_string(have[i]);
  return "";
}

}  // namespace waste_test
