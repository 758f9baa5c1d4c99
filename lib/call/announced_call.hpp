// SPDX-License-Identifier: BSL-1.0
//
// A rank that has waited long informs the ranks for which it waits about its call. If such a rank's
// call with the same number differs, it ends its call, and both ranks stop waiting.
#pragma once

#include "collectives/collective.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace railpass::internal {

/// The arguments that are equal on all ranks of a call, whatever their datatypes.
struct told_call {
  std::int64_t number = 0;  ///< of the communicator's calls, from 1 on
  std::int64_t bytes = 0;   ///< 0 if only pairs of ranks know lengths
  std::int32_t root = 0;
  collective op = collective::broadcast;
  friend bool operator==(const told_call&, const told_call&) = default;

  using words = std::array<std::int32_t, 6>;
  words packed() const;
  /// Returns nothing if the words describe no call.
  static std::optional<told_call> of(const words& from);
  /// "broadcast of 400 bytes with root 1".
  std::string text() const;
};

/// The last calls of a communicator on this rank.
class told_calls {
 public:
  void add(const told_call& made) { calls_[std::size_t(made.number) % calls_.size()] = made; }
  /// The call with this number; null: the call was not added, or is too old.
  const told_call* find(std::int64_t number) const {
    const told_call& found = calls_[std::size_t(number) % calls_.size()];
    return number > 0 && found.number == number ? &found : nullptr;
  }
  /// How this rank's call with that number differs from the other rank's call. Empty: no
  /// difference, or this rank does not know the call yet; the other rank announces its call again
  /// later.
  std::string difference(std::int32_t from, const told_call& theirs) const;

 private:
  std::array<told_call, 64> calls_{};
};

}  // namespace railpass::internal
