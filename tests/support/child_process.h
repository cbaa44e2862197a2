// SPDX-License-Identifier: Apache-2.0
//
// A second real process for a test: forked, it runs a body and stays until it is told to end or is
// killed. The two talk in single bytes; hearing one means that what came before it has happened.
// For tests that have no other thread while they fork.

#ifndef WASTE_TESTS_SUPPORT_CHILD_PROCESS_H_
#define WASTE_TESTS_SUPPORT_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

namespace waste {

class ChildProcess {
 public:
  // What the body has to say and to hear.
  class Line {
   public:
    Line(int in, int out) : in_(in), out_(out) {}
    void Say(char what) const {
      if (write(out_, &what, 1) != 1) _exit(1);
    }
    // The next byte, or 0 if the other side has closed.
    char Hear() const {
      char what = 0;
      return read(in_, &what, 1) == 1 ? what : '\0';
    }

   private:
    int in_, out_;
  };

  explicit ChildProcess(const std::function<void(const Line&)>& body) {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0) throw std::runtime_error("no pipes");
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("no process");
    if (process_ == 0) {
      close(down[1]);
      close(up[0]);
      body(Line(down[0], up[1]));
      _exit(0);  // nothing of the test program runs in here
    }
    close(down[0]);
    close(up[1]);
    in_ = up[0];
    out_ = down[1];
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    close(out_);
    close(in_);
    Kill();
  }

  void Say(char what) const {
    if (write(out_, &what, 1) != 1) throw std::runtime_error("the child has ended");
  }
  char Hear() const {
    char what = 0;
    return read(in_, &what, 1) == 1 ? what : '\0';
  }
  // Ends it as it stands, and waits until it is gone.
  void Kill() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  int in_ = -1, out_ = -1;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_CHILD_PROCESS_H_
