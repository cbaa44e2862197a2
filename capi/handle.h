// SPDX-License-Identifier: Apache-2.0
//
// The objects behind the opaque handles. Each starts with a tag that tells its kind, so a handle of
// another kind is refused and not misread, and counts its users: the caller's reference, and one
// for each call that is inside. waste_free drops the caller's; the object goes when the last call
// leaves.

#ifndef WASTE_CAPI_HANDLE_H_
#define WASTE_CAPI_HANDLE_H_

#include <waste/waste.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "engine/generation.h"
#include "engine/job.h"
#include "engine/model.h"
#include "engine/session.h"

namespace waste {

enum class Kind : uint32_t {
  kFreed = 0,
  kModel = 0x4C444F4D,       // "MODL"
  kSession = 0x53534553,     // "SESS"
  kGeneration = 0x524E4547,  // "GENR"
  kJob = 0x5F424F4A,         // "JOB_"
};

class Object {
 public:
  explicit Object(Kind kind) : kind_(kind) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() { kind_ = Kind::kFreed; }

  Kind kind() const { return kind_; }
  void Enter() { users_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  volatile Kind kind_;  // volatile: the store in the destructor is for readers that come too late
  std::atomic<int32_t> users_{1};
};

// A call that is inside an object.
template <typename T>
class Use {
 public:
  explicit Use(T* object) : object_(object) { object_->Enter(); }
  Use(Use&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (object_ != nullptr) object_->Leave();
  }
  T* operator->() const { return object_; }

 private:
  T* object_;
};

}  // namespace waste

struct waste_model final : waste::Object {
  static constexpr waste::Kind kKind = waste::Kind::kModel;
  static constexpr const char* kName = "model";
  explicit waste_model(std::shared_ptr<waste::Model> m) : Object(kKind), model(std::move(m)) {}
  std::shared_ptr<waste::Model> model;
};

namespace waste {

// Stops the waste_eval that runs on a session, if one does; other calls are short or have a
// generation to be cancelled.
class EvalStop {
 public:
  // While it lives, an eval runs.
  class Running {
   public:
    explicit Running(EvalStop& stop) : stop_(stop) { stop_.state_ = State::kRunning; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { stop_.state_ = State::kIdle; }
    bool stopped() const { return stop_.state_ == State::kAsked || stop_.forever_; }

   private:
    EvalStop& stop_;
  };

  void Current() {
    State running = State::kRunning;
    state_.compare_exchange_strong(running, State::kAsked);
  }
  void Forever() { forever_ = true; }  // the session was freed

 private:
  enum class State { kIdle, kRunning, kAsked };
  std::atomic<State> state_{State::kIdle};
  std::atomic<bool> forever_{false};
};

}  // namespace waste

struct waste_session final : waste::Object {
  static constexpr waste::Kind kKind = waste::Kind::kSession;
  static constexpr const char* kName = "session";
  explicit waste_session(std::shared_ptr<waste::Session> s)
      : Object(kKind), session(std::move(s)) {}
  std::shared_ptr<waste::Session> session;
  waste::EvalStop stop;
};

struct waste_generation final : waste::Object {
  static constexpr waste::Kind kKind = waste::Kind::kGeneration;
  static constexpr const char* kName = "generation";
  explicit waste_generation(std::shared_ptr<waste::Generation> g)
      : Object(kKind), generation(std::move(g)) {}
  std::shared_ptr<waste::Generation> generation;
};

struct waste_job final : waste::Object {
  static constexpr waste::Kind kKind = waste::Kind::kJob;
  static constexpr const char* kName = "job";
  // Where an open job leaves its model until somebody takes it.
  struct Outcome {
    std::mutex mutex;
    std::shared_ptr<waste::Model> model;
  };
  waste_job(std::shared_ptr<waste::Job> j, std::shared_ptr<Outcome> o)
      : Object(kKind), outcome(std::move(o)), job(std::move(j)) {}
  std::shared_ptr<Outcome> outcome;
  std::shared_ptr<waste::Job> job;
};

namespace waste {

// Enters `handle`, which the caller says is a T. Errors: kArgument (NULL, or of another kind).
template <typename T>
Result<Use<T>> UseHandle(T* handle) {
  const auto* object = reinterpret_cast<const Object*>(handle);
  if (object == nullptr) return Failure(Code::kArgument, "the ", T::kName, " is NULL");
  if (object->kind() != T::kKind)
    return Failure(Code::kArgument, "the handle given as a ", T::kName, " is not one");
  return Use<T>(handle);
}

}  // namespace waste

#endif  // WASTE_CAPI_HANDLE_H_
