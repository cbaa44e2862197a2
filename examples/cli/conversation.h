// SPDX-License-Identifier: Apache-2.0
//
// A session with its system message, for `run` and `chat`: made, added to and answered the same way
// in both.

#ifndef WASTE_EXAMPLES_CLI_CONVERSATION_H_
#define WASTE_EXAMPLES_CLI_CONVERSATION_H_

#include <optional>
#include <string>

#include "answer.h"

namespace waste_cli {

struct ConversationOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> system;
  bool think = false;
  bool raw = false;  // the prompt is text to continue
};

// Declares --system and --think beside the options of the model and of sampling.
void AddConversationOptions(CLI::App& command, ConversationOptions& options);

class Conversation {
 public:
  // Opens the model. `options` outlives the conversation.
  explicit Conversation(const ConversationOptions& options);

  // One turn: the user's message, or the text to continue.
  Answer Ask(const std::string& prompt, Show show);

  // Forgets everything but the system message.
  void Reset();
  void Save(const std::string& path);
  void Load(const std::string& path);

  const Model& model() const { return model_; }
  const SamplingOptions& sampling() const { return sampling_; }  // with the seed of the last turn
  waste_stats Stats() const;

 private:
  void AddSystemMessage();

  const ConversationOptions& options_;
  SamplingOptions sampling_;
  const int64_t first_seed_;
  int64_t turns_ = 0;
  Model model_;
  Session session_;
};

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_CONVERSATION_H_
