// SPDX-License-Identifier: BSL-1.0
//
// A neighbourhood collective on one communicator, as a function set with the versions in
// neighbor_versions.hpp. Unlike a program's set, it starts by itself in a call when tuning pays.
// All calls on the communicator are one context, because only some ranks know counts and datatypes.
#pragma once

#include "lib/call/neighbor_call.hpp"
#include "lib/call/neighbors.hpp"
#include "railpass/select/lockstep/beginning.hpp"

#include <memory>

namespace railpass::internal {

struct function_sets;

class neighbor_set {
 public:
  neighbor_set();
  neighbor_set(const neighbor_set&) = delete;
  neighbor_set& operator=(const neighbor_set&) = delete;
  ~neighbor_set();

  /// Runs a call on the communicator that has these sets, and that is not native permanently.
  /// Returns an MPI error code after the error handler has been called; throws std::bad_alloc,
  /// error.
  int run(const neighbor_call& c, function_sets& all);
  /// After a failure on this rank in a call.
  void leave_others();
  /// Call after the communicator has left.
  void drop();

 private:
  class tuned;

  enum class phase { unseen, counting, native, tuned };
  void look(MPI_Comm comm);
  int agree(const neighbor_call& c, function_sets& all, bool pays);

  phase phase_ = phase::unseen;
  std::unique_ptr<neighbors> around_;  // null: no memory; the ranks will then agree on native
  select::beginning beginning_;
  std::unique_ptr<tuned> tuned_;
};

}  // namespace railpass::internal
