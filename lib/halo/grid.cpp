// SPDX-License-Identifier: BSL-1.0
#include "lib/call/inside.hpp"
#include "lib/group/hosts.hpp"
#include "lib/group/private_communicator.hpp"
#include "lib/halo/plan.hpp"
#include "lib/runtime/process.hpp"
#include "models/halo.hpp"
#include "railpass/cartesian.hpp"
#include "railpass/knowledge/near.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace railpass::mpi {

using namespace internal;

namespace {

void check(const char* call, int code) {
  if (code != MPI_SUCCESS) throw error(std::string("cartesian: ") + call + " failed");
}

// Why the arguments, which are equal on all ranks, are invalid.
std::string problem_of(std::span<const std::int64_t> global, const std::vector<bool>& periodic,
                       const suggestion_options& options) {
  for (std::size_t k = 0; k < global.size(); ++k)
    if (global[k] < 1)
      return std::to_string(global[k]) + " elements in dimension " + std::to_string(k) +
             "; expected at least 1";
  if (constexpr std::size_t most_dimensions = 8; global.empty() || global.size() > most_dimensions)
    return std::to_string(global.size()) + " dimensions; expected 1 to " +
           std::to_string(most_dimensions);
  if (periodic.size() != global.size())
    return "periodic has " + std::to_string(periodic.size()) + " elements; expected " +
           std::to_string(global.size()) + ", one for each dimension";
  if (options.width < 0) return "width " + std::to_string(options.width) + "; expected 0 or more";
  if (options.element_bytes < 1)
    return "elements of " + std::to_string(options.element_bytes) + " bytes; expected at least 1";
  return {};
}

// The time of the fastest version, here or in earlier runs, for similar messages.
std::optional<measured_exchange> recalled(process& p, const grid_query& q, const process_grid& grid,
                                          const std::string& name, int ranks_per_host) {
  const std::vector<std::int64_t> lengths = message_lengths(q, grid, internal::halo::most_lengths);
  for (const bool in_two_parts : {false, true}) {
    const knowledge::set_kind kind{.shape = {in_two_parts, q.corners}, .features = lengths};
    const knowledge::problem of{.collective = name,
                                .num_ranks = int(q.host_of_rank.size()),
                                .ranks_per_node = ranks_per_host};
    const std::vector<knowledge::neighbour> near = p.recall_near({of, kind, {}});
    std::vector<std::string> versions;
    for (const knowledge::neighbour& n : near)
      for (const knowledge::arm_experience& a : n.known.arms)
        if (std::ranges::find(versions, a.arm) == versions.end()) versions.push_back(a.arm);
    std::vector<select::arm_prior> told =
        select::arms_of_versions(std::vector<std::vector<double>>(versions.size()));
    knowledge::predict_from_near(told, near, [&](int arm) { return versions[std::size_t(arm)]; });
    const auto best = std::ranges::min_element(told, {}, &select::arm_prior::log_seconds);
    if (best != told.end()) return measured_exchange{best->log_seconds, best->spread};
  }
  return std::nullopt;
}

std::vector<int> best_on_first(const std::vector<std::int64_t>& marks,
                               std::span<const std::int64_t> global,
                               const std::vector<bool>& periodic,
                               const suggestion_options& options) {
  machine_model machine = select::generic_machine();
  std::vector<int> host_of_rank(marks.size());
  const std::vector<host_run> runs = find_hosts(marks);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto end = i + 1 < runs.size() ? std::size_t(runs[i + 1].first_rank) : marks.size();
    std::fill(host_of_rank.begin() + runs[i].first_rank, host_of_rank.begin() + std::ptrdiff_t(end),
              runs[i].host);
  }
  std::map<int, int> ranks_on;
  for (const int host : host_of_rank) ++ranks_on[host];
  process* const p = process::get();
  if (p) {
    const std::string& named = p->values().profile;
    if (const profile* known =
            named.empty() ? nullptr : p->read_profile(named, int(ranks_on.size()), ""))
      machine = known->machine;
  }
  grid_query query{.machine = machine,
                   .global = {global.begin(), global.end()},
                   .periodic = periodic,
                   .width = options.width,
                   .element_bytes = double(options.element_bytes),
                   .corners = options.corners,
                   .host_of_rank = host_of_rank};
  judge_ranks(query);
  if (!p) return best_grid(query);
  int most_on_one = 1;
  for (const auto& [host, ranks] : ranks_on) most_on_one = std::max(most_on_one, ranks);
  return best_grid(query, [&](const process_grid& grid) {
    return recalled(*p, query, grid, options.name, most_on_one);
  });
}

}  // namespace

std::vector<int> suggest_grid(MPI_Comm comm, std::span<const std::int64_t> global,
                              const std::vector<bool>& periodic,
                              const suggestion_options& options) {
  const inside guard;
  require_intra_communicator(comm, "cartesian::suggest");
  if (const std::string problem = problem_of(global, periodic, options); !problem.empty())
    throw error("cartesian::suggest: " + problem);
  private_communicator own;
  check("MPI_Comm_create", make_private_communicator(comm, own));
  std::vector<std::int64_t> marks(std::size_t(own.rank == 0 ? own.num_ranks : 0));
  const std::int64_t mark = mark_of_host();
  check("MPI_Gather",
        PMPI_Gather(&mark, 1, MPI_INT64_T, marks.data(), 1, MPI_INT64_T, 0, own.handle));
  std::vector<int> best;
  if (own.rank == 0) best = best_on_first(marks, global, periodic, options);
  best.resize(global.size());  // zeros: none
  check("MPI_Bcast", PMPI_Bcast(best.data(), int(best.size()), MPI_INT, 0, own.handle));
  const int num_ranks = own.num_ranks;
  own.free();
  if (best[0] == 0)
    throw error("cartesian::suggest: however " + std::to_string(num_ranks) +
                " ranks are laid out, some would have less than " +
                std::to_string(std::max<std::int64_t>(1, options.width)) +
                " elements in a dimension");
  return best;
}

process_grid grid_of(MPI_Comm comm, int dimensions) {
  int kind = MPI_UNDEFINED, found = 0;
  if (comm != MPI_COMM_NULL) check("MPI_Topo_test", PMPI_Topo_test(comm, &kind));
  if (kind == MPI_CART) check("MPI_Cartdim_get", PMPI_Cartdim_get(comm, &found));
  if (kind != MPI_CART || found != dimensions)
    throw error("cartesian::of: the communicator has " +
                (kind == MPI_CART ? std::to_string(found) + " dimensions"
                                  : std::string("no Cartesian topology")) +
                "; expected " + std::to_string(dimensions) + " dimensions");
  std::vector<int> shape(std::size_t(dimensions), 1), periods(shape), at(shape);
  check("MPI_Cart_get", PMPI_Cart_get(comm, dimensions, shape.data(), periods.data(), at.data()));
  return {.extents = shape, .periodic = {periods.begin(), periods.end()}};
}

}  // namespace railpass::mpi
