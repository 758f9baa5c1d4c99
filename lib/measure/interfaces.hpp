// SPDX-License-Identifier: BSL-1.0
//
// Which network interfaces the hosts of a job have, and which of them rails may use.
#pragma once

#include "lib/measure/job.hpp"
#include "lib/rails/communicator/communicator_rails.hpp"
#include "lib/rails/tcp/choice.hpp"

#include <string>
#include <vector>

namespace railpass::internal::measure {

struct judged_interface {
  tcp::host_interface what;
  tcp::interface_verdict verdict;
};

/// The interfaces of all hosts, if no rails are named. Collective over MPI_COMM_WORLD; the result
/// is on rank 0, and empty elsewhere.
std::vector<judged_interface> judge_interfaces(const job& j);

/// The networks of the usable ones, as RAILPASS_RAILS names them. For rank 0.
std::string usable_rails(const job& j, const std::vector<judged_interface>& judged);

/// Judges again where rails were named and opened: their interfaces are used, and no others.
void judge_by_names(std::vector<judged_interface>& judged, const std::vector<known_link>& links,
                    const std::string& rails);

}  // namespace railpass::internal::measure
