// SPDX-License-Identifier: Apache-2.0
//
// A progress bar on stderr, and the loop that waits for a job of the library with one. Nothing is
// drawn where stderr is no terminal. Short work shows none. Main thread only.

#ifndef WASTE_EXAMPLES_CLI_PROGRESS_H_
#define WASTE_EXAMPLES_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "handle.h"

namespace waste_cli {

enum class Unit { kBytes, kPieces };

class ProgressBar {
 public:
  ProgressBar(std::string label, Unit unit);
  ~ProgressBar();  // clears the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `total` is 0 while it is not known.
  void Show(int64_t done, int64_t total);

 private:
  const std::string label_;
  const Unit unit_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool drawn_ = false;
};

// Waits for the end of a job, which Ctrl-C cancels. What the job has to say goes to stderr as it
// comes, and is returned. Throws the Failure of the job.
std::vector<std::string> WaitForJob(waste_job* job, const std::string& label, Unit unit);

// The lines that a model or a job has to say, passed on to stderr.
std::vector<std::string> PassNotesOn(void* object);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_PROGRESS_H_
