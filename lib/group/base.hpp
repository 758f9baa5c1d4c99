// SPDX-License-Identifier: BSL-1.0
//
// Bases: the few internal communicators that carry railpass' messages for many user communicators.
// The first tuned communicator of a set of ranks gets a base of exactly these ranks. Later
// communicators whose ranks are all in a base become numbered lanes of that base, which costs MPI
// nothing. The number of a lane determines the tags of its messages. Which lanes and slots are
// free: resource_book.hpp.
#pragma once

#include "lib/call/announced_call.hpp"
#include "lib/exec/execution.hpp"
#include "lib/group/hosts.hpp"
#include "lib/group/known_placements.hpp"
#include "lib/group/node_memory.hpp"
#include "lib/group/resource_book.hpp"
#include "lib/group/shared_clock.hpp"
#include "lib/group/slot_tenants.hpp"
#include "lib/rails/mpi/rank_map.hpp"
#include "lib/rails/mpi/tags.hpp"

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal {

class merge_messages;

/// An internal communicator. Never freed, because freeing would be collective.
struct base {
  /// MPI guarantees tags up to 32767.
  static constexpr int num_lanes = resource_book::num_lanes, tags_per_lane = 32;
  /// Messages of leaders (leaders.hpp), ledgers (host_ledger.hpp) and probes of links
  /// (link_probe.hpp) use the last lane, which no communicator gets.
  static constexpr int told_tag = (num_lanes - 1) * tags_per_lane, ledger_tag = told_tag + 1,
                       link_tag = told_tag + 2;

  MPI_Comm comm = MPI_COMM_NULL;  ///< returns errors
  MPI_Group group = MPI_GROUP_NULL;
  std::uint64_t id = 0;  ///< equal on its ranks, and unique among their bases; not 0
  std::shared_ptr<const placement> hosts;
  /// Caches on this rank's host, by local rank; see find_caches.
  std::vector<std::int32_t> cache_of_local_rank;
  std::unique_ptr<node_memory> shared;  ///< on all ranks or on no rank
  std::unique_ptr<shared_clock> clock;  ///< on all ranks, or null: equal or unknown clocks

  /// The ranks on the host of rank `rank` need not share cores.
  bool has_core_per_rank(std::int32_t rank) const {
    return shared ? shared->has_core_per_rank() : hosts->ranks_on(hosts->node_of(rank)) == 1;
  }
};

/// A communicator's ranks in a base that has all its ranks.
struct base_mapping {
  base* of = nullptr;  ///< null: no base
  rank_map ranks;      ///< ranks in the base, by rank in the communicator
  int rank = 0;        ///< in the communicator, like the next member
  int num_ranks = 1;
};

/// A communicator's lane. Its number becomes free once the last owner is gone.
class base_lane {
 public:
  /// Tags within a lane, in order: schedules (from 0 on), first plans, merges, fallbacks, rails
  /// opened for the lane (mpi_tags), and failures of this rank.
  static constexpr int plan_tag = num_schedule_tags, first_merge_tag = plan_tag + 1;
  static constexpr int failure_tag = base::tags_per_lane - 1;
  static constexpr int first_rails_tag = failure_tag - mpi_tags::num_tags;
  static constexpr int fallback_tag = first_rails_tag - 1;

  base_lane() = default;
  ~base_lane();
  base_lane(const base_lane&) = delete;
  base_lane& operator=(const base_lane&) = delete;

  /// Call once, before all other functions: becomes lane `number`, which has been taken, for the
  /// communicator `name` (see agreement). Allocates nothing.
  void become(base_mapping mapping, int number, std::uint64_t name) {
    mapping_ = std::move(mapping);
    number_ = number;
    name_ = {std::int32_t(name >> 32), std::int32_t(name & 0xffffffff)};
  }

  int rank() const { return mapping_.rank; }
  int num_ranks() const { return mapping_.num_ranks; }
  const base& of() const { return *mapping_.of; }
  const rank_map& ranks() const { return mapping_.ranks; }
  /// The ranks on this rank's host need not share cores.
  bool has_core_per_rank() const { return of().has_core_per_rank(ranks()[rank()]); }
  int number() const { return number_; }
  int first_tag() const { return number_ * base::tags_per_lane; }

  /// Like MPI's functions, between ranks of the communicator.
  int isend(const std::int32_t* words, int count, int to, int tag, MPI_Request* request) const;
  int irecv(std::int32_t* words, int count, int from, int tag, MPI_Request* request) const;

  /// After a failure, messages may remain unreceived, so the number is never used again.
  void lose() { lost_ = true; }

  /// Informs all other ranks, and waits for no rank.
  enum class trouble : std::int32_t { none, failed, unlike, gone };
  void tell_all(trouble what) const;
  /// Informs rank `to` that this rank waits for it in the call `in`.
  void announce(const told_call& in, int to);

  /// Messages from other ranks; mostly empty. Local.
  struct news {
    trouble worst = trouble::none;
    bool unlike = false;  ///< possibly among other problems
    std::int32_t announcer = 0;
    std::optional<told_call> announced{};  ///< more announcements may follow
  };
  news look() const;

 private:
  base_mapping mapping_;
  int number_ = 0;
  bool lost_ = false;
  std::array<std::int32_t, 2> name_{};
  // A call and the communicator's name. No rank has to receive an announcement, so the next
  // communicator of the lane may receive it.
  static constexpr std::size_t call_words = std::tuple_size_v<told_call::words>;
  using announcement = std::array<std::int32_t, call_words + 2>;
  announcement announced_{};  // must stay until MPI has taken it
};

/// All bases of this process. Several threads may call at the same time.
class bases {
 public:
  /// The limit protects MPI's communicators, which belong to the program.
  static constexpr std::size_t most = 32;

  /// The base for the caller. If there are several: the same base on all ranks of `user`, and a
  /// base that shares memory if possible. Local; throws std::bad_alloc.
  base_mapping find(MPI_Comm user);
  bool may_make_one();
  /// Whether all ranks are in MPI_COMM_WORLD. Other ranks may leave and end MPI before this process
  /// does, and no communicator may then be left between these ranks. Local; throws std::bad_alloc.
  static bool is_one_world(MPI_Comm user);
  /// From now on, no base is made inside a collective, because the program makes communicators
  /// there in a way that MPI libraries cannot handle.
  void make_none_inside() { none_inside_ = true; }
  bool none_inside() const { return none_inside_; }

  /// Everything that make() needs, allocated before other ranks may wait for this rank.
  struct materials {
    std::unique_ptr<base> made;
    std::array<std::int64_t, 4> mine{};  // this rank's host, cores and clock, and a random number
    std::vector<std::int64_t> all;       // of all ranks
    std::int64_t shared_bytes = 0;       // see node_memory::make
  };
  static materials prepare(int num_ranks, std::int64_t shared_bytes);
  /// Makes a base of the ranks of `user`. Collective; returns an MPI error code, and then leaves
  /// `mapping` without a base.
  int make(MPI_Comm user, materials from, base_mapping& mapping);
  using words_of_world = std::array<std::uint64_t, 5>;
  /// Makes a base of all ranks at the start of the program, if all ranks run railpass and `wanted`
  /// is true on all ranks. Returns whether it was, and all ranks took part; each of `words` is then
  /// the smallest of all ranks. Collective over MPI_COMM_WORLD.
  bool make_for_world(bool wanted, std::int64_t shared_bytes, words_of_world& words);

  /// Why the ranks of a base share no memory: once, on a rank that knows; empty: nothing new.
  std::string why_not_shared(const base& b);

  /// See resource_book.
  resource_book::lane_set free_lanes(const base& b);
  bool take(const base& b, int lane);
  void give_back(const base& b, int lane);
  resource_book::slot_set free_slots(const base& b);
  bool take_slot(const base& b, int slot, bool all_have_left = false);
  void give_back_slot(const base& b, int slot, std::uint64_t readers);
  /// The tenant of a slot, until the slot is given back.
  void settle_in(const base& b, int slot, const slot_tenants::entry& tenant);
  /// Only while no other thread calls MPI.
  slot_tenants& tenants(const base& b);

  /// Keeps messages of a freed communicator until they have arrived and left. Throws
  /// std::bad_alloc.
  void keep(std::unique_ptr<merge_messages> left);
  /// Frees the messages that have arrived meanwhile.
  void settle();
  /// Called when MPI ends: no message arrives any more.
  void end();

  known_placements& placements() { return placements_; }

  static bases& of_process();

 private:
  struct entry {
    std::unique_ptr<base> made;
    resource_book resources;
    std::string why_not_shared;
    slot_tenants tenants;
  };
  entry& entry_of(const base& b);

  std::mutex mutex_;
  std::vector<entry> all_;  // by id
  std::vector<std::unique_ptr<merge_messages>> left_;
  known_placements placements_;
  std::atomic<bool> none_inside_{false};
};

}  // namespace railpass::internal
