// SPDX-License-Identifier: BSL-1.0
//
// What a rank that waits for long tells those for whom it waits: which call it is in. A rank that
// made another one there ends its call, and with it the wait of both.
#pragma once

#include "collectives/collective.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace railpass {

/// What ranks that make the same call have alike, whatever their datatypes.
struct told_call {
  std::int64_t number = 0;  ///< of the communicator's calls, from 1 on
  std::int64_t bytes = 0;   ///< 0 where only pairs of ranks know lengths
  std::int32_t root = 0;
  collective op = collective::broadcast;
  friend bool operator==(const told_call&, const told_call&) = default;

  using words = std::array<std::int32_t, 6>;
  words packed() const;
  /// None if these are no words of a call.
  static std::optional<told_call> of(const words& from);
  /// "a broadcast of 400 bytes from root 1".
  std::string text() const;
};

/// The last calls of a communicator on this rank.
class told_calls {
 public:
  void add(const told_call& made) { calls_[std::size_t(made.number) % calls_.size()] = made; }
  /// The call of that number; null: it is none that was told, or too long ago.
  const told_call* find(std::int64_t number) const {
    const told_call& found = calls_[std::size_t(number) % calls_.size()];
    return number > 0 && found.number == number ? &found : nullptr;
  }
  /// What differs from what another rank tells; empty: nothing that is known here. What this rank
  /// has not come to yet it is told again.
  std::string difference(std::int32_t from, const told_call& theirs) const;

 private:
  std::array<told_call, 64> calls_{};
};

}  // namespace railpass
