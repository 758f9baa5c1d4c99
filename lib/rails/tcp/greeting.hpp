// SPDX-License-Identifier: BSL-1.0
//
// How two ranks verify each other at the ends of a connection. Each rank proves that it knows a
// key, without showing the key, which MPI has distributed. No I/O.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace railpass::internal::tcp {

using word = std::array<unsigned char, 32>;

/// Random bytes from the operating system. Throws error if the system has none.
word random_word();

/// Shared by the ranks that connect, unknown to other programs, and new for every set of
/// connections.
struct secret {
  word key{};
  std::uint64_t epoch = 0;  ///< identifies the set of connections; not secret
};

/// How each end introduces itself.
struct introduction {
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint32_t rail = 0;
  word nonce{};  ///< random, so that a proof holds for one greeting only
  bool operator==(const introduction&) const = default;
};

inline constexpr std::size_t introduction_bytes = 64;
using packed_introduction = std::array<unsigned char, introduction_bytes>;

packed_introduction pack(const introduction& i);
/// Returns nothing if the bytes are not the result of pack().
std::optional<introduction> parse_introduction(
    std::span<const unsigned char, introduction_bytes> from);

/// Role of an end: the caller opens the connection.
enum class end : unsigned char { caller = 'c', listener = 'l' };

/// Proves that an end knows the key: a keyed hash (HMAC with SHA-256) of its role and of both
/// introductions. Throws error if the library lacks this hash.
word proof(const secret& s, end whose, const introduction& caller, const introduction& listener);

/// Compares in constant time.
bool equal(const word& a, const word& b);

}  // namespace railpass::internal::tcp
