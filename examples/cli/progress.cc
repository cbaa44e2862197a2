// SPDX-License-Identifier: Apache-2.0

#include "progress.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "interrupt.h"
#include "output.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(200);  // shorter work needs no bar
constexpr int64_t kRedrawMs = 50;
constexpr int kWidth = 30;

std::string Amount(int64_t count, Unit unit) {
  return unit == Unit::kBytes ? SizeText(count) : std::to_string(count);
}

}  // namespace

ProgressBar::ProgressBar(std::string label, Unit unit) : label_(std::move(label)), unit_(unit) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::Show(int64_t done, int64_t total) {
  if (!StderrIsTerminal() || std::chrono::steady_clock::now() - start_ < kPatience) return;
  drawn_ = true;
  if (total <= 0) {
    std::fprintf(stderr, "\r\033[K%s", label_.c_str());
  } else {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0., 1.);
    const int full = static_cast<int>(share * kWidth);
    std::fprintf(stderr, "\r\033[K%s [%s%s] %3.0f %%  %s of %s", label_.c_str(),
                 std::string(static_cast<size_t>(full), '#').c_str(),
                 std::string(static_cast<size_t>(kWidth - full), '.').c_str(), 100 * share,
                 Amount(done, unit_).c_str(), Amount(total, unit_).c_str());
  }
  std::fflush(stderr);
}

std::vector<std::string> WaitForJob(waste_job* job, const std::string& label, Unit unit) {
  std::vector<std::string> notes;
  const Interruptible interruptible(job);
  ProgressBar bar(label, unit);
  for (;;) {
    auto error = Sized<waste_error>();
    const waste_status status = waste_job_wait(job, kRedrawMs, &error);
    for (std::string& note : PassNotesOn(job)) notes.push_back(std::move(note));
    if (status < 0) throw LibraryFailure(error, status);
    if (status == WASTE_OK) return notes;
    auto progress = Sized<waste_progress>();
    Try([&](waste_error* out) { return waste_job_progress(job, &progress, out); });
    bar.Show(progress.done, progress.total);
  }
}

std::vector<std::string> PassNotesOn(void* object) {
  std::vector<std::string> notes;
  std::array<char, 4096> line;
  for (;;) {
    const int64_t size = Try([&](waste_error* error) {
      return waste_log_next(object, line.data(), std::ssize(line), error);
    });
    if (size == 0) return notes;
    notes.emplace_back(line.data(), static_cast<size_t>(std::min(size, std::ssize(line))));
    WriteNote("note: " + notes.back());
  }
}

}  // namespace waste_cli
