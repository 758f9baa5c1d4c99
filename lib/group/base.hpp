// SPDX-License-Identifier: BSL-1.0
//
// Bases: the few communicators of railpass' own over which the messages of many of the user's
// communicators travel. The first communicator of some ranks that is to be tuned gets a base of
// exactly these ranks; all later ones whose ranks are among them are numbered lanes of it, which
// costs MPI nothing. A lane's number is its messages' tags. place_book.hpp says who has which
// place.
#pragma once

#include "lib/call/announced_call.hpp"
#include "lib/exec/execution.hpp"
#include "lib/group/hosts.hpp"
#include "lib/group/known_placements.hpp"
#include "lib/group/memory_slot.hpp"
#include "lib/group/node_memory.hpp"
#include "lib/group/place_book.hpp"
#include "lib/group/shared_clock.hpp"
#include "lib/rails/mpi/place.hpp"
#include "lib/rails/mpi/rank_map.hpp"

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

/// One communicator of railpass' own. Never freed: freeing would be collective.
struct base {
  /// MPI guarantees tags to 32767.
  static constexpr int num_lanes = place_book::num_lanes, tags_per_lane = 32;
  /// Of what leaders tell (leaders.hpp): the last lane is nobody's.
  static constexpr int told_tag = (num_lanes - 1) * tags_per_lane;

  MPI_Comm comm = MPI_COMM_NULL;  ///< errors on it are returned
  MPI_Group group = MPI_GROUP_NULL;
  std::uint64_t id = 0;  ///< the same on all its ranks, where no other base has it; not 0
  std::shared_ptr<const placement> hosts;
  /// Of this rank's host, by places there; see find_caches.
  std::vector<std::int32_t> cache_of_place;
  std::unique_ptr<node_memory> shared;  ///< on all ranks alike; null: none
  std::unique_ptr<shared_clock> clock;  ///< on all ranks alike; null: theirs are one, or unknown
};

/// Where a communicator stands in a base that has all its ranks.
struct base_place {
  base* of = nullptr;  ///< null: there is none
  rank_map ranks;      ///< what the base calls the communicator's ranks
  int rank = 0;        ///< in the communicator, as the next one
  int num_ranks = 1;
};

/// A communicator's lane. Its number is free for others once the last owner is gone.
class base_lane {
 public:
  /// Tags of its messages: of schedules from 0 on, then that of first plans, then those of merges,
  /// that of fallbacks, then of rails that were opened for it (mpi_place), and the last one says
  /// that this rank has failed.
  static constexpr int plan_tag = num_schedule_tags, first_merge_tag = plan_tag + 1;
  static constexpr int failure_tag = base::tags_per_lane - 1;
  static constexpr int first_rails_tag = failure_tag - mpi_place::num_tags;
  static constexpr int fallback_tag = first_rails_tag - 1;

  base_lane() = default;
  ~base_lane();
  base_lane(const base_lane&) = delete;
  base_lane& operator=(const base_lane&) = delete;

  /// Once, before all else: the lane of that number, which has been taken, for the communicator of
  /// that name (see agreement). Allocates nothing.
  void become(base_place place, int number, std::uint64_t name) {
    place_ = std::move(place);
    number_ = number;
    name_ = {std::int32_t(name >> 32), std::int32_t(name & 0xffffffff)};
  }

  int rank() const { return place_.rank; }
  int num_ranks() const { return place_.num_ranks; }
  const base& of() const { return *place_.of; }
  const rank_map& ranks() const { return place_.ranks; }
  int number() const { return number_; }
  int first_tag() const { return number_ * base::tags_per_lane; }

  /// As MPI's, to and from ranks of the communicator.
  int isend(const std::int32_t* words, int count, int to, int tag, MPI_Request* request) const;
  int irecv(std::int32_t* words, int count, int from, int tag, MPI_Request* request) const;

  /// After a failure messages may be left that nobody receives: the number is never used again.
  void lose() { lost_ = true; }

  /// Tells all other ranks, whenever they look, and waits for nobody.
  enum class trouble : std::int32_t { none, failed, unlike, gone };
  void tell_all(trouble what) const;
  /// Tells one that this rank waits for it in that call.
  void announce(const told_call& in, int to);

  /// What another rank has told; nothing mostly. Local.
  struct news {
    trouble worst = trouble::none;
    bool unlike = false;  ///< among others, maybe
    std::int32_t announcer = 0;
    std::optional<told_call> announced{};  ///< others may follow
  };
  news look() const;

 private:
  base_place place_;
  int number_ = 0;
  bool lost_ = false;
  std::array<std::int32_t, 2> name_{};
  // A call, and the communicator's name: no rank has to receive an announcement, so the next
  // communicator of the lane may get it.
  static constexpr std::size_t call_words = std::tuple_size_v<told_call::words>;
  using announcement = std::array<std::int32_t, call_words + 2>;
  announcement announced_{};  // what MPI has not taken yet must stay
};

/// All bases of this process. Several threads may ask.
class bases {
 public:
  /// More are not made: MPI's communicators are the program's.
  static constexpr std::size_t most = 32;

  /// The one in which lives whoever asks; of several the same on all ranks of `user`, and one that
  /// shares memory if there is any. Local; throws std::bad_alloc.
  base_place find(MPI_Comm user);
  bool may_make_one();
  /// Whether all ranks are in MPI_COMM_WORLD. Others may leave, and end MPI, before this process
  /// does, for which no communicator may be left between them. Local; throws std::bad_alloc.
  static bool is_one_world(MPI_Comm user);
  /// From now on none is made inside a collective, because the program makes communicators there
  /// in a way that MPI libraries cannot bear.
  void make_none_inside() { none_inside_ = true; }
  bool none_inside() const { return none_inside_; }

  /// What make() needs, allocated before others may wait for this rank.
  struct materials {
    std::unique_ptr<base> made;
    std::array<std::int64_t, 4> mine{};  // this rank's host, cores and clock, and a random number
    std::vector<std::int64_t> all;       // of all ranks
    std::int64_t shared_bytes = 0;       // see node_memory::make
  };
  static materials prepare(int num_ranks, std::int64_t shared_bytes);
  /// A base of the ranks of `user`. Collective; returns an MPI error code, and then `place` has
  /// none.
  int make(MPI_Comm user, materials from, base_place& place);
  /// One for all ranks there are, before the program has begun, if it is `wanted` on all of them.
  /// Only where all of them run railpass. Whether it was, and all have come here; then `on_all` is
  /// what it was on all ranks. Collective over MPI_COMM_WORLD.
  bool make_for_world(bool wanted, std::int64_t shared_bytes, bool& on_all);

  /// Why the ranks of a base share no memory, once, on a rank that knows; empty: nothing new.
  std::string why_not_shared(const base& b);

  /// See place_book.
  place_book::lane_set free_lanes(const base& b);
  bool take(const base& b, int lane);
  void give_back(const base& b, int lane);
  place_book::slot_set free_slots(const base& b);
  bool take_slot(const base& b, int slot, bool all_have_left = false);
  void give_back_slot(const base& b, int slot, std::uint64_t readers);
  /// Who has it now, until it is given back.
  void settle_in(const base& b, int slot, const slot_tenants::entry& tenant);
  /// Only while no other thread calls MPI.
  slot_tenants& tenants(const base& b);

  /// Keeps messages of a communicator that is gone until they have come and left. Throws
  /// std::bad_alloc.
  void keep(std::unique_ptr<merge_messages> left);
  /// Frees what has come meanwhile.
  void settle();
  /// MPI ends: nothing comes any more.
  void end();

  known_placements& placements() { return placements_; }

  static bases& of_process();

 private:
  struct entry {
    std::unique_ptr<base> made;
    place_book places;
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
