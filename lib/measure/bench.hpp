// SPDX-License-Identifier: BSL-1.0
//
// A bench: the contestants of its cells, and the cells one after the other.
#pragma once

#include "collectives/collective.hpp"
#include "lib/measure/bench_cell.hpp"
#include "lib/measure/job.hpp"
#include "models/profile.hpp"
#include "models/samples.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace railpass::internal::measure {

/// The contestants of a cell of whole_message_bytes() (workload.hpp): the MPI library's call, the
/// tuned call, and the arms, in the order of predictions by `knowledge` or, if null, by generic
/// constants. `arms` restricts them ("native", "tuned", names of arms that can run here, "all" for
/// all arms); empty: native, tuned and all arms. With `own` the arms may be
/// "native:ALGORITHM[:SEGMENT]", too. Equal on all ranks if the arguments are equal.
std::vector<contestant> contestants_of(const std::vector<std::string>& arms, collective op,
                                       std::int64_t bytes, const job& j, const profile* knowledge,
                                       const own_algorithms* own = nullptr);

/// The results of a bench on this machine before its first cell: where and when. From now on this
/// process uses and keeps no knowledge. Collective over MPI_COMM_WORLD; throws error on all ranks
/// if the rails that RAILPASS_RAILS names are not there.
bench_results begin_bench(const job& j);

/// Measures the cells in about `budget_s` together, whatever their own budgets are, and adds them
/// to `all`; `finished` gets each one when it is done. Collective over MPI_COMM_WORLD.
void measure_cells(const job& j, std::vector<cell_request> cells, double budget_s,
                   bench_results& all, const progress_report& progress,
                   const std::function<void(const cell_request&, const cell_result&)>& finished);

}  // namespace railpass::internal::measure
