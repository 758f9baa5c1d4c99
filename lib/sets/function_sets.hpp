// SPDX-License-Identifier: BSL-1.0
//
// The function sets and regions of a communicator. They belong to the communicator, so that
// requests with the same set name share a set, and results are available when MPI ends.
#pragma once

#include "lib/sets/set_decider.hpp"
#include "railpass/region.hpp"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal {

using railpass::detail::set_call, railpass::detail::set_request;

struct function_sets;
class region_state;

class tuned_set {
 public:
  /// Local. Its decider must begin before the first call.
  tuned_set(MPI_Comm comm, const settings& values, process& owner, std::string name,
            std::vector<std::string> attributes);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& attributes() const { return attributes_; }
  /// Null before the first call.
  const std::shared_ptr<const set_definition>& definition() const { return definition_; }
  /// The versions, equal on all ranks. Throws error if the set already has different versions.
  void define(std::vector<set_definition::version> versions);
  /// The version that settings name; -1: learning decides.
  int pinned() const { return pinned_; }

  set_decider& decider() { return decider_; }
  const set_decider& decider() const { return decider_; }

 private:
  process& process_;
  std::string name_;
  std::vector<std::string> attributes_;
  std::string use_;  // the setting
  bool reproducible_;
  std::shared_ptr<const set_definition> definition_;
  int pinned_ = -1;
  set_decider decider_;
};

/// Implementation of set_request.
class request_state {
 public:
  /// Finds or makes the set among those of `comm`. Collective; throws error on all ranks.
  request_state(function_sets& all, std::string name, MPI_Comm comm,
                std::vector<std::string> attributes, const function_set_options& options);
  /// For a set that is defined and has begun, and that all ranks know to be the same: compares
  /// nothing. Local.
  request_state(std::shared_ptr<tuned_set> set, MPI_Comm comm, bool verifies, set_context calls);

  void add(std::string version, std::vector<attribute_value> values, double lag);
  const std::vector<std::string>& attributes() const { return set_->attributes(); }
  std::string winner() const;
  std::string last() const { return last_ < 0 ? "" : name_of(last_); }
  bool verifies() const { return verifies_; }
  /// The context of the calls. May be changed before the first call, equally on all ranks.
  set_context& calls() { return context_; }
  /// Pins the version that settings name. If these calls cannot take that version: the first
  /// version, with a warning. Call before the first call.
  void pin();
  void note_unverified();
  void settle_results(std::size_t version, const std::string& problem);

  void begin(set_call& c);
  void end(const set_call& c, bool threw);
  /// This rank's part of a call has failed: see joint_lockstep::fail.
  void fail();
  /// This rank makes no further call, as if a version had thrown an exception.
  void leave_others();

 private:
  std::string problem_of_versions() const;
  void define();
  template <class Owner>
  void decided(const std::shared_ptr<Owner>& owner, const set_decider& by, int context);
  const std::string& name_of(int version) const {
    return set_->definition()->versions[std::size_t(version)].name;
  }
  bool is_taught_by_region();
  void trace(const set_call& c, double seconds) const;

  MPI_Comm comm_;
  process& process_;
  bool verifies_;
  std::shared_ptr<tuned_set> set_;
  std::vector<set_definition::version> versions_;  // until the first call
  set_context context_;                            // of its calls
  int last_ = -1;                                  // version
  int own_context_ = -1;                           // in the set's decider
  // The last region met, whether it decides for this request, and the context there.
  std::shared_ptr<region_state> met_;
  bool met_teaches_ = false;
  int met_context_ = -1;
  // The last decider and its context; null: settings decided.
  std::shared_ptr<const set_decider> decided_;
  int decided_in_ = -1;
  std::int64_t calls_ = 0;
};

/// A stretch of code whose total time decides for its sets. In each entry, one set has its turn: it
/// may try a version and receives the time of the entry. Other sets use their incumbents. So the
/// cost of learning is the sum over the sets, not the product.
class region_state {
 public:
  /// Local. Its decider must begin before the region is entered.
  region_state(MPI_Comm comm, const settings& values, process& owner, std::string name);

  const std::string& name() const { return name_; }
  /// Whether the region has the ranks of `comm`, in any order.
  bool has_ranks_of(MPI_Comm comm) const;

  /// Throws error if a rank has left.
  void enter();
  /// `counts`: the entry ended normally.
  void exit(bool counts);
  /// The version of this entry's calls.
  int choose(int context);

  set_decider& decider() { return decider_; }
  const set_decider& decider() const { return decider_; }

 private:
  // Entries per turn: work left by one entry shows in the time of the next entry.
  static constexpr std::int64_t turn_entries = 8;

  void give_turn();

  process& process_;
  MPI_Comm comm_;
  std::string name_;
  set_decider decider_;
  int depth_ = 0;  // of nested entries: only the outermost entry counts
  std::int64_t entries_ = 0;
  double started_s_ = 0;
  std::vector<std::int64_t> called_in_;  // entry, by context
  int turn_ = 0;                         // context
  std::optional<set_choice> choice_;     // of the context that has its turn, in this entry
};

/// The function sets and regions of one communicator.
struct function_sets {
  const settings& values;  ///< of the communicator
  std::vector<std::shared_ptr<tuned_set>> sets;
  std::vector<std::shared_ptr<region_state>> regions;

  /// Finds or makes a region of `comm`. Collective; throws error on all ranks, whose message begins
  /// with `subject`.
  std::shared_ptr<region_state> region_named(std::string name, MPI_Comm comm,
                                             const std::string& subject);
  /// See known_communicator.
  bool conclude();
  void leave();
  /// After leave(): no set or region is used any more.
  void drop();
  /// Calls `visit` with the contexts of each set and region that is tuned.
  template <class Visit>
  void for_each_tuning(const Visit& visit) const {
    const auto visit_all = [&](const auto& all) {
      for (const auto& one : all)
        if (const tuned_contexts* const contexts = one->decider().contexts()) visit(*contexts);
    };
    visit_all(sets);
    visit_all(regions);
  }
};

/// A set's name in messages.
std::string set_named(const std::string& name);

/// Why the name of a set, a version, an attribute or a region is invalid; empty: valid.
std::string problem_of_name(const std::string& what, const std::string& name,
                            std::size_t longest = 60);

}  // namespace railpass::internal
