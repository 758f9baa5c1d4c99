// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "lib/session/communicator_state.hpp"
#include "railpass/mpi.hpp"

#include <limits>

namespace railpass::mpi {

namespace {

// What the MPI library's own call is to judge, or has nothing to be tuned: wrong arguments, empty
// messages, messages whose length in bytes MPI's int counts cannot express.
bool is_ours(const communicator_state& state, call& c) {
  if (state.native() || c.count <= 0 || c.type == MPI_DATATYPE_NULL || c.root < 0 ||
      c.root >= state.num_ranks())
    return false;
  int size = 0;  // negative if it does not fit
  if (PMPI_Type_size(c.type, &size) != MPI_SUCCESS || size <= 0) return false;
  c.element_bytes = size;
  return c.element_bytes <= std::numeric_limits<int>::max() / c.count;
}

int run(call& c, const call_options& options) {
  communicator_state* const state = communicator_state::of(c.comm);
  if (!state || !is_ours(*state, c)) return run_native(c);
  return state->run(c, options);
}

communicator_state& state_of(MPI_Comm comm, const char* function) {
  communicator_state* const state = communicator_state::of(comm);
  if (!state)
    throw error(std::string("railpass::mpi::") + function +
                ": expected a communicator between MPI_Init and MPI_Finalize");
  return *state;
}

}  // namespace

int broadcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
              const call_options& options) {
  call c{.op = collective::broadcast,
         .receive = buffer,
         .count = count,
         .type = type,
         .root = root,
         .comm = comm};
  return run(c, options);
}

int all_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, const call_options& options) {
  call c{.op = collective::all_reduce,
         .send = send,
         .receive = receive,
         .count = count,
         .type = type,
         .operation = op,
         .comm = comm};
  if (op == MPI_OP_NULL) return run_native(c);
  return run(c, options);
}

void configure(MPI_Comm comm, std::string_view setting, std::string_view value) {
  state_of(comm, "configure").configure(setting, value);
}

int start_tuning(MPI_Comm comm) { return state_of(comm, "start_tuning").start_tuning(comm); }

std::string last_arm(MPI_Comm comm) { return state_of(comm, "last_arm").last_arm(); }

void dump_statistics(const std::string& path) {
  process* const owner = process::get();
  if (!owner) throw error("railpass::mpi::dump_statistics: MPI is not running");
  files::write_text(path, files::to_json(owner->statistics()));
}

}  // namespace railpass::mpi
