// SPDX-License-Identifier: BSL-1.0
//
// The board of a transport, on which the ranks of a host show the load of their rails.
#pragma once

#include "lib/rails/board_file.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal {

/// Load of one rail of a rank.
struct posted_rail {
  int rank = 0;          ///< in the communicator that opened the rails
  std::int64_t pid = 0;  ///< the process that posted
  std::string program{};
  std::string rail{};  ///< interface and address, which show whether ranks share a rail
  std::int64_t sent_bytes = 0;
  double bytes_per_s = 0;  ///< estimate; median over the peers
  std::optional<double> prediction_error{};
  std::int64_t backlog_bytes = 0;  ///< given to the rail, and not known to have left
  double posted_at_s = 0;          ///< by steady_clock_s, the same for all processes of a host
};

/// A rank's entries on the board of a transport.
class rail_board {
 public:
  /// See board_file.
  rail_board(std::uint64_t id, int num_ranks, int num_rails, int rank,
             const std::string& folder = shared_memory);

  /// Shows these loads from now on, for each rail in order. post() fills in process and program.
  void post(std::span<const posted_rail> rails);

 private:
  board_file file_;
};

/// A program with rails on this host.
struct found_board {
  std::uint64_t id = 0;
  int num_ranks = 0;               ///< on all hosts
  std::vector<posted_rail> rails;  ///< by rank, of the ranks on this host
};

struct found_boards {
  std::vector<found_board> boards;
  std::vector<std::string> skipped;  ///< files that are no boards, with the reason
};

/// The boards of this user's programs. Removes boards that no process uses any more.
found_boards find_boards(const std::string& folder = shared_memory);

}  // namespace railpass::internal
