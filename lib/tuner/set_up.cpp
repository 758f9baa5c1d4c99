// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/set_up.hpp"

#include "lib/buffers/device_memory.hpp"
#include "lib/group/shared_clock.hpp"
#include "lib/runtime/hang_watch.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/base/settings.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <string_view>
#include <sys/random.h>
#include <utility>

namespace railpass::internal {

namespace {

// Settings that only concern one process or its host; all others must be equal on all ranks.
constexpr std::array private_settings{
    std::string_view{"log"},     std::string_view{"stats"},       std::string_view{"trace"},
    std::string_view{"profile"}, std::string_view{"knowledge"},   std::string_view{"summary"},
    std::string_view{"rails"},   std::string_view{"hang_report"}, std::string_view{"strict"},
    std::string_view{"plan"},    std::string_view{"advisories"},  std::string_view{"host_names"}};

void add(text_hash& hash, const std::string& text) { hash.add(text); }
template <class Number>
void add(text_hash& hash, const Number& value) {
  hash.add({reinterpret_cast<const char*>(&value), sizeof value});
}

std::uint64_t hash_of_settings(const settings& values, std::uint64_t plan_mark) {
  text_hash hash;
  add(hash, plan_mark);
#define RAILPASS_SETTING(kind, name, standard, unit, text)                      \
  if constexpr (std::ranges::find(private_settings, std::string_view{#name}) == \
                private_settings.end()) {                                       \
    hash.add(#name);                                                            \
    add(hash, values.name);                                                     \
  }
#include "railpass/base/settings.def"
#undef RAILPASS_SETTING
  return hash.value();
}

// 0 if the system gives no random number.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  return ::getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number ? number : 0;
}

struct taken_resources {
  int lane = -1;  // they must look again
  int slot = -1;
};

// Takes a lane, and a slot if one is wanted, that are free on all ranks. Threads of several ranks
// may come in different orders, and take each other's.
taken_resources take_agreed(const agreement& agreed, const base_mapping& mapping, MPI_Comm user,
                            bool wants_slot) {
  bases& all = bases::of_process();
  const base& of = *mapping.of;
  const taken_resources wanted{agreed.common_lane(), wants_slot ? agreed.first_slot() : -1};
  const bool lane = wanted.lane >= 0 && all.take(of, wanted.lane);
  const bool slot = wanted.slot >= 0 && all.take_slot(of, wanted.slot);
  std::array<int, 2> took{lane ? 1 : 0, slot ? 1 : 0};
  if (!agreed.all(agreement::one_thread) &&
      PMPI_Allreduce(MPI_IN_PLACE, took.data(), int(took.size()), MPI_INT, MPI_MIN, user) !=
          MPI_SUCCESS)
    took = {};
  const bool has_slot = took[0] != 0 && took[1] != 0;
  if (lane && took[0] == 0) all.give_back(of, wanted.lane);
  if (slot && !has_slot) all.give_back_slot(of, wanted.slot, 0);
  return {took[0] != 0 ? wanted.lane : -1, has_slot ? wanted.slot : -1};
}

}  // namespace

void set_up::refuse(std::string_view why, std::optional<int> number, std::string_view rest) const {
  try {
    owner_.record(subject_ + " is not tuned" + std::string(why) +
                  (number ? std::to_string(*number) : "") + std::string(rest));
  } catch (const std::bad_alloc&) {  // the other ranks wait for the next step
  }
}

void set_up::offer_resources() {
  const base& of = *mapping_.of;
  agreed.offer(of.id, all_bases_.free_lanes(of), all_bases_.free_slots(of));
}

void set_up::name_communicator() {
  static std::atomic<std::uint32_t> named{0};
  static const std::uint64_t of_process = random_number();
  int world_rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  if (rank_ == 0) agreed.set_name(of_process ^ (std::uint64_t(world_rank) << 32 | ++named));
}

void set_up::make_part(bool pays, bool asked_for, const std::function<void()>& own_part) {
  all_bases_.settle();
  int num_ranks = 0;
  PMPI_Comm_size(user_, &num_ranks);
  PMPI_Comm_rank(user_, &rank_);
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  const bool has_threads = threads == MPI_THREAD_MULTIPLE;

  name_communicator();
  agreed.set_clock(mark_of_clock());
  agreed.set(agreement::lenient, !values_.strict);
  agreed.set(agreement::enabled, values_.enable);
  agreed.set(agreement::pays, pays);
  agreed.set(agreement::says_worth, values_.summary || !values_.stats.empty());
  agreed.set(agreement::no_device, true);
  agreed.set(agreement::names_no_rails, true);
  agreed.set(agreement::one_world, true);
  agreed.set(agreement::one_thread, !has_threads);
  agreed.set(agreement::has_room_for_base, all_bases_.may_make_one());
  agreed.set(agreement::may_make_communicators,
             asked_for || !(has_threads || all_bases_.none_inside()));
  try {
    waiting_ = "rank " + std::to_string(rank_) + " of " + std::to_string(num_ranks) + " of '" +
               name_of_communicator(user_) + "' waits for the others to agree whether " + subject_ +
               " is tuned," + (inside_ ? " before its " + inside_->text() + "," : "");
    agreed.set_settings(hash_of_settings(values_, owner_.plan_mark()));
    if (values_.enable && pays) {
      own_part();
      mapping_ = all_bases_.find(user_);
      if (mapping_.of) {
        offer_resources();
      } else {
        agreed.set(agreement::one_world, bases::is_one_world(user_));
        for_base_ = bases::prepare(num_ranks, values_.shared_memory);
      }
    }
    agreed.set(agreement::made_its_part, true);
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& problem) {
    refuse(": ", {}, problem.what());
  }
}

std::optional<set_up::refusal> set_up::agree() {
  const hang_watch::wait in_mpi(rank_, waiting_.c_str());
  if (const int failure = agreed.agree(user_)) return refusal{failure};
  if (!agreed.same_settings()) {
    owner_.record(
        subject_ +
        " is not tuned: its ranks have different settings (RAILPASS_ variables and railpass.conf "
        "must be equal on all ranks)");
    return refusal{agreed.all(agreement::lenient) ? MPI_SUCCESS : MPI_ERR_OTHER};
  }
  if (!agreed.all(agreement::enabled)) return refusal{};
  if (!agreed.all(agreement::pays)) return refusal{MPI_SUCCESS, true};
  if (!agreed.all(agreement::no_device)) {
    refuse(": ", {}, told_of_device_memory);
    return refusal{};
  }
  if (!agreed.all(agreement::made_its_part)) {
    refuse(": at least one rank has no memory for its tuning state (see the log of that rank)");
    return refusal{};
  }
  if (!agreed.all(agreement::one_world)) {
    refuse(": its ranks do not share one MPI_COMM_WORLD");
    return refusal{};
  }
  return std::nullopt;
}

std::optional<set_up::refusal> set_up::take_resources(
    joint_lockstep& joint, const std::function<bool(const base_mapping&)>& wants_memory) {
  const hang_watch::wait in_mpi(rank_, waiting_.c_str());
  if (agreed.no_base()) {
    if (!agreed.all(agreement::may_make_communicators) ||
        !agreed.all(agreement::has_room_for_base)) {
      refuse(
          " yet: railpass cannot create its internal communicator inside a collective where "
          "MPI_THREAD_MULTIPLE or MPI_Comm_idup is used, and creates at most ",
          int(bases::most),
          " of them; call railpass::mpi::start_tuning(MPI_COMM_WORLD) at the program's start, or "
          "start the program with railpass run");
      return refusal{MPI_SUCCESS, true};
    }
    if (const int failure = all_bases_.make(user_, std::move(for_base_), mapping_)) {
      refuse(": MPI cannot create an internal communicator, error ", failure);
      return refusal{};
    }
    // Another thread may already have taken some of a new base on this rank. All ranks must try to
    // take the same ones.
    const base& made = *mapping_.of;
    resource_book::slot_set slots;
    for (int n = 0; made.shared && n < made.shared->num_slots(); ++n) slots.add(n);
    agreed.offer(made.id, resource_book().free_lanes(), slots);
  } else if (!agreed.same_base()) {
    return refusal{MPI_SUCCESS, true};  // another thread of some ranks is just making one
  }
  if (agreed.common_lane() < 0) {
    refuse(": railpass already tunes ", base::num_lanes, " communicators of this group");
    return refusal{};
  }
  const bool wants_slot = wants_memory && wants_memory(mapping_);
  const taken_resources taken = take_agreed(agreed, mapping_, user_, wants_slot);
  if (taken.lane < 0) return refusal{MPI_SUCCESS, true};
  slot_ = taken.slot;
  if (const std::string why = all_bases_.why_not_shared(*mapping_.of); !why.empty())
    owner_.record("collectives do not use shared memory: " + why);
  joint.connect(std::move(mapping_), taken.lane, agreed.name_of_communicator());
  return std::nullopt;
}

}  // namespace railpass::internal
