// SPDX-License-Identifier: Apache-2.0

#include "conversation.h"

#include "output.h"
#include "progress.h"

namespace waste_cli {

void AddConversationOptions(CLI::App& command, ConversationOptions& options) {
  AddModelOptions(command, options.model);
  AddSamplingOptions(command, options.sampling);
  AddText(command, "--system", options.system, "The system message of the conversation");
  AddFlag(command, "--think", options.think,
          "Let the model think before it answers; its thoughts go to stderr");
}

Conversation::Conversation(const ConversationOptions& options)
    : options_(options),
      sampling_(options.sampling),
      first_seed_(ChooseSeed(options.sampling)),
      model_(OpenModel(options.model)) {
  if (options.think && InfoOf(model_).thinking == 0)
    WriteNote("note: this model does not think; --think has no effect");
  auto session_options = Sized<waste_session_options>();
  session_options.thinking = options.think ? 1 : 0;
  session_ = Make<waste_session>([&](waste_session** out, waste_error* error) {
    return waste_session_create(model_.get(), &session_options, out, error);
  });
  AddSystemMessage();
}

Answer Conversation::Ask(const std::string& prompt, Show show) {
  // Another seed each turn: the same draws for every question would be no chance.
  sampling_.seed =
      static_cast<int64_t>(static_cast<uint64_t>(first_seed_) + static_cast<uint64_t>(turns_));
  waste_generation_options generation_options = GenerationOptionsOf(sampling_);
  generation_options.raw = options_.raw ? 1 : 0;
  const auto generation = Make<waste_generation>([&](waste_generation** out, waste_error* error) {
    return waste_generate(session_.get(), prompt.data(), std::ssize(prompt), &generation_options,
                          out, error);
  });
  ++turns_;
  Answer answer = Generate(generation, sampling_, show);
  PassNotesOn(model_.get());
  return answer;
}

void Conversation::Reset() {
  Try([&](waste_error* error) { return waste_session_reset(session_.get(), error); });
  AddSystemMessage();
}

void Conversation::Save(const std::string& path) {
  Try([&](waste_error* error) {
    return waste_session_save(session_.get(), path.data(), std::ssize(path), error);
  });
}

void Conversation::Load(const std::string& path) {
  Try([&](waste_error* error) {
    return waste_session_load(session_.get(), path.data(), std::ssize(path), error);
  });
}

waste_stats Conversation::Stats() const {
  auto stats = Sized<waste_stats>();
  Try([&](waste_error* error) { return waste_session_stats(session_.get(), &stats, error); });
  return stats;
}

void Conversation::AddSystemMessage() {
  if (!options_.system) return;
  Try([&](waste_error* error) {
    return waste_session_add_message(session_.get(), WASTE_ROLE_SYSTEM, options_.system->data(),
                                     std::ssize(*options_.system), error);
  });
}

}  // namespace waste_cli
