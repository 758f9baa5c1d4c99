// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/communicator/rail_tenancy.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/rails/communicator/rail_sampling.hpp"
#include "lib/runtime/process.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace railpass::internal {

namespace {

// The transport's rank of each rank of `comm`; empty if a rank is missing.
std::vector<int> members_of(MPI_Comm comm, const open_transport& of) {
  MPI_Group mine = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &mine);
  int n = 0;
  PMPI_Group_size(mine, &n);
  std::vector<int> ranks(static_cast<std::size_t>(n)), members(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(mine, n, ranks.data(), of.group(), members.data());
  PMPI_Group_free(&mine);
  if (std::ranges::find(members, MPI_UNDEFINED) != members.end()) members.clear();
  return members;
}

// A channel over rails that are held. Throws std::bad_alloc.
rail_tenancy tenancy_of(const std::shared_ptr<shared_rails>& rails, const rail_tenant& who,
                        std::uint32_t number, std::vector<int> members) {
  return {rails, std::make_shared<rail_channel>(
                     std::shared_ptr<open_transport>(rails, &rails->transport),
                     who.of_collectives ? MPI_COMM_NULL : who.comm, number, std::move(members))};
}

// A tenancy on rails that are already open between all the tenant's ranks. Rank 0 chooses,
// preferring rails between most ranks. All ranks must find and want these rails; otherwise the
// tenancy is empty. Collective.
template <class IsWanted>
rail_tenancy tenancy_on_open_rails(const rail_tenant& who, process& p, const IsWanted& is_wanted) {
  int rank = 0;
  PMPI_Comm_rank(who.comm, &rank);
  rail_tenancy found;
  std::uint64_t offer[2] = {0, 0};  // the transport, the channel
  const auto try_one = [&](const std::shared_ptr<shared_rails>& r) {
    open_transport& t = r->transport;
    if (!is_wanted(*r) || (rank != 0 && t.id() != offer[0])) return false;
    if (!t.hold(rank != 0)) return false;
    try {
      std::vector<int> members = members_of(who.comm, t);
      const auto number = rank == 0 ? t.new_channel() : std::uint32_t(offer[1]);
      if (!members.empty() && number) {
        found = tenancy_of(r, who, *number, std::move(members));
        offer[0] = t.id();
        offer[1] = *number;
        return true;
      }
    } catch (const std::bad_alloc&) {  // as if no rails were open
    }
    t.release();
    return false;
  };
  auto open = p.open_rails();
  std::ranges::stable_sort(open, std::greater{},
                           [](const auto& r) { return r->transport.num_ranks(); });
  const auto try_all = [&] {
    for (const auto& r : open)
      if (try_one(r)) return;
  };
  if (rank == 0) try_all();
  PMPI_Bcast(offer, 2, MPI_UINT64_T, 0, who.comm);
  if (offer[1] == 0) return {};
  if (rank != 0) try_all();
  int all = found ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, who.comm);
  if (all) return found;
  if (found) found.rails->transport.release();
  return {};
}

// Opens the rails for the tenant's ranks. Throws error on all ranks.
rail_tenancy tenancy_on_new_rails(const rail_tenant& who, process& p, const std::string& rails,
                                  const std::string& strategy, double budget_s) {
  mpi_tags own;
  if (!who.of_collectives)
    if (const int code = PMPI_Comm_dup(who.comm, &own.comm))
      throw error("no communicator for the rails: MPI error " + std::to_string(code));
  std::shared_ptr<shared_rails> opened;
  try {
    opened =
        std::make_shared<shared_rails>(who.comm, who.of_collectives ? *who.of_collectives : own,
                                       rails, strategy, p.values().rails_silence);
  } catch (...) {
    if (own.comm != MPI_COMM_NULL) PMPI_Comm_free(&own.comm);
    throw;
  }
  if (const std::string& why = opened->transport.board_problem(); !why.empty())
    p.record("other processes are not shown what the rails carry: " + why);
  // If this fails, the rails have failed, too. Other code may still use the communicator.
  opened->known = learn_rails(opened->transport, who.comm, p,
                              {.budget_s = budget_s, .path = p.values().rails_profile});
  opened->transport.hold(true);
  rail_tenancy found;
  on_all(who.comm, [&] {
    std::vector<int> members(static_cast<std::size_t>(opened->transport.num_ranks()));
    std::iota(members.begin(), members.end(), 0);
    found = tenancy_of(opened, who, open_transport::founding_channel, std::move(members));
    p.add(opened);
  });
  return found;
}

}  // namespace

void rail_tenancy::close(process& p) {
  if (!messages) return;
  const rail_tenancy mine = std::exchange(*this, {});
  std::exception_ptr problem;
  try {
    mine.messages->close();
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  if (mine.rails->transport.closed()) p.remove(mine.rails);
  if (problem) std::rethrow_exception(problem);
}

void rail_tenancy::leave(process& p) {
  if (!messages) return;
  const rail_tenancy mine = std::exchange(*this, {});
  if (mine.messages->leave()) return;
  p.remove(mine.rails);
  mine.rails->transport.end();
}

rail_tenancy tenancy_on(const rail_tenant& who, process& p, const std::string& rails,
                        const std::string& strategy, double budget_s) {
  const auto is_wanted = [&](const shared_rails& r) {
    return r.transport.rails() == rails && r.transport.strategy() == strategy &&
           (budget_s <= 0 || !r.known.links.empty());
  };
  rail_tenancy found = tenancy_on_open_rails(who, p, is_wanted);
  if (!found) found = tenancy_on_new_rails(who, p, rails, strategy, budget_s);
  if (who.of_collectives) found.rails->transport.keep();
  return found;
}

rail_tenancy tenancy_beside(const rail_tenancy& other, const rail_tenant& who, process& p,
                            double budget_s) {
  rail_tenancy found =
      tenancy_on_open_rails(who, p, [&](const shared_rails& r) { return &r == other.rails.get(); });
  const open_transport& t = other.rails->transport;
  if (!found) found = tenancy_on(who, p, t.rails(), t.strategy(), budget_s);
  if (who.of_collectives) found.rails->transport.keep();
  return found;
}

}  // namespace railpass::internal
