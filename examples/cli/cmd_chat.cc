// SPDX-License-Identifier: Apache-2.0
//
// `waste chat`: a conversation, line by line. What goes wrong with one line is said, and the
// conversation goes on.

#include <nlohmann/json.hpp>

#include "command.h"
#include "conversation.h"
#include "interrupt.h"
#include "line_reader.h"
#include "output.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Type a message, or a command:
  /reset       forget the conversation (the system message stays)
  /save FILE   write the conversation to a file
  /load FILE   go on with one that was saved with this model
  /stats       what the conversation holds and took so far
  /help        this list
  /quit        leave, as does the end of the input
A message that begins with a slash is typed with two. Ctrl-C stops an answer, not the program.
Without a terminal, each line of stdin is a message.

Examples:
  waste chat model.waste --system "Be brief."
  printf 'My name is Ada.\nWhat is my name?\n' | waste chat model.waste --json
JSON: a line for each message, with the keys of `waste run --json`; for /stats position, context,
      prompt_tokens, generated_tokens, experts_hit, experts_missed, bytes_read, memory_bytes; for
      other commands done)";
constexpr const char* kHelp =
    "/reset, /save FILE, /load FILE, /stats, /help, /quit; // begins a message with a slash";

class Chat {
 public:
  Chat(const ConversationOptions& options, bool json) : conversation_(options), json_(json) {}

  int Loop() {
    LineReader reader;
    if (reader.is_interactive()) {
      StayOnInterrupt();
      WriteNote(kHelp);
    }
    int code = kExitOk;
    while (!quit_) {
      const std::optional<std::string> line = reader.Read();
      if (!line) break;
      try {
        Take(*line);
      } catch (const OutputFailure&) {
        throw;
      } catch (const Failure& failure) {
        Report(failure, json_);
        if (failure.code_name == "CONTEXT_FULL" && !json_)
          WriteNote("hint: /reset starts again, --context makes room for more");
        if (!reader.is_interactive()) code = kExitFailure;
      }
    }
    return code;
  }

 private:
  void Take(const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    if (line.starts_with("//")) return Say(line.substr(1));
    if (line.starts_with('/')) return Obey(line);
    Say(line);
  }

  void Say(const std::string& message) {
    const Answer answer = conversation_.Ask(message, json_ ? Show::kNothing : Show::kAsItComes);
    if (json_) return WriteJson(ToJson(answer, conversation_.sampling(), conversation_.model()));
    if (!answer.text.ends_with('\n')) Write("\n");
    WriteSummary(answer, conversation_.model());
  }

  void Obey(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const size_t start = line.find_first_not_of(' ', std::min(space, line.size()));
    const std::string argument = start == std::string::npos ? "" : line.substr(start);
    if ((command == "/save" || command == "/load") == argument.empty())
      throw UsageFailure("'" + line + "' is no command: " + kHelp);
    if (command == "/quit") {
      quit_ = true;
    } else if (command == "/reset") {
      conversation_.Reset();
      Done(command, "the conversation is forgotten");
    } else if (command == "/save") {
      conversation_.Save(argument);
      Done(command, "saved to " + argument);
    } else if (command == "/load") {
      conversation_.Load(argument);
      Done(command, "loaded from " + argument);
    } else if (command == "/stats") {
      WriteStats();
    } else if (command == "/help") {
      Done(command, kHelp);
    } else {
      throw UsageFailure("'" + line + "' is no command: " + kHelp);
    }
  }

  void Done(const std::string& command, const std::string& note) {
    if (json_) return WriteJson({{"done", command}});
    WriteNote(note);
  }

  void WriteStats() {
    const waste_stats stats = conversation_.Stats();
    const nlohmann::ordered_json object = {
        {"position", stats.position},           {"context", stats.context},
        {"prompt_tokens", stats.prompt_tokens}, {"generated_tokens", stats.generated_tokens},
        {"experts_hit", stats.experts_hit},     {"experts_missed", stats.experts_missed},
        {"bytes_read", stats.bytes_read},       {"memory_bytes", stats.memory_bytes}};
    if (json_) return WriteJson(object);
    for (const auto& [key, value] : object.items()) WriteNote(key + " " + value.dump());
  }

  Conversation conversation_;
  const bool json_;
  bool quit_ = false;
};

}  // namespace

void AddChat(CLI::App& app, Program& program) {
  auto options = std::make_shared<ConversationOptions>();
  CLI::App& command =
      AddCommand(app, program, "chat", "Talk with a model", kFooter,
                 [options, &program] { return Chat(*options, program.json).Loop(); });
  AddConversationOptions(command, *options);
}

}  // namespace waste_cli
