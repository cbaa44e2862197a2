// SPDX-License-Identifier: Apache-2.0
//
// A job is open from its announcement until the caller has taken the last piece. Workers that come
// while it is open help, and the caller waits for those only: a worker that is slow to wake delays
// nobody. Idle workers spin for a while, since the next job of a token is microseconds away, and
// then park.

#include "parallel/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "os/cpu_affinity.h"
#include "os/signals_blocked.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr int64_t kSpinMicros = 50;  // about what waking a parked thread costs
constexpr size_t kCacheLine = 64;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `done()` or for kSpinMicros; returns whether it is done.
template <typename Done>
bool SpinUntil(const Done& done) {
  const int64_t start = MonotonicMicros();
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (MonotonicMicros() - start < kSpinMicros);
  return false;
}

}  // namespace

struct ThreadPool::Team {
  ~Team();
  void Work();  // a worker's life
  bool HasWork(uint32_t last) const;
  void TakePieces();
  void Announce();
  void Finish();

  std::vector<std::thread> workers;

  // The job. Written by the caller while no worker is inside.
  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0;
  int64_t grain = 1;
  int64_t pieces = 0;

  // Odd while a job is open; counts up by one as jobs open and close. A worker enters by adding
  // itself to `inside` and looking at `phase` then; the caller closes the phase and looks at
  // `inside` then. Both are sequentially consistent, so one of them sees the other.
  alignas(kCacheLine) std::atomic<uint32_t> phase{0};
  alignas(kCacheLine) std::atomic<int32_t> inside{0};
  alignas(kCacheLine) std::atomic<int64_t> next_piece{0};

  // Whoever waits for long. The counts of sleepers spare the lock when there are none.
  alignas(kCacheLine) std::atomic<int32_t> parked{0};
  std::atomic<bool> caller_parked{false};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable work_or_stop;
  std::condition_variable all_left;
  std::exception_ptr failure;  // the first that left a body; guarded by mutex
};

ThreadPool::Team::~Team() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stop.store(true);
  }
  work_or_stop.notify_all();
  for (std::thread& worker : workers) worker.join();
}

bool ThreadPool::Team::HasWork(uint32_t last) const {
  const uint32_t now = phase.load();
  return (now & 1) != 0 && now != last;
}

void ThreadPool::Team::Work() {
  uint32_t last = 0;  // the job this worker has done
  while (true) {
    const auto ready = [&] { return HasWork(last) || stop.load(); };
    if (!SpinUntil(ready)) {
      std::unique_lock<std::mutex> lock(mutex);
      parked.fetch_add(1);
      work_or_stop.wait(lock, ready);
      parked.fetch_sub(1);
    }
    if (stop.load()) return;
    inside.fetch_add(1);
    if (const uint32_t now = phase.load(); (now & 1) != 0) {
      TakePieces();
      last = now;
    }
    if (inside.fetch_sub(1) == 1 && caller_parked.load()) {
      const std::lock_guard<std::mutex> lock(mutex);
      all_left.notify_one();
    }
  }
}

void ThreadPool::Team::TakePieces() {
  try {
    // Several neighbours at a time, fewer towards the end: who reads memory in order has it fetched
    // ahead, and threads still end together.
    const auto shares = 4 * static_cast<int64_t>(workers.size() + 1);
    while (true) {
      const int64_t left = pieces - next_piece.load(std::memory_order_relaxed);
      const int64_t taken = std::max<int64_t>(1, left / shares);
      const int64_t piece = next_piece.fetch_add(taken, std::memory_order_relaxed);
      if (piece >= pieces) return;
      const int64_t end = piece + taken;
      (*body)(piece * grain, end >= pieces ? count : end * grain);
    }
  } catch (...) {
    next_piece.store(pieces, std::memory_order_relaxed);  // the rest is not begun
    const std::lock_guard<std::mutex> lock(mutex);
    if (!failure) failure = std::current_exception();
  }
}

void ThreadPool::Team::Announce() {
  next_piece.store(0, std::memory_order_relaxed);
  phase.fetch_add(1);
  if (parked.load() == 0) return;
  // A worker that counted itself but does not wait yet holds the lock; it must not miss this.
  { const std::lock_guard<std::mutex> lock(mutex); }
  work_or_stop.notify_all();
}

void ThreadPool::Team::Finish() {
  phase.fetch_add(1);
  const auto left = [&] { return inside.load() == 0; };
  if (SpinUntil(left)) return;
  std::unique_lock<std::mutex> lock(mutex);
  caller_parked.store(true);
  all_left.wait(lock, left);
  caller_parked.store(false);
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::Create(int32_t threads, const CpuSet& cpus) {
  WASTE_CHECK(threads >= 1);
  auto team = std::make_unique<Team>();
  team->workers.reserve(static_cast<size_t>(threads - 1));
  const SignalsBlocked blocked;
  const OnCpus on_cpus(cpus);  // inherited by the threads that are started here
  for (int32_t i = 1; i < threads; ++i) {
    try {
      team->workers.emplace_back([t = team.get()] { t->Work(); });
    } catch (const std::system_error& error) {
      return Failure(Code::kNoMemory, "the system gave ", i, " of ", threads,
                     " threads: ", error.what(), "; ask for fewer");
    }
  }
  return std::unique_ptr<ThreadPool>(new ThreadPool(std::move(team)));
}

ThreadPool::ThreadPool(std::unique_ptr<Team> team) : team_(std::move(team)) {}

ThreadPool::~ThreadPool() = default;

int32_t ThreadPool::threads() const { return static_cast<int32_t>(team_->workers.size()) + 1; }

void ThreadPool::Run(int64_t count, int64_t grain,
                     const std::function<void(int64_t, int64_t)>& body) {
  WASTE_CHECK(grain >= 1);
  if (count <= 0) return;
  if (count <= grain) return body(0, count);
  Team& team = *team_;
  team.body = &body;
  team.count = count;
  team.grain = grain;
  team.pieces = count / grain + (count % grain != 0);
  team.failure = nullptr;
  team.Announce();
  team.TakePieces();
  team.Finish();
  if (team.failure) std::rethrow_exception(team.failure);
}

}  // namespace waste
