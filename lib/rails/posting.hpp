// SPDX-License-Identifier: BSL-1.0
//
// Updates a rank's entry on the board of a transport, at intervals.
#pragma once

#include "lib/rails/board.hpp"
#include "railpass/transport/transport.hpp"

#include <cstdint>

namespace railpass::internal {

/// Does not lock the transport: no other thread may use it meanwhile.
class posting {
 public:
  /// Posts for the first time. `of` must live as long; for `id` and what is thrown see rail_board.
  posting(std::uint64_t id, int num_ranks, const transport::transport& of);

  /// Posts, if it is time. The more peers, the longer that takes: so seldom that it costs about a
  /// thousandth of the time.
  void post();

 private:
  const transport::transport& of_;
  rail_board board_;
  double next_s_ = 0;
};

}  // namespace railpass::internal
