// SPDX-License-Identifier: BSL-1.0
//
// Chooses the versions for calls of function sets on a communicator: for one set, or for all sets
// of a region. This file tells the contexts of calls apart; tuned_contexts.hpp decides for each.
#pragma once

#include "lib/tuner/set_up.hpp"
#include "lib/tuner/tuned_contexts.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/detail/set_call.hpp"
#include "railpass/knowledge/set_kind.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal {

class process;

/// Definition of a set, equal on all ranks of a communicator.
struct set_definition {
  struct version {
    std::string name;
    std::vector<attribute_value> values;
  };
  std::string name;
  std::vector<std::string> attributes;
  std::vector<version> versions;
};

/// Calls with equal contexts share a decision.
struct set_context {
  std::shared_ptr<const set_definition> of;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> features;
  feature_distance distance;
  std::string policy;
  std::vector<std::string> without;  // names of excluded versions
  std::vector<double> lags;          // of versions; empty: all are equal
  int pinned = -1;                   // the version that all calls take; -1: not pinned

  /// Features' distance belongs to the set, not to its calls. Lags and the pinned version do not
  /// distinguish contexts either.
  bool operator==(const set_context& o) const {
    return of == o.of && shape == o.shape && features == o.features && policy == o.policy &&
           without == o.without;
  }
  bool can_take(int version) const {
    return std::ranges::find(without, of->versions[std::size_t(version)].name) == without.end();
  }
};

/// A choice, with the data for recording its time.
struct set_choice {
  select::timed_call call;
  std::int64_t round = 0;
};

class set_decider {
 public:
  /// `subject`: name in records. `region`: the region whose times decide; empty: the calls' times
  /// decide. Local: nothing is decided before begin().
  set_decider(MPI_Comm comm, const settings& values, process& owner, std::string subject,
              std::string region);

  /// Starts deciding. Collective over `comm`; throws error on all ranks.
  void begin(MPI_Comm comm);
  /// begin() in two parts, for an agreement `by` of several ranks that serves more purposes.
  /// make_part() makes what may fail on one rank alone, and throws then. take_resources() makes the
  /// rest after the agreement; collective.
  void make_part();
  std::optional<set_up::refusal> take_resources(set_up& by);

  /// Whether the set is tuned: not if railpass is switched off, the ranks have no lane, or the
  /// communicator or MPI has ended.
  bool tunes() const { return standing_ == select::standing::tuned; }
  /// Whether the communicator or MPI has ended: other ranks can no longer be informed.
  bool has_ended() const { return standing_ == select::standing::ended; }
  /// Only of a set that is tuned or was tuned.
  tuned_contexts& joint() { return *joint_; }
  /// Null for a set that was never tuned.
  const tuned_contexts* contexts() const { return joint_.get(); }
  /// Whether calls of pinned versions are timed; the same on all ranks.
  bool times_pinned() const { return times_pinned_; }

  /// Counts a call, or an entry of a region, before the choice. Throws error if a rank has left.
  void begin_call();
  /// Finds or makes the context, and returns its number. If there are too many contexts: the
  /// nearest context, or -1 if no context is near. All ranks must take part in calls that make a
  /// context. Throws error like begin_call().
  int context_of(const set_context& wanted);
  /// Allocates what context_of() needs, before other ranks may wait for this rank. Local; throws
  /// std::bad_alloc.
  void prepare(const set_context& wanted);
  /// Chooses the version of the context's next call.
  set_choice next_call(int context);
  /// The version to take while another context of the region has its turn.
  int incumbent(int context) const;
  /// Local.
  void record(const set_choice& chosen, double started_s, double ended_s);
  double share(int context, int version) const;

  /// The version that the context has converged to; -1: not converged.
  int settled(int context) const;

  /// A version has thrown an exception on this rank.
  void leave_others();
  /// See joint_lockstep.
  bool conclude() { return !joint_ || joint_->conclude(); }
  void leave();
  bool has_failed() const { return joint_ && joint_->has_failed(); }
  const std::string& communicator() const { return communicator_; }

 private:
  void know_machine();
  context_start start_of(const set_context& c) const;
  std::uint32_t number_of(const set_context& c) const;
  /// Distinguishes contexts of a set in dumps and knowledge.
  knowledge::set_kind kind_of(const set_context& c) const { return {c.shape, c.features, region_}; }
  int nearest_context(const set_context& wanted) const;
  void check() const;
  void take(select::turn what) { standing_ = select::after(standing_, what); }

  process& process_;
  settings settings_;
  std::string subject_, region_, communicator_;
  int rank_ = 0, num_ranks_ = 1;
  select::standing standing_ = select::standing::undecided;
  std::unique_ptr<tuned_contexts> joint_;
  bool times_pinned_ = false;
  std::vector<set_context> contexts_;  // in the lockstep's order
  std::vector<select::context_id> ids_;
  std::optional<set_context> prepared_;
  std::uint32_t prepared_number_ = 0;
  std::int64_t round_ = 0;  // of merges: samples chosen before a merge are not of the next round
};

}  // namespace railpass::internal
