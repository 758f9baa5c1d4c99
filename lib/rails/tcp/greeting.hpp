// SPDX-License-Identifier: BSL-1.0
//
// How two ranks find out that the other end of a connection is who it says: each proves that it
// knows a key which was handed to the ranks over MPI, without ever showing it. No I/O.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace railpass::internal::tcp {

using word = std::array<unsigned char, 32>;

/// From the system. Throws error if it has none.
word random_word();

/// What the ranks that connect have in common, and nobody else; new each time.
struct secret {
  word key{};
  std::uint64_t epoch = 0;  ///< tells one such time from another, and is no secret
};

/// What each end says of itself.
struct introduction {
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint32_t rail = 0;
  word nonce{};  ///< random, so that what proves something here proves nothing elsewhere
  bool operator==(const introduction&) const = default;
};

inline constexpr std::size_t introduction_bytes = 64;
using packed_introduction = std::array<unsigned char, introduction_bytes>;

packed_introduction pack(const introduction& i);
/// Nothing if pack() does not make these bytes.
std::optional<introduction> parse_introduction(
    std::span<const unsigned char, introduction_bytes> from);

/// The end of a connection that began it, and the other one.
enum class end : unsigned char { caller = 'c', listener = 'l' };

/// What one end shows to prove that it knows the key: a keyed hash (HMAC with SHA-256) of which end
/// it is and of both introductions. Throws error if the library has none.
word proof(const secret& s, end whose, const introduction& caller, const introduction& listener);

/// In constant time.
bool equal(const word& a, const word& b);

}  // namespace railpass::internal::tcp
