// SPDX-License-Identifier: BSL-1.0
//
// The actions of one thread of a program on its communicators, drawn from a seed. All ranks draw
// the same operations from a shared stream, so the program is right by construction: collectives
// are in one order, and ranks outside a communicator skip its operations.
#pragma once

#include "calls.hpp"
#include "groups.hpp"
#include "random.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace life {

/// A thread of a life. `parent` is the first of its communicators and stays the caller's; no other
/// thread may use it, nor MPI_COMM_SELF where the thread is the first.
class program_thread {
 public:
  /// `num_threads`: of the life. Collective over the parent, and so one thread after the other:
  /// some communicators are made.
  program_thread(std::uint64_t seed, int thread, int num_threads, MPI_Comm parent,
                 const groups& on);
  program_thread(const program_thread&) = delete;
  program_thread& operator=(const program_thread&) = delete;

  /// Collective over the parent. Communicators may be left when it ends, attributes are not, except
  /// those of MPI_COMM_SELF that work in MPI_Finalize.
  void run();

 private:
  static constexpr int num_slots = 7;
  static constexpr int slot_of_self = num_slots - 1;

  /// Nonblocking operations of the program on one communicator.
  struct outstanding {
    std::vector<MPI_Request> requests;
    bool sums = false, has_ring = false;
    int one = 1, sum = 0, root = 0, token = -1, sent = 0;
    std::vector<int> block;
  };

  /// Where a communicator may be. All but `at` and what is in `under_way` is equal on all ranks.
  struct slot {
    bool is_used = false;
    place at;
    bool survives_errors = false;       ///< its error handler is not MPI_ERRORS_ARE_FATAL
    bool has_counted = false;           ///< an attribute whose callbacks count
    bool has_communicating = false;     ///< one whose delete callback makes collectives
    bool copies_communicating = false;  ///< and so does its copy callback
    std::unique_ptr<outstanding> under_way;
  };

  bool is_member(const slot& s) const { return s.at.comm != MPI_COMM_NULL; }
  bool is_permanent(int which) const { return which == 0 || which == slot_of_self; }
  void say(const std::string& text);
  void check(int code, const char* what);
  int draw_used();
  int free_slot() const;

  void burst(slot& s);
  void make_calls(const place& at, call c, int times);
  void begin_operations(slot& s);
  void end_operations(slot& s);
  void make(slot& from, slot& to);
  void begin_idup(slot& from, slot& to);
  void end_idup();
  void free_one(slot& s);
  void free_several();
  void forget(slot& s);
  void change_attribute(slot& s);
  void delete_attributes(slot& s);
  void change_attribute_of_self_alone();
  void work_in_finalize();
  void mistake(slot& s);
  void lone_mistake(slot& s);
  void many();
  void come_and_go(slot& from, slot& to);
  void come_late();
  void end();

  static int copied(MPI_Comm, int, void*, void*, void*, int*);
  static int deleted(MPI_Comm, int, void*, void*);
  static int copied_communicating(MPI_Comm, int, void*, void*, void*, int*);
  static int deleted_communicating(MPI_Comm, int, void*, void*);

  stream shared_, own_;
  const int thread_;
  const bool alone_;
  // Plain Open MPI 4.1 hangs now and then where two threads make communicators at once.
  const bool makes_;
  const groups on_;
  std::array<slot, num_slots> slots_;
  std::vector<call> habits_;
  int counted_ = MPI_KEYVAL_INVALID, communicating_ = MPI_KEYVAL_INVALID,
      copying_ = MPI_KEYVAL_INVALID;
  int alive_ = 0;  ///< attributes that are set or copied and not yet deleted
  std::uint64_t callback_key_ = 0;
  slot* idup_to_ = nullptr;
  slot* idup_from_ = nullptr;
  MPI_Request idup_request_ = MPI_REQUEST_NULL;
};

}  // namespace life
