// SPDX-License-Identifier: Apache-2.0

#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "failure.h"
#include "waste/waste.h"

namespace waste_cli {
namespace {

// The process has one keyboard, so this is one object of the process.
struct Target {
  std::mutex mutex;
  void* object = nullptr;
  bool cancelled = false;
  bool stays = false;
};
Target target;

sigset_t InterruptSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  return signals;
}

void OnInterrupt() {
  const std::lock_guard<std::mutex> lock(target.mutex);
  if (target.object == nullptr && target.stays) return;
  if (target.object == nullptr || target.cancelled) _exit(kExitInterrupted);
  target.cancelled = true;
  waste_cancel(target.object);
}

}  // namespace

void AwaitInterrupts() {
  const sigset_t signals = InterruptSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    for (int number = 0;;)
      if (sigwait(&signals, &number) == 0) OnInterrupt();
  }).detach();
}

bool WasInterrupted() {
  const std::lock_guard<std::mutex> lock(target.mutex);
  return target.cancelled;
}

void StayOnInterrupt() {
  const std::lock_guard<std::mutex> lock(target.mutex);
  target.stays = true;
}

Interruptible::Interruptible(void* object) {
  const std::lock_guard<std::mutex> lock(target.mutex);
  target.object = object;
  target.cancelled = false;
}

Interruptible::~Interruptible() {
  const std::lock_guard<std::mutex> lock(target.mutex);
  target.object = nullptr;
}

}  // namespace waste_cli
