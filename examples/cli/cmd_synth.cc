// SPDX-License-Identifier: Apache-2.0
//
// `waste synth`: a container of random weights in the true shape of a model.

#include <chrono>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "output.h"
#include "progress.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
For measuring: the container has the layers, matrices and experts of the real model, at their true
sizes, and random numbers in them. What it answers means nothing. SHAPE is kimi-linear-48b (19 GB),
k3 (982 GB) or mini (8 MB); --layers and --experts cut it down and leave the width true. OUT must
not exist, and appears when it is complete.

Examples:
  waste synth kimi-linear-48b /big/kl.waste
  waste synth k3 /big/k3-slice.waste --layers 4 --experts 64
  waste bench /big/kl.waste --budget 8G
JSON: shape, target, seconds)";

struct SynthOptions {
  std::string shape;
  std::string target;
  waste_synthesis_options library = Sized<waste_synthesis_options>();
};

int Synth(const SynthOptions& options, bool json) {
  const auto start = std::chrono::steady_clock::now();
  const auto job = Make<waste_job>([&](waste_job** out, waste_error* error) {
    return waste_synthesize(options.shape.data(), std::ssize(options.shape), options.target.data(),
                            std::ssize(options.target), &options.library, out, error);
  });
  WaitForJob(job.get(), "Writing", Unit::kBytes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (json) {
    WriteJson({{"shape", options.shape}, {"target", options.target}, {"seconds", seconds.count()}});
  } else {
    Write(options.target + "\n");
  }
  return kExitOk;
}

}  // namespace

void AddSynth(CLI::App& app, Program& program) {
  auto options = std::make_shared<SynthOptions>();
  CLI::App& command =
      AddCommand(app, program, "synth", "Write random weights in a model's true shape", kFooter,
                 [options, &program] { return Synth(*options, program.json); });
  AddRequired(command, "SHAPE", options->shape, "kimi-linear-48b, k3 or mini");
  AddRequired(command, "OUT", options->target, "Folder to write");
  AddInteger(command, "--layers", options->library.layers, "The first so many (default: all)", 1,
             1000);
  AddInteger(command, "--experts", options->library.experts, "Of each layer (default: all)", 1,
             100000);
  AddInteger(command, "--seed", options->library.seed, "Same seed, same bytes (default: 0)", 0,
             UINT32_MAX);
}

}  // namespace waste_cli
