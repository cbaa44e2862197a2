// SPDX-License-Identifier: Apache-2.0
//
// A value behind a lock. The lock is held for a few instructions and never across a call that can
// block, so it may be taken anywhere, cancellation handlers included. A body must not let go of the
// last reference to anything: what it takes out, it returns. A POSIX mutex, because Swift's own
// Mutex needs macOS 15 and is invisible to ThreadSanitizer on Linux.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Android)
  import Android
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Unchecked: `value` is touched under the mutex only.
final class Protected<Value: Sendable>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var value: Value

  init(_ value: Value) {
    self.value = value
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&value)
  }
}
