// SPDX-License-Identifier: BSL-1.0
#include "lib/session/rail_placement.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/session/process.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace railpass {

namespace {

// What each rank of `comm` is to the transport; empty: not all of them are there.
std::vector<int> members_of(MPI_Comm comm, const open_transport& of) {
  MPI_Group mine = MPI_GROUP_NULL, theirs = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &mine);
  PMPI_Comm_group(of.communicator(), &theirs);
  int n = 0;
  PMPI_Group_size(mine, &n);
  std::vector<int> ranks(static_cast<std::size_t>(n)), members(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(mine, n, ranks.data(), theirs, members.data());
  PMPI_Group_free(&mine);
  PMPI_Group_free(&theirs);
  if (std::ranges::find(members, MPI_UNDEFINED) != members.end()) members.clear();
  return members;
}

// A lane over rails that are held. Throws std::bad_alloc.
rail_place placed(const std::shared_ptr<shared_rails>& rails, const private_communicator& comm,
                  std::uint32_t number, std::vector<int> members) {
  return {rails, std::make_shared<lane>(std::shared_ptr<open_transport>(rails, &rails->transport),
                                        comm.handle, number, std::move(members))};
}

// A place on rails of these names that are open between all ranks of `comm` already. Rank 0 chooses
// those that `is_wanted`, between most ranks first; all have to find them. None if they do not.
// Collective.
template <class IsWanted>
rail_place place_on_open_rails(const private_communicator& comm, process& p,
                               const IsWanted& is_wanted) {
  rail_place found;
  std::uint64_t offer[2] = {0, 0};  // the transport, the lane
  const auto try_one = [&](const std::shared_ptr<shared_rails>& r) {
    open_transport& t = r->transport;
    if (comm.rank == 0 ? !is_wanted(*r) : t.id() != offer[0]) return false;
    if (!t.hold(comm.rank != 0)) return false;
    try {
      std::vector<int> members = members_of(comm.handle, t);
      const auto number = comm.rank == 0 ? t.new_lane() : std::uint32_t(offer[1]);
      if (!members.empty() && number) {
        found = placed(r, comm, *number, std::move(members));
        offer[0] = t.id();
        offer[1] = *number;
        return true;
      }
    } catch (const std::bad_alloc&) {  // as if there were none
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
  if (comm.rank == 0) try_all();
  PMPI_Bcast(offer, 2, MPI_UINT64_T, 0, comm.handle);
  if (offer[1] == 0) return {};
  if (comm.rank != 0) try_all();
  int all = found ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm.handle);
  if (all) return found;
  if (found) found.rails->transport.release();
  return {};
}

// Opens the rails for the ranks of `comm`. Throws error on all ranks alike.
rail_place place_on_new_rails(const private_communicator& comm, process& p,
                              const std::string& rails, const std::string& strategy,
                              double budget_s) {
  MPI_Comm own = MPI_COMM_NULL;
  if (const int code = PMPI_Comm_dup(comm.handle, &own))
    throw error("no communicator for the rails: MPI error " + std::to_string(code));
  std::shared_ptr<shared_rails> opened;
  try {
    opened = std::make_shared<shared_rails>(own, rails, strategy, p.values().rails_silence);
  } catch (...) {
    PMPI_Comm_free(&own);
    throw;
  }
  if (const std::string& why = opened->transport.board_problem(); !why.empty())
    p.record("other processes are not shown what the rails carry: " + why);
  // If that fails, so have the rails, and others may still use the communicator.
  opened->known = learn_rails(opened->transport, comm, p,
                              {.budget_s = budget_s, .path = p.values().rails_profile});
  opened->transport.hold(true);
  rail_place found;
  on_all(comm.handle, [&] {
    std::vector<int> members(static_cast<std::size_t>(comm.num_ranks));
    std::iota(members.begin(), members.end(), 0);
    found = placed(opened, comm, open_transport::founding_lane, std::move(members));
    p.add(opened);
  });
  return found;
}

}  // namespace

void rail_place::close(process& p) {
  if (!messages) return;
  const rail_place mine = std::exchange(*this, {});
  std::exception_ptr problem;
  try {
    mine.messages->close();
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  if (mine.rails->transport.closed()) p.remove(mine.rails);
  if (problem) std::rethrow_exception(problem);
}

rail_place place_on(const private_communicator& comm, process& p, const std::string& rails,
                    const std::string& strategy, double budget_s) {
  const auto is_wanted = [&](const shared_rails& r) {
    return r.transport.rails() == rails && r.transport.strategy() == strategy &&
           (budget_s <= 0 || !r.known.links.empty());
  };
  rail_place found = place_on_open_rails(comm, p, is_wanted);
  if (!found) found = place_on_new_rails(comm, p, rails, strategy, budget_s);
  return found;
}

rail_place place_beside(const rail_place& other, const private_communicator& comm, process& p,
                        double budget_s) {
  rail_place found =
      place_on_open_rails(comm, p, [&](const shared_rails& r) { return &r == other.rails.get(); });
  const open_transport& t = other.rails->transport;
  if (!found) found = place_on(comm, p, t.rails(), t.strategy(), budget_s);
  return found;
}

}  // namespace railpass
