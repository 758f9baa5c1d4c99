// SPDX-License-Identifier: BSL-1.0
#include "lib/session/communicator_rails.hpp"

#include "lib/session/process.hpp"

#include <exception>
#include <utility>

namespace railpass {

namespace {

int close_attribute(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<communicator_rails> mine(static_cast<communicator_rails*>(value));
  process* const p = process::get();
  if (!p) return MPI_SUCCESS;  // MPI is being finalized, and they were closed at its beginning
  for (rail_place* const one : {&mine->of_user, &mine->of_collectives}) try {
      one->close(*p);
    } catch (const std::exception& e) {
      p->record(std::string("rails were not closed properly: ") + e.what());
    }
  mine->comm.free();
  return MPI_SUCCESS;
}

// The attribute of `comm`, made if there is none. Collective; throws error on all ranks alike.
communicator_rails& attribute_of(MPI_Comm comm, process& p) {
  if (communicator_rails* const known = find_rails(comm, p)) return *known;
  auto made = std::make_unique<communicator_rails>();
  if (const int code = make_private_communicator(comm, made->comm))
    throw error("no communicator for the rails: MPI error " + std::to_string(code));
  PMPI_Comm_set_attr(comm, p.rails_key(), made.get());
  return *made.release();
}

}  // namespace

communicator_rails* find_rails(MPI_Comm comm, const process& p) {
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, p.rails_key(), &value, &found);
  return found ? static_cast<communicator_rails*>(value) : nullptr;
}

process& required_process(const char* call) {
  process* const p = process::get();
  if (!p) throw error(std::string(call) + ": MPI is not initialised, or already finalized");
  return *p;
}

communicator_rails& required_rails(const char* call, MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) throw error(std::string(call) + ": the communicator is MPI_COMM_NULL");
  communicator_rails* const found = find_rails(comm, required_process(call));
  if (!found || !found->of_user)
    throw error(std::string(call) +
                ": the communicator has no rails; all its ranks call railpass::mpi::open_rails");
  return *found;
}

void drop_if_empty(MPI_Comm comm, const communicator_rails& mine, const process& p) {
  if (!mine.of_user && !mine.of_collectives) PMPI_Comm_delete_attr(comm, p.rails_key());
}

rail_place& give_place(MPI_Comm comm, process& p, rail_place communicator_rails::*which,
                       const std::function<rail_place(const communicator_rails& mine)>& work) {
  communicator_rails& mine = attribute_of(comm, p);
  try {
    mine.*which = work(mine);
  } catch (...) {
    drop_if_empty(comm, mine, p);
    throw;
  }
  return mine.*which;
}

std::shared_ptr<lane> rails_for_collectives(MPI_Comm comm, process& p, const std::string& rails,
                                            const std::string& strategy) {
  if (const communicator_rails* const known = find_rails(comm, p); known && known->of_collectives)
    return known->of_collectives.messages;
  const double budget_s = p.values().rails_budget;
  return give_place(comm, p, &communicator_rails::of_collectives,
                    [&](const communicator_rails& mine) {
                      return mine.of_user ? place_beside(mine.of_user, mine.comm, p, budget_s)
                                          : place_on(mine.comm, p, rails, strategy, budget_s);
                    })
      .messages;
}

const known_rails& known_rails_of(MPI_Comm comm) {
  return required_rails("known_rails_of", comm).of_user.rails->known;
}

int create_rails_key(int* key) {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_attribute, key, nullptr);
}

}  // namespace railpass
