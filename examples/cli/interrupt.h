// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C. SIGINT is blocked in every thread and awaited by one of its own, so that waste_cancel is
// called from ordinary code and nothing has to be safe for a signal handler. While an Interruptible
// lives, the first Ctrl-C cancels its object; a second one, or one while nothing can be cancelled,
// ends the program at once with exit code 130. All functions are for the main thread.

#ifndef WASTE_EXAMPLES_CLI_INTERRUPT_H_
#define WASTE_EXAMPLES_CLI_INTERRUPT_H_

namespace waste_cli {

// Call it first in main(), before another thread exists.
void AwaitInterrupts();

// Whether Ctrl-C was pressed since the last Interruptible was made.
bool WasInterrupted();

// From now on a Ctrl-C while nothing can be cancelled does nothing: for a program that waits for a
// user and is left in another way.
void StayOnInterrupt();

// Makes Ctrl-C cancel `object` (a generation or a job) for a time. One at a time.
class Interruptible {
 public:
  explicit Interruptible(void* object);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_INTERRUPT_H_
