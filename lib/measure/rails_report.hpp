// SPDX-License-Identifier: BSL-1.0
//
// The rails between the ranks of a job: which there are, how fast they are, how messages are split,
// and what the rails of programs on this host carry.
#pragma once

#include "lib/measure/interfaces.hpp"
#include "lib/measure/job.hpp"
#include "lib/rails/board.hpp"
#include "lib/rails/communicator/communicator_rails.hpp"
#include "lib/report/output.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace railpass::internal::measure {

/// On rank 0; elsewhere only `known` holds something.
struct rails_report {
  std::vector<judged_interface> interfaces;
  found_boards running;  ///< on rank 0's host
  double looked_at_s = 0;
  std::vector<std::string> names;      ///< of the rails on rank 0
  const known_rails* known = nullptr;  ///< until the rails are closed; null: nothing was opened
  std::string hint;                    ///< if nothing was opened: why
};

/// Opens the rails of MPI_COMM_WORLD and measures them if they are not known. `named_rails`: as
/// RAILPASS_RAILS; empty: what is set, else every network that the hosts have in common. Collective
/// over MPI_COMM_WORLD. Unless `known` is null, the caller closes the rails. Throws error on all
/// ranks.
rails_report examine_rails(const job& j, const std::string& named_rails, double budget_s);

/// `sizes`: of messages, in bytes, whose splits are shown.
void print(const rails_report& r, const std::vector<std::int64_t>& sizes, report::output& out);
std::string to_json(const rails_report& r, const std::vector<std::int64_t>& sizes);

}  // namespace railpass::internal::measure
