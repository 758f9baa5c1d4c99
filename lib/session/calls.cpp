// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "lib/session/arguments.hpp"
#include "lib/session/communicator_state.hpp"
#include "lib/session/inside.hpp"
#include "railpass/mpi.hpp"

#include <limits>
#include <new>

namespace railpass {

namespace {

// The product of what is not negative; otherwise, or if it is too large, something negative.
std::int64_t times(std::int64_t count, std::int64_t bytes) {
  std::int64_t product = 0;
  return count < 0 || bytes < 0 || __builtin_mul_overflow(count, bytes, &product) ? -1 : product;
}

// Packed bytes of `count` elements; negative: no valid arguments.
std::int64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS) return -1;
  return times(count, size);
}

// Far beyond any memory, and sums of such lengths still fit.
std::int64_t within_limit(std::int64_t bytes) {
  return bytes <= std::int64_t{1} << 60 ? bytes : -1;
}

// Whether arguments of which every rank has others of its own are worth a look.
bool is_valid(const call_side& side, int num_ranks) {
  if (!side.counts) return bytes_of(side.count, side.type) >= 0;
  if (!side.displacements || (!side.types && bytes_of(0, side.type) < 0)) return false;
  for (int i = 0; i < num_ranks; ++i)
    if (side.counts[i] < 0 || (side.types && bytes_of(side.counts[i], side.types[i]) < 0))
      return false;
  return true;
}

}  // namespace

std::int64_t message_bytes_of(const call& c, int rank, int num_ranks) {
  const collective_traits& d = describe(c.op);
  const bool at_root = c.root == rank;
  switch (d.lengths) {
    case block_lengths::of_pair: {
      const bool sends = d.what != promise::root_to_blocks || at_root;
      const bool receives = d.what != promise::blocks_to_root || at_root;
      // Every rank is in place or none is: so all take the MPI library's.
      if (d.what == promise::blocks_to_blocks && c.send.in_place()) return -1;
      return (sends && !c.send.in_place() && !is_valid(c.send, num_ranks)) ||
                     (receives && !c.receive.in_place() && !is_valid(c.receive, num_ranks))
                 ? -1
                 : 0;
    }
    case block_lengths::known: {
      if (!c.receive.counts || (!c.is_reduction() && !c.receive.displacements)) return -1;
      std::int64_t sum = 0;
      for (int i = 0; i < num_ranks; ++i) {
        const std::int64_t count = c.receive.counts[i];
        if (count < 0 || __builtin_add_overflow(sum, count, &sum)) return -1;
      }
      return within_limit(bytes_of(sum, c.receive.type));
    }
    case block_lengths::equal:
      break;
  }
  if (d.what == promise::all_arrive) return num_ranks;
  const call_side& side =
      (d.what == promise::blocks_to_root || d.what == promise::root_to_blocks) &&
              (d.what == promise::root_to_blocks) == at_root
          ? c.send
          : c.receive;
  // MPI has been asked for a reduction's type before (is_ours).
  const std::int64_t bytes =
      c.element_bytes > 0 ? times(side.count, c.element_bytes) : bytes_of(side.count, side.type);
  return within_limit(c.traits().blocks ? times(num_ranks, bytes) : bytes);
}

namespace {

// What the MPI library's own call is to judge, or has nothing to be tuned: wrong arguments, empty
// messages.
bool is_ours(const communicator_state& state, call& c) {
  if (state.native() || c.root < 0 || c.root >= state.num_ranks()) return false;
  if (c.is_reduction()) {
    if (c.operation == MPI_OP_NULL) return false;
    c.element_bytes = bytes_of(1, c.receive.type);
    if (c.element_bytes <= 0) return false;
  }
  c.message_bytes = message_bytes_of(c, state.rank(), state.num_ranks());
  return c.message_bytes > 0 ||
         (c.message_bytes == 0 && describe(c.op).lengths == block_lengths::of_pair);
}

}  // namespace

constinit thread_local int detail::inside_depth = 0;

int run_call(call& c, const call_options& options) {
  const inside here;
  communicator_state* state = nullptr;
  int code = MPI_ERR_NO_MEM;
  try {
    int invalid = MPI_SUCCESS;
    state = communicator_state::of(c.comm, invalid);
    if (invalid != MPI_SUCCESS) return invalid;
    if (!state || !is_ours(*state, c)) return run_native(c);
    return state->run(c, options);
  } catch (const std::bad_alloc&) {
  } catch (const error& problem) {
    code = MPI_ERR_INTERN;
    if (process* const owner = process::get()) owner->record(problem.what());
  }
  if (state) state->stay_native();
  PMPI_Comm_call_errhandler(c.comm, code);
  return code;
}

namespace mpi {

namespace {

int run(call c, const call_options& options) { return run_call(c, options); }

communicator_state& state_of(MPI_Comm comm, const char* function) {
  int code = MPI_SUCCESS;
  communicator_state* const state = communicator_state::of(comm, code);
  if (!state)
    throw error(std::string("railpass::mpi::") + function +
                ": expected a communicator between MPI_Init and MPI_Finalize");
  return *state;
}

}  // namespace

int broadcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
              const call_options& options) {
  return run(arguments_of::broadcast(buffer, count, type, root, comm), options);
}

int all_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, const call_options& options) {
  return run(arguments_of::all_reduce(send, receive, count, type, op, comm), options);
}

int reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm, const call_options& options) {
  return run(arguments_of::reduce(send, receive, count, type, op, root, comm), options);
}

int reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, const call_options& options) {
  return run(arguments_of::reduce_scatter(send, receive, counts, type, op, comm), options);
}

int reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, const call_options& options) {
  return run(arguments_of::reduce_scatter_block(send, receive, count, type, op, comm), options);
}

int gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
           int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
           const call_options& options) {
  return run(arguments_of::gather(send, send_count, send_type, receive, receive_count, receive_type,
                                  root, comm),
             options);
}

int gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
            const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
            int root, MPI_Comm comm, const call_options& options) {
  return run(arguments_of::gatherv(send, send_count, send_type, receive, receive_counts,
                                   displacements, receive_type, root, comm),
             options);
}

int scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
            int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
            const call_options& options) {
  return run(arguments_of::scatter(send, send_count, send_type, receive, receive_count,
                                   receive_type, root, comm),
             options);
}

int scatterv(const void* send, const int* send_counts, const int* displacements,
             MPI_Datatype send_type, void* receive, int receive_count, MPI_Datatype receive_type,
             int root, MPI_Comm comm, const call_options& options) {
  return run(arguments_of::scatterv(send, send_counts, displacements, send_type, receive,
                                    receive_count, receive_type, root, comm),
             options);
}

int all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
               const call_options& options) {
  return run(arguments_of::all_gather(send, send_count, send_type, receive, receive_count,
                                      receive_type, comm),
             options);
}

int all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
                MPI_Comm comm, const call_options& options) {
  return run(arguments_of::all_gatherv(send, send_count, send_type, receive, receive_counts,
                                       displacements, receive_type, comm),
             options);
}

int all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
               const call_options& options) {
  return run(arguments_of::all_to_all(send, send_count, send_type, receive, receive_count,
                                      receive_type, comm),
             options);
}

int all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                MPI_Datatype send_type, void* receive, const int* receive_counts,
                const int* receive_displacements, MPI_Datatype receive_type, MPI_Comm comm,
                const call_options& options) {
  return run(arguments_of::all_to_allv(send, send_counts, send_displacements, send_type, receive,
                                       receive_counts, receive_displacements, receive_type, comm),
             options);
}

int all_to_allw(const void* send, const int* send_counts, const int* send_displacements,
                const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                const int* receive_displacements, const MPI_Datatype* receive_types, MPI_Comm comm,
                const call_options& options) {
  return run(arguments_of::all_to_allw(send, send_counts, send_displacements, send_types, receive,
                                       receive_counts, receive_displacements, receive_types, comm),
             options);
}

int scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
         const call_options& options) {
  return run(arguments_of::scan(send, receive, count, type, op, comm), options);
}

int exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
           const call_options& options) {
  return run(arguments_of::exscan(send, receive, count, type, op, comm), options);
}

int barrier(MPI_Comm comm, const call_options& options) {
  return run(arguments_of::barrier(comm), options);
}

void configure(MPI_Comm comm, std::string_view setting, std::string_view value) {
  state_of(comm, "configure").configure(setting, value);
}

int start_tuning(MPI_Comm comm) {
  const inside here;
  return state_of(comm, "start_tuning").start_tuning(comm);
}

std::string last_arm(MPI_Comm comm) { return state_of(comm, "last_arm").last_arm(); }

void dump_statistics(const std::string& path) {
  process* const owner = process::get();
  if (!owner) throw error("railpass::mpi::dump_statistics: MPI is not running");
  files::write_text(path, files::to_json(owner->statistics()));
}

}  // namespace mpi
}  // namespace railpass
