// SPDX-License-Identifier: BSL-1.0
//
// How a session begins: all ranks agree, take a lane for their messages, and open rails if these
// are named; or the communicator stays native.
#include "lib/rails/agreement.hpp"
#include "lib/session/agreement.hpp"
#include "lib/session/communicator_rails.hpp"
#include "lib/session/process.hpp"
#include "lib/session/session.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/prior.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

namespace railpass {

namespace {

// Settings that only concern one process or its host; all others must be equal on all ranks.
constexpr std::array private_settings{
    std::string_view{"log"},     std::string_view{"stats"},       std::string_view{"trace"},
    std::string_view{"profile"}, std::string_view{"knowledge"},   std::string_view{"summary"},
    std::string_view{"rails"},   std::string_view{"hang_report"}, std::string_view{"strict"}};

std::uint64_t hash_of_settings(const settings& values) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 1099511628211u;
    hash = (hash ^ 0xffu) * 1099511628211u;
  };
  for (const setting_description& d : describe(values))
    if (std::ranges::find(private_settings, d.name) == private_settings.end()) {
      add(d.name);
      add(d.value);
    }
  return hash;
}

std::string name_of_communicator(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  return {name, std::size_t(length)};
}

// Takes a lane that is free on all ranks; -1: they must look again. Threads of several ranks may
// come in different orders, and take each other's.
int take_lane(const agreement& agreed, const base_place& place, MPI_Comm user) {
  const int number = agreed.common_lane();
  const bool took = number >= 0 && bases::of_process().take(*place.of, number);
  if (agreed.all(agreement::one_thread)) return took ? number : -1;
  int all_took = took ? 1 : 0;
  if (PMPI_Allreduce(MPI_IN_PLACE, &all_took, 1, MPI_INT, MPI_MIN, user) == MPI_SUCCESS && all_took)
    return number;
  if (took) bases::of_process().give_back(*place.of, number);
  return -1;
}

}  // namespace

// A rank's part in the agreement with which tuning begins, and what comes of it.
class session::beginning {
 public:
  beginning(MPI_Comm user, const settings& values, process& owner)
      : user_(user), values_(values), owner_(owner) {}

  agreement agreed;
  std::unique_ptr<session> made;

  // All that may fail on this rank alone.
  void make_part(bool pays, bool asked_for);
  // After agreeing: the outcome if there is to be no session now.
  std::optional<outcome> refusal();
  // Connects the session to a lane of a base, which is made if there is none; or as refusal().
  std::optional<outcome> take_place();
  // Where the settings name rails, schedules run over these.
  void open_rails();

 private:
  MPI_Comm user_;
  const settings& values_;
  process& owner_;
  bases& all_bases_ = bases::of_process();
  base_place place_;
  bases::materials for_base_;
};

void session::beginning::make_part(bool pays, bool asked_for) {
  all_bases_.settle();
  int rank = 0, num_ranks = 0;
  PMPI_Comm_rank(user_, &rank);
  PMPI_Comm_size(user_, &num_ranks);
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  const bool has_threads = threads == MPI_THREAD_MULTIPLE;

  agreed.set(agreement::lenient, !values_.strict);
  agreed.set(agreement::enabled, values_.enable);
  agreed.set(agreement::pays, pays);
  agreed.set(agreement::no_device, true);
  agreed.set(agreement::names_no_rails, true);
  agreed.set(agreement::one_world, true);
  agreed.set(agreement::one_thread, !has_threads);
  agreed.set(agreement::has_room_for_base, all_bases_.may_make_one());
  agreed.set(agreement::may_make_communicators,
             asked_for || !(has_threads || all_bases_.none_inside()));
  try {
    agreed.set_settings(hash_of_settings(values_));
    agreed.set(agreement::no_device, values_.gpu != "native" || !has_device_driver());
    const bool rails = !rails_mark(values_.rails).empty();
    agreed.set(agreement::names_rails, rails);
    agreed.set(agreement::names_no_rails, !rails);
    if (values_.enable && pays) {
      made.reset(new session(values_, owner_, rank, num_ranks, name_of_communicator(user_)));
      place_ = all_bases_.find(user_);
      if (place_.of) {
        agreed.offer(place_.of->id, all_bases_.free_lanes(*place_.of));
      } else {
        agreed.set(agreement::one_world, bases::is_one_world(user_));
        for_base_ = bases::prepare(num_ranks, values_.shared_memory);
      }
    }
    agreed.set(agreement::made_its_part, true);
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& problem) {
    owner_.record(std::string("a communicator is not tuned: ") + problem.what());
  }
}

std::optional<session::outcome> session::beginning::refusal() {
  if (!agreed.same_settings()) {
    owner_.record(
        "the ranks of a communicator have different settings (RAILPASS_ variables must be the same "
        "on all ranks); it is not tuned");
    return outcome{nullptr, agreed.all(agreement::lenient) ? MPI_SUCCESS : MPI_ERR_OTHER};
  }
  if (!agreed.all(agreement::enabled)) return outcome{};
  if (!agreed.all(agreement::pays)) return outcome{nullptr, MPI_SUCCESS, true};
  if (!agreed.all(agreement::no_device)) {
    owner_.record(
        "a communicator is not tuned: a rank may have memory of a GPU (RAILPASS_GPU=native)");
    return outcome{};
  }
  if (!agreed.all(agreement::made_its_part)) {
    owner_.record("a communicator is not tuned: not all ranks could make their part of it");
    return outcome{};
  }
  if (!agreed.all(agreement::one_world)) {
    owner_.record("a communicator is not tuned: not all of its ranks were started together");
    return outcome{};
  }
  return std::nullopt;
}

std::optional<session::outcome> session::beginning::take_place() {
  if (agreed.no_base()) {
    if (!agreed.all(agreement::may_make_communicators) ||
        !agreed.all(agreement::has_room_for_base)) {
      owner_.record(
          "a communicator is not tuned yet: railpass makes none for its messages inside a "
          "collective where MPI_THREAD_MULTIPLE or MPI_Comm_idup is used, nor more than " +
          std::to_string(bases::most) +
          "; railpass::mpi::start_tuning(MPI_COMM_WORLD) at the program's start makes one for all, "
          "and so does railpass run");
      return outcome{nullptr, MPI_SUCCESS, true};
    }
    if (const int failure = all_bases_.make(user_, std::move(for_base_), place_)) {
      owner_.record("a communicator is not tuned: MPI makes none for its messages, error " +
                    std::to_string(failure));
      return outcome{};
    }
    // All lanes of a new one are free.
    agreed.offer(place_.of->id, all_bases_.free_lanes(*place_.of));
  } else if (!agreed.same_base()) {
    return outcome{nullptr, MPI_SUCCESS, true};  // another thread of some ranks is just making one
  }
  if (agreed.common_lane() < 0) {
    owner_.record("a communicator is not tuned: there are " + std::to_string(base::num_lanes) +
                  " others already");
    return outcome{};
  }
  const int number = take_lane(agreed, place_, user_);
  if (number < 0) return outcome{nullptr, MPI_SUCCESS, true};
  if (std::string& why = place_.of->why_not_shared; !why.empty()) {
    owner_.record("collectives do not use shared memory: " + why);
    why.clear();
  }
  made->connect(std::move(place_), number);
  return std::nullopt;
}

void session::beginning::open_rails() {
  const bool all_name_rails = agreed.all(agreement::names_rails);
  try {
    if (!all_name_rails && !agreed.all(agreement::names_no_rails))
      throw error("not all ranks name rails (RAILPASS_RAILS)");
    if (all_name_rails && !agreed.all(agreement::may_make_communicators))
      throw error(
          "rails are not opened inside a collective where MPI_THREAD_MULTIPLE or MPI_Comm_idup is "
          "used; railpass::mpi::start_tuning opens them");
    if (all_name_rails) {
      const auto messages = rails_for_collectives(user_, owner_, values_.rails, values_.strategy);
      on_all(user_, [&] { made->run_over(messages); });
    }
  } catch (const error& problem) {  // on all ranks
    made->over_rails_.reset();
    owner_.record("collectives of communicator '" + made->name_ +
                  "' use the MPI library's messages: " + problem.what());
  }
}

session::outcome session::create(MPI_Comm user, const settings& values, process& owner, bool pays,
                                 bool asked_for, double passed_s) {
  beginning b(user, values, owner);
  b.make_part(pays, asked_for);
  if (const int failure = b.agreed.agree(user)) return {nullptr, failure};
  if (auto native = b.refusal()) return std::move(*native);
  if (auto native = b.take_place()) return std::move(*native);
  b.open_rails();
  b.made->know_machine(passed_s);
  return {std::move(b.made), MPI_SUCCESS};
}

session::session(const settings& values, process& owner, int rank, int num_ranks, std::string name)
    : process_(owner),
      settings_(values),
      arms_(values, owner),
      lockstep_({.max_contexts = int(std::min<std::int64_t>(values.contexts, 1 << 16))}, rank,
                num_ranks),
      rank_(rank),
      num_ranks_(num_ranks),
      lane_(std::make_shared<base_lane>()),
      name_(std::move(name)),
      merges_(std::make_unique<merge_messages>(rank, num_ranks)),
      policies_{values.policy} {
  merges_->connect(lane_);
  room_for_regions_.reserve(std::size_t(num_ranks));
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  plan_broadcast_ = binomial.base->build(
      {.rank = rank, .num_ranks = num_ranks, .commutative = true, .result_rank = 0},
      binomial.values);
  select::require_policy(values.policy);
  if (values.gpu != "stage" && values.gpu != "native")
    throw error("RAILPASS_GPU='" + values.gpu + "': expected stage or native");
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  is_shared_ = threads == MPI_THREAD_MULTIPLE && rank == 0;
  if (rank == 0) machine_ = select::generic_machine();
}

void session::connect(base_place place, int lane_number) {
  base& of = *place.of;
  lane_->become(std::move(place), lane_number);
  over_mpi_.emplace(*lane_);
  // All ranks know alike where they are.
  if (of.shared && lane_number < of.shared->num_slots() &&
      of.shared->has(lane_->ranks(), num_ranks_))
    in_memory_.emplace(*of.shared, *lane_, std::move(room_for_regions_));
  // First plans must not fail on one rank alone.
  try {
    select::plan_message message{};
    over_mpi_->runs.prepare(plan_broadcast_, binding_of(message));
  } catch (const std::bad_alloc&) {  // maybe there is memory when it is needed
  }
}

void session::run_over(std::shared_ptr<lane> messages) {
  over_rails_ = std::make_unique<rails_of_schedules>(std::move(messages));
}

}  // namespace railpass
