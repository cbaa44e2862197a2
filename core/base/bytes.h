// SPDX-License-Identifier: Apache-2.0
//
// Little-endian numbers in byte buffers. Every file of a container is little-endian on every
// machine; nothing is cast in place, because records need not be aligned for their fields and hosts
// need not be little-endian. Not thread-safe; one reader or writer a thread.

#ifndef WASTE_CORE_BASE_BYTES_H_
#define WASTE_CORE_BASE_BYTES_H_

#include <cstdint>
#include <span>
#include <vector>

namespace waste {

// The `size` bytes at `bytes` as a number, lowest first; size is 1 to 8.
inline uint64_t LoadLittle(const uint8_t* bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

inline void StoreLittle(uint8_t* bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
}

inline uint16_t LoadU16(const uint8_t* bytes) {
  return static_cast<uint16_t>(LoadLittle(bytes, 2));
}

// Reads fields one after another. The caller has checked that `bytes` holds the whole record.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint8_t U8() { return static_cast<uint8_t>(Read(1)); }
  uint16_t U16() { return static_cast<uint16_t>(Read(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Read(4)); }
  uint64_t U64() { return Read(8); }

 private:
  uint64_t Read(int size) {
    const uint64_t value = LoadLittle(bytes_.data() + next_, size);
    next_ += static_cast<size_t>(size);
    return value;
  }

  std::span<const uint8_t> bytes_;
  size_t next_ = 0;
};

// Appends fields one after another.
class ByteWriter {
 public:
  void U8(uint8_t value) { Write(value, 1); }
  void U16(uint16_t value) { Write(value, 2); }
  void U32(uint32_t value) { Write(value, 4); }
  void U64(uint64_t value) { Write(value, 8); }
  void Bytes(std::span<const uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void ZerosUpTo(int64_t size) { bytes_.resize(static_cast<size_t>(size)); }

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  std::span<const uint8_t> bytes() const { return bytes_; }
  std::vector<uint8_t> Take() && { return std::move(bytes_); }

 private:
  void Write(uint64_t value, int size) {
    const size_t at = bytes_.size();
    bytes_.resize(at + static_cast<size_t>(size));
    StoreLittle(bytes_.data() + at, value, size);
  }

  std::vector<uint8_t> bytes_;
};

}  // namespace waste

#endif  // WASTE_CORE_BASE_BYTES_H_
