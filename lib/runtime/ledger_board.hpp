// SPDX-License-Identifier: BSL-1.0
//
// The board of ledgers, on which the ranks of a host show the sums of their ledgers while the
// program runs. A board has no names of hosts: it stays on its host.
#pragma once

#include "lib/rails/board_file.hpp"
#include "railpass/select/statistics/rank_ledger.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace railpass::internal {

/// The ledger of one rank.
struct posted_ledger {
  int rank = 0;          ///< in MPI_COMM_WORLD
  std::int64_t pid = 0;  ///< the process that posted
  std::string program{};
  select::ledger_batch sums{};
  double posted_at_s = 0;  ///< by steady_clock_s, the same for all processes of a host
};

/// A rank's ledger on the board of a program.
class ledger_board {
 public:
  /// See board_file.
  ledger_board(std::uint64_t id, int num_ranks, int rank,
               const std::string& folder = shared_memory);

  /// Shows these sums from now on.
  void post(const select::ledger_batch& sums);

 private:
  board_file file_;
};

/// A program that keeps ledgers on this host.
struct found_ledgers {
  int num_ranks = 0;                   ///< on all hosts
  std::vector<posted_ledger> ledgers;  ///< by rank, of the ranks on this host
};

struct found_ledger_boards {
  std::vector<found_ledgers> boards;
  std::vector<std::string> skipped;  ///< files that are no boards, with the reason
};

/// The boards of this user's programs. Removes boards that no process uses any more.
found_ledger_boards find_ledger_boards(const std::string& folder = shared_memory);

}  // namespace railpass::internal
