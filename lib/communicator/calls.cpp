// SPDX-License-Identifier: BSL-1.0
#include "lib/call/arguments.hpp"
#include "lib/call/eligibility.hpp"
#include "lib/call/inside.hpp"
#include "lib/call/own_errors.hpp"
#include "lib/communicator/communicator_state.hpp"
#include "lib/files/files.hpp"
#include "lib/runtime/process.hpp"
#include "lib/tuner/own_time.hpp"
#include "railpass/mpi.hpp"

#include <new>
#include <string>

namespace railpass::internal {

constinit thread_local thread_block of_thread;

namespace {

// `run` and `leave` get the communicator's state, or null. An exception on this rank is this rank's
// failure, of which the other ranks are informed. `of_errors`: the code for railpass::error.
template <class Call, class Run, class Leave>
[[gnu::always_inline]] inline int run_on(const Call& c, own_error of_errors, const Run& run,
                                         const Leave& leave) {
  communicator_state* state = nullptr;
  int code = MPI_ERR_NO_MEM;
  std::string reason;
  try {
    int invalid = MPI_SUCCESS;
    state = communicator_state::of(c.comm, invalid);
    return invalid == MPI_SUCCESS ? run(state) : invalid;
  } catch (const std::bad_alloc&) {
    reason = "out of memory";  // short enough to need no memory itself
  } catch (const error& problem) {
    code = code_of(of_errors);
    reason = problem.what();
  }
  if (state) leave(*state);
  if (process* const owner = process::get()) owner->complain(c.comm, name_of(c.op), reason);
  call_error_handler(c.comm, code);
  return code;
}

}  // namespace

[[gnu::hot]] int run_call(call& c, const call_options& options) {
  const inside here;
  const overhead_timing own_part;
  return run_on(
      c, own_error::internal,
      [&](communicator_state* state) {
        if (!state || state->native()) return run_native(c);
        if (recent_call* const known = state->recent(c, options))
          return state->run_again(c, *known);
        return classify(c, state->rank(), state->num_ranks()) == eligibility::eligible
                   ? state->run(c, options)
                   : run_native(c);
      },
      [](communicator_state& state) { state.leave_others(); });
}

// An error says that another rank has left.
[[gnu::hot]] int run_call(neighbor_call& c) {
  const inside here;
  return run_on(
      c, own_error::rank_failed,
      [&](communicator_state* state) {
        return state && !state->native() ? state->run(c) : run_native(c);
      },
      [&](communicator_state& state) { state.leave_others(c.op); });
}

}  // namespace railpass::internal

namespace railpass::mpi {

using namespace internal;

namespace {

int run(call c, const call_options& options) { return run_call(c, options); }
int run(neighbor_call c) { return run_call(c); }

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

int neighbor_all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return run(arguments_of::neighbor_all_to_all(send, send_count, send_type, receive, receive_count,
                                               receive_type, comm));
}

int neighbor_all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                         MPI_Datatype send_type, void* receive, const int* receive_counts,
                         const int* receive_displacements, MPI_Datatype receive_type,
                         MPI_Comm comm) {
  return run(arguments_of::neighbor_all_to_allv(send, send_counts, send_displacements, send_type,
                                                receive, receive_counts, receive_displacements,
                                                receive_type, comm));
}

int neighbor_all_to_allw(const void* send, const int* send_counts,
                         const MPI_Aint* send_displacements, const MPI_Datatype* send_types,
                         void* receive, const int* receive_counts,
                         const MPI_Aint* receive_displacements, const MPI_Datatype* receive_types,
                         MPI_Comm comm) {
  return run(arguments_of::neighbor_all_to_allw(send, send_counts, send_displacements, send_types,
                                                receive, receive_counts, receive_displacements,
                                                receive_types, comm));
}

int neighbor_all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return run(arguments_of::neighbor_all_gather(send, send_count, send_type, receive, receive_count,
                                               receive_type, comm));
}

int neighbor_all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                         const int* receive_counts, const int* displacements,
                         MPI_Datatype receive_type, MPI_Comm comm) {
  return run(arguments_of::neighbor_all_gatherv(send, send_count, send_type, receive,
                                                receive_counts, displacements, receive_type, comm));
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

}  // namespace railpass::mpi
