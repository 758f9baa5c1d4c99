// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/communicator/communicator_rails.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/runtime/hang_watch.hpp"
#include "lib/runtime/process.hpp"

#include <exception>
#include <memory>
#include <new>
#include <utility>

namespace railpass::internal {

namespace {

// Other ranks wait for this rank, so it must not throw: without memory, hangs are not reported.
struct waiting_for_others {
  int rank = 0;
  std::string doing;

  waiting_for_others(const char* to_do, MPI_Comm comm) {
    int num_ranks = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &num_ranks);
    try {
      doing = "rank " + std::to_string(rank) + " of " + std::to_string(num_ranks) +
              " waits for the others to " + to_do + " rails of '" + name_of_communicator(comm) +
              "'";
    } catch (const std::bad_alloc&) {
    }
  }
};

void close_of_user(communicator_rails& mine, MPI_Comm comm, process& p) {
  const waiting_for_others waiting("close", comm);
  const hang_watch::wait in_mpi(waiting.rank, waiting.doing.c_str());
  std::exception_ptr problem;
  try {
    mine.of_user.close(p);
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  mine.comm.free();
  if (problem) std::rethrow_exception(problem);
}

int close_attribute(MPI_Comm comm, int, void* value, void*) {
  const std::unique_ptr<communicator_rails> mine(static_cast<communicator_rails*>(value));
  process* const p = process::get();
  if (!p) return MPI_SUCCESS;  // MPI is being finalized, and they ended at its beginning
  mine->of_collectives.leave(*p);
  try {
    close_of_user(*mine, comm, *p);
  } catch (const std::exception& e) {
    p->record(std::string("rails were not closed properly: ") + e.what());
  }
  return MPI_SUCCESS;
}

// The keyval of the attribute.
int rails_key() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_attribute, &made, nullptr);
    return made;
  }();
  return key;
}

// The attribute of `comm`, made if missing. Throws std::bad_alloc.
communicator_rails& attribute_of(MPI_Comm comm) {
  if (communicator_rails* const known = find_rails(comm)) return *known;
  auto made = std::make_unique<communicator_rails>();
  if (PMPI_Comm_set_attr(comm, rails_key(), made.get()) != MPI_SUCCESS) throw std::bad_alloc();
  return *made.release();
}

// Nothing is kept on a communicator without rails.
void drop_if_empty(MPI_Comm comm) {
  const communicator_rails* const mine = find_rails(comm);
  if (mine && !mine->of_user && !mine->of_collectives) PMPI_Comm_delete_attr(comm, rails_key());
}

}  // namespace

communicator_rails* find_rails(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, rails_key(), &value, &found);
  return found ? static_cast<communicator_rails*>(value) : nullptr;
}

process& required_process(const char* call) {
  process* const p = process::get();
  if (!p) throw error(std::string(call) + ": MPI is not initialised, or already finalized");
  return *p;
}

communicator_rails& required_rails(const char* call, MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) throw error(std::string(call) + ": the communicator is MPI_COMM_NULL");
  required_process(call);
  communicator_rails* const found = find_rails(comm);
  if (!found || !found->of_user)
    throw error(std::string(call) +
                ": the communicator has no rails; all its ranks call railpass::mpi::open_rails");
  return *found;
}

void give_tenancy(MPI_Comm comm,
                  const std::function<rail_tenancy(const communicator_rails& mine)>& work) {
  const waiting_for_others waiting("open", comm);
  const hang_watch::wait in_mpi(waiting.rank, waiting.doing.c_str());
  try {
    on_all(comm, [&] { attribute_of(comm); });
    communicator_rails& mine = attribute_of(comm);
    if (const int code = make_private_communicator(comm, mine.comm))
      throw error("no communicator for the rails: MPI error " + std::to_string(code));
    try {
      mine.of_user = work(mine);
    } catch (...) {
      mine.comm.free();
      throw;
    }
  } catch (...) {
    drop_if_empty(comm);
    throw;
  }
}

void end_tenancy(MPI_Comm comm, process& p) {
  std::exception_ptr problem;
  try {
    close_of_user(attribute_of(comm), comm, p);
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  drop_if_empty(comm);
  if (problem) std::rethrow_exception(problem);
}

std::shared_ptr<rail_channel> rails_for_collectives(MPI_Comm comm, process& p, const mpi_tags& over,
                                                    const std::string& rails,
                                                    const std::string& strategy) {
  const double budget_s = p.values().rails_budget;
  const communicator_rails* const known = find_rails(comm);  // on all ranks, or none
  const rail_tenant who{.comm = comm, .of_collectives = &over};
  rail_tenancy found = known && known->of_user ? tenancy_beside(known->of_user, who, p, budget_s)
                                               : tenancy_on(who, p, rails, strategy, budget_s);
  std::shared_ptr<rail_channel> messages = found.messages;
  try {
    on_all(comm, [&] { attribute_of(comm).of_collectives = std::exchange(found, {}); });
  } catch (...) {
    found.leave(p);
    throw;
  }
  return messages;
}

const known_rails& known_rails_of(MPI_Comm comm) {
  return required_rails("known_rails_of", comm).of_user.rails->known;
}

}  // namespace railpass::internal
