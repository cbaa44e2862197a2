// SPDX-License-Identifier: Apache-2.0
//
// RAM that open models were promised, told to the other models of this user: what they have not
// touched yet the system still calls available. Each reservation is an empty file in a folder of
// shared memory that only this user may enter; its name says all, so nothing is ever half-written,
// and a lock that dies with its process tells whether it still counts. Where there can be no such
// folder (a read-only system, somebody else's folder of that name, no /proc) nothing is reserved,
// and that is no error. A child made by fork keeps nothing of its parent's. Other users' models and
// those in containers with a /dev/shm of their own are not seen. Any thread.

#ifndef WASTE_CORE_OS_RESERVATION_H_
#define WASTE_CORE_OS_RESERVATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace waste {

class Reservation {
 public:
  // Folders to try, in order: shared memory, then the system's temporary folder.
  static std::vector<std::string> Folders();

  // Asks `plan` how many bytes to hold (0: none), given what others hold and have not touched. No
  // other instance plans meanwhile, so two that open at once do not both count on the same bytes.
  static Reservation Make(const std::function<int64_t(int64_t reserved_bytes)>& plan,
                          const std::vector<std::string>& folders = Folders());
  // What all live reservations hold and their processes have not touched.
  static int64_t ReservedBytes(const std::vector<std::string>& folders = Folders());

  Reservation() = default;  // of nothing
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { Release(); }

  // Holds this many bytes from now on, if it holds any.
  void Resize(int64_t bytes);
  bool held() const { return descriptor_ >= 0; }

 private:
  void Release();

  std::string folder_;
  std::string name_;
  int descriptor_ = -1;  // holds the lock
  int64_t owner_ = 0;    // the process; a child made by fork has a copy of this object
};

}  // namespace waste

#endif  // WASTE_CORE_OS_RESERVATION_H_
