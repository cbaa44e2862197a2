// SPDX-License-Identifier: Apache-2.0
//
// `waste verify`: reads every byte of a container and checks all that can be checked.

#include <chrono>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "command.h"
#include "output.h"
#include "progress.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Headers, sizes, indices and the checksum of every expert. The first damage found is named with its
file and record; exit code 1.

Example:
  waste verify model.waste
JSON: path, ok, bytes, seconds, notes; or error)";

int Verify(const std::string& path, bool json) {
  const auto start = std::chrono::steady_clock::now();
  const auto job = Make<waste_job>([&](waste_job** out, waste_error* error) {
    return waste_verify(path.data(), std::ssize(path), out, error);
  });
  const std::vector<std::string> notes = WaitForJob(job.get(), "Verifying", Unit::kBytes);
  auto progress = Sized<waste_progress>();
  Try([&](waste_error* error) { return waste_job_progress(job.get(), &progress, error); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (json) {
    WriteJson({{"path", path},
               {"ok", true},
               {"bytes", progress.done},
               {"seconds", seconds.count()},
               {"notes", notes}});
  } else {
    Write(path + ": sound (" + SizeText(progress.done) + " read)\n");
  }
  return 0;
}

}  // namespace

void AddVerify(CLI::App& app, Program& program) {
  auto path = std::make_shared<std::string>();
  CLI::App& command = AddCommand(app, program, "verify", "Check every byte of a converted model",
                                 kFooter, [path, &program] { return Verify(*path, program.json); });
  AddRequired(command, "MODEL", *path, "Folder of the converted model");
}

}  // namespace waste_cli
