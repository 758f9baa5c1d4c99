// SPDX-License-Identifier: BSL-1.0
//
// The memory of a message: pieces that need not stand together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace railpass::transport {

/// A part of a message in memory. Where it is sent from, it is not written to.
struct piece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

inline std::int64_t bytes_of(const std::vector<piece>& pieces) {
  std::int64_t sum = 0;
  for (const piece& p : pieces) sum += std::int64_t(p.bytes);
  return sum;
}

/// Appends the part [from, from + bytes) of the pieces.
inline void cut(const std::vector<piece>& pieces, std::int64_t from, std::int64_t bytes,
                std::vector<piece>& part) {
  for (const piece& p : pieces) {
    if (bytes == 0) break;
    const auto here = std::int64_t(p.bytes);
    if (from < here) {
      const std::int64_t n = std::min(here - from, bytes);
      part.push_back({p.data + from, std::size_t(n)});
      bytes -= n;
      from = 0;
    } else {
      from -= here;
    }
  }
}

/// Copies bytes that stand together to [at, at + bytes) of the pieces.
inline void copy(const std::byte* from, std::int64_t bytes, const std::vector<piece>& to,
                 std::int64_t at = 0) {
  std::vector<piece> part;
  cut(to, at, bytes, part);
  for (const piece& p : part) {
    std::memcpy(p.data, from, p.bytes);
    from += p.bytes;
  }
}

/// Copies the first `bytes` from pieces to pieces.
inline void copy(const std::vector<piece>& from, std::int64_t bytes, const std::vector<piece>& to) {
  std::int64_t at = 0;
  for (const piece& p : from) {
    const std::int64_t n = std::min(std::int64_t(p.bytes), bytes - at);
    copy(p.data, n, to, at);
    at += n;
  }
}

}  // namespace railpass::transport
