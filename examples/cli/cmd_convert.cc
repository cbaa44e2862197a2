// SPDX-License-Identifier: Apache-2.0
//
// `waste convert`: a Hugging Face folder becomes a container.

#include <chrono>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "output.h"
#include "progress.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
SRC holds config.json, *.safetensors and the tokenizer's files. OUT must not exist; it appears when
it is complete, so an interrupted conversion leaves nothing that looks like a model. The result does
not depend on --threads.

Experts are quantised to codebooks: --stages 2 and 3 at 8 index bits take 2 and 3 bits a weight,
--stages 4 --index-bits 6 takes 3. Everything else of a matrix has --trunk-bits; what is small, and
smaller than --quantise-from, stays exact.

Examples:
  waste convert Kimi-Linear-48B model.waste
  waste convert checkpoint small.waste --stages 2 --trunk-bits 3
JSON: source, target, seconds, notes)";

struct ConvertOptions {
  std::string source;
  std::string target;
  waste_convert_options library = Sized<waste_convert_options>();
};

int Convert(const ConvertOptions& options, bool json) {
  const auto start = std::chrono::steady_clock::now();
  const auto job = Make<waste_job>([&](waste_job** out, waste_error* error) {
    return waste_convert(options.source.data(), std::ssize(options.source), options.target.data(),
                         std::ssize(options.target), &options.library, out, error);
  });
  const std::vector<std::string> notes = WaitForJob(job.get(), "Converting", Unit::kPieces);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (json) {
    WriteJson({{"source", options.source},
               {"target", options.target},
               {"seconds", seconds.count()},
               {"notes", notes}});
  } else {
    Write(options.target + "\n");
  }
  return 0;
}

}  // namespace

void AddConvert(CLI::App& app, Program& program) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App& command =
      AddCommand(app, program, "convert", "Convert a Hugging Face folder to a container", kFooter,
                 [options, &program] { return Convert(*options, program.json); });
  waste_convert_options& library = options->library;
  AddRequired(command, "SRC", options->source, "Folder of the checkpoint");
  AddRequired(command, "OUT", options->target, "Folder to write");
  AddOneOf(command, "--stages", library.stages, {2, 3, 4, 6},
           "Codebooks in a row: 2, 3, 4 or 6 (default: 3)");
  AddOneOf(command, "--index-bits", library.index_bits, {6, 8},
           "8, or 6 with 4 stages (default: 8)");
  AddOneOf(command, "--trunk-bits", library.trunk_bits, {3, 4, 8}, "3, 4 or 8 (default: 4)");
  AddInteger(command, "--quantise-from", library.quantise_from,
             "Tensors with fewer elements stay exact (default: 65536)", 1);
  AddInteger(command, "--beam", library.expert_beam,
             "Search width of the expert encoder, 1 is greedy (default: 16)", 1);
  AddInteger(command, "--threads", library.threads, "Threads (default: the cores granted)", 1,
             4096);
}

}  // namespace waste_cli
