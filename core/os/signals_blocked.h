// SPDX-License-Identifier: Apache-2.0
//
// While it lives, threads that are started take no signals but those of their own faults: a host's
// handlers do not run on our threads. For every place that starts one. Not to be nested over
// threads.

#ifndef WASTE_CORE_OS_SIGNALS_BLOCKED_H_
#define WASTE_CORE_OS_SIGNALS_BLOCKED_H_

#if !defined(_WIN32)
#include <signal.h>

#include <initializer_list>
#endif

namespace waste {

#if defined(_WIN32)

// There a signal is a thread of its own, or the fault of the thread that it comes to.
class SignalsBlocked {
 public:
  SignalsBlocked() {}
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() {}
};

#else

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&blocked, fault);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

#endif

}  // namespace waste

#endif  // WASTE_CORE_OS_SIGNALS_BLOCKED_H_
