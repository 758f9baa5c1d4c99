// SPDX-License-Identifier: BSL-1.0
//
// The rounds of an n-way dissemination after which each rank knows the words of all other ranks,
// of each rank once. The messages are made in joint_lockstep.cpp.
#pragma once

#include "collectives/blocks.hpp"

namespace railpass::internal {

/// At the beginning of the round a rank knows the words of `before` ranks before its own. The round
/// multiplies their number by the radix, and adds `with_own`, the next digit of the number of
/// other ranks. The first `with_own` messages also bring the sender's own words.
struct agreement_round {
  static constexpr int radix = collectives::agreement_radix;
  int before, with_own;

  /// `unit`: the power of the radix that the digit counts.
  constexpr agreement_round(int others, int unit)
      : before(others / unit / radix), with_own(others / unit % radix) {}
  /// The unit of the first round; 0: no round. Divided by the radix from round to round.
  static constexpr int first_unit(int others) {
    int unit = others > 0 ? 1 : 0;
    while (unit > 0 && others / unit >= radix) unit *= radix;
    return unit;
  }
  constexpr int messages() const { return before > 0 ? radix - 1 : with_own; }
  constexpr bool has_own(int message) const { return message < with_own; }
  /// From the sender to the receiver.
  constexpr int distance(int message) const {
    return has_own(message) ? (message + 1) * (before + 1) : with_own + (message + 1) * before;
  }
};

}  // namespace railpass::internal
