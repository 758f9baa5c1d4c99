// SPDX-License-Identifier: BSL-1.0
//
// The function sets and regions of a communicator. They hang on it, so that requests to a set of
// the same name share it, and what was learnt is there when MPI ends.
#pragma once

#include "lib/session/set_decider.hpp"
#include "railpass/region.hpp"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace railpass {
class communicator_state;
}

namespace railpass::detail {

class tuned_set {
 public:
  /// Collective over `comm`; throws error on all ranks alike.
  tuned_set(MPI_Comm comm, const settings& values, process& owner, std::string name,
            std::vector<std::string> attributes);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& attributes() const { return attributes_; }
  /// Null before the first call.
  const std::shared_ptr<const set_definition>& definition() const { return definition_; }
  /// The versions, which all ranks have alike. Throws error if the set has others already.
  void define(std::vector<set_definition::version> versions);
  /// The version that settings ask for; -1: what is learnt decides.
  int pinned() const { return pinned_; }

  set_decider& decider() { return decider_; }
  const set_decider& decider() const { return decider_; }
  /// The communicator or MPI has ended: no rank can be told anything.
  bool has_left() const { return left_; }
  void leave();

 private:
  process& process_;
  std::string name_;
  std::vector<std::string> attributes_;
  std::string use_;  // the setting
  bool reproducible_;
  std::shared_ptr<const set_definition> definition_;
  int pinned_ = -1;
  set_decider decider_;
  bool left_ = false;
};

/// A stretch of code whose time teaches its sets. In each entry one of them has its turn: it may
/// try a version, and what the entry takes is told to it; the others take what is in use. So what
/// it costs to learn is the sum over the sets, not their product.
class region_state {
 public:
  /// Collective over `comm`; throws error on all ranks alike.
  region_state(MPI_Comm comm, const settings& values, process& owner, std::string name);

  const std::string& name() const { return name_; }
  /// Whether its ranks are those of `comm`, in whatever order.
  bool has_ranks_of(MPI_Comm comm) const;

  /// Throws error if a rank has left.
  void enter();
  /// `counts`: the entry ended as usual.
  void exit(bool counts);
  /// The version of this entry's calls.
  int choose(int context);

  set_decider& decider() { return decider_; }
  const set_decider& decider() const { return decider_; }
  void leave();

 private:
  // So many entries in a row, as what one leaves to be done is in the next one's time.
  static constexpr std::int64_t turn_entries = 8;

  void give_turn();

  process& process_;
  MPI_Comm comm_;
  std::string name_;
  set_decider decider_;
  bool left_ = false;
  int depth_ = 0;  // it may be entered within itself: the outermost entry counts
  std::int64_t entries_ = 0;
  double started_s_ = 0;
  std::vector<std::int64_t> called_in_;  // entry, by context
  int turn_ = 0;                         // context
  std::optional<set_choice> choice_;     // of the one that has its turn, in this entry
};

/// Of a communicator.
struct function_sets {
  std::vector<std::shared_ptr<tuned_set>> sets;
  std::vector<std::shared_ptr<region_state>> regions;

  void leave();
  /// After leave(): nothing is asked of them any more.
  void drop();
  void add_statistics(select::statistics_dump& dump) const;
  /// Of contexts that say something of this problem.
  void add_contexts_like(const knowledge::problem& of, select::statistics_dump& dump) const;
  /// Of contexts of near features; see knowledge::near().
  void add_contexts_near(const knowledge::problem& of, const feature_distance& by,
                         select::statistics_dump& dump) const;
};

/// The state of a communicator that can have sets and regions; throws error, which begins with
/// `subject`, if it cannot.
communicator_state& state_of(MPI_Comm comm, const std::string& subject);

/// What is wrong with the name of a set, a version, an attribute or a region; empty: nothing is.
std::string problem_of_name(const std::string& what, const std::string& name,
                            std::size_t longest = 60);

}  // namespace railpass::detail
