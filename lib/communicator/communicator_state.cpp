// SPDX-License-Identifier: BSL-1.0
#include "lib/communicator/communicator_state.hpp"

#include "lib/call/inside.hpp"
#include "lib/exec/scratch.hpp"
#include "lib/group/common_exclusions.hpp"
#include "lib/runtime/hang_watch.hpp"
#include "lib/runtime/setting_values.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/hash.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <new>

namespace railpass::internal {

namespace {

bool are_particular(const call_options& options) {
  return !options.arm.empty() || options.segment_bytes >= 0 || !options.policy.empty();
}

// Programs call on few communicators again and again, and MPI's attribute look-up takes longer than
// everything else. A thread's copy is valid until any communicator is freed.
struct remembered {
  MPI_Comm comm;
  communicator_state* state;
  std::uint64_t frees;
};
constexpr int remembered_bits = 3;
std::atomic<std::uint64_t> frees{1};
[[gnu::tls_model("initial-exec")]] thread_local std::array<remembered, 1 << remembered_bits>
    memory{};

remembered& entry_of(MPI_Comm comm) {
  return memory[scattered(std::hash<MPI_Comm>{}(comm)) >> (64 - remembered_bits)];
}

// Per thread, because the freeing thread runs the delete callbacks. For other threads, the same
// handle may already be a new communicator.
[[gnu::tls_model("initial-exec")]] thread_local communicator_state::freeing* innermost = nullptr;

// The keyval of the attribute that holds the state.
int state_key() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, communicator_state::on_free, &made, nullptr);
    return made;
  }();
  return key;
}

// Null without a state. An invalid communicator goes to the program's error handler, which may
// leave by a longjmp; if it returns, the code is its error.
communicator_state* known_state(MPI_Comm comm, int& code) {
  const outside there;
  void* known = nullptr;
  int found = 0;
  code = PMPI_Comm_get_attr(comm, state_key(), &known, &found);
  return code == MPI_SUCCESS && found ? static_cast<communicator_state*>(known) : nullptr;
}

}  // namespace

communicator_state::communicator_state(MPI_Comm comm, process& owner)
    : process_(owner), settings_(owner.values()) {
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &num_ranks_);
  if (is_inter || num_ranks_ < 2 || is_left_out_of_plan(comm)) take(select::turn::refusal);
}

[[gnu::hot]] communicator_state* communicator_state::of(MPI_Comm comm, int& code) {
  code = MPI_SUCCESS;
  process* const owner = process::get();
  if (!owner || comm == MPI_COMM_NULL) return nullptr;
  const std::uint64_t now = frees.load(std::memory_order_acquire);
  const remembered& seen = entry_of(comm);
  return seen.comm == comm && seen.frees == now ? seen.state : find_or_make(comm, *owner, code);
}

communicator_state* communicator_state::find_or_make(MPI_Comm comm, process& owner, int& code) {
  const std::uint64_t now = frees.load(std::memory_order_acquire);
  remembered& seen = entry_of(comm);
  // MPICH still reads attributes that it has deleted, whose memory may already belong to another
  // communicator. So no attribute of a communicator that is being freed is read.
  if (freeing::now(comm)) return nullptr;
  communicator_state* const known = known_state(comm, code);
  if (code != MPI_SUCCESS) return nullptr;
  if (known) {
    seen = {comm, known, now};
    return known;
  }
  // A rank without a state would be native, unnoticed, while the other ranks are tuned.
  auto* const fresh = new communicator_state(comm, owner);
  try {
    owner.add(*fresh);
    if (PMPI_Comm_set_attr(comm, state_key(), fresh) != MPI_SUCCESS) throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    owner.remove(*fresh);
    delete fresh;
    throw;
  }
  return fresh;
}

int communicator_state::on_free(MPI_Comm, int, void* value, void*) {
  auto* const state = static_cast<communicator_state*>(value);
  frees.fetch_add(1, std::memory_order_release);
  // Once MPI has begun to end, these steps have been done.
  if (process::get()) {
    state->leave();
    state->process_.remove(*state);
    state->drop();
  }
  delete state;
  return MPI_SUCCESS;
}

communicator_state::freeing::freeing(MPI_Comm comm) : comm_(comm) {
  // MPI frees none of these communicators, and reports the error.
  if (!process::get() || comm == MPI_COMM_NULL || comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
    return;
  communicator_state* const state = known_state(comm, invalid_);
  if (invalid_ != MPI_SUCCESS) return;
  if (state) state->leave();
  outer_ = std::exchange(innermost, this);
}

communicator_state::freeing::~freeing() {
  if (innermost == this) innermost = outer_;
}

bool communicator_state::freeing::now(MPI_Comm comm) {
  for (const freeing* one = innermost; one; one = one->outer_)
    if (one->comm_ == comm) return true;
  return false;
}

bool communicator_state::conclude() {
  const bool calls = !session_ || session_->conclude();
  return sets_.conclude() && calls;
}

void communicator_state::leave() {
  take(select::turn::end);
  if (session_) session_->leave();
  sets_.leave();
}

void communicator_state::drop() {
  for (neighbor_set& one : neighbor_sets_) one.drop();
  sets_.drop();
  if (!session_) return;
  // MPI may still write to memory of messages that were pending when this rank failed: leak it.
  if (session_->has_failed())
    static_cast<void>(session_.release());
  else
    session_.reset();
  scratch_memory::free_spare();
}

void communicator_state::add_statistics(select::statistics_dump& dump) const {
  for_each_tuning([&](const tuned_contexts& t) { t.add_statistics(dump); });
}

void communicator_state::add_contexts_like(const knowledge::problem& of,
                                           select::statistics_dump& dump) const {
  for_each_tuning([&](const tuned_contexts& t) { t.add_contexts_like(of, dump); });
}

void communicator_state::add_near(const knowledge::near_search& wanted,
                                  std::vector<knowledge::neighbour>& found) const {
  for_each_tuning([&](const tuned_contexts& t) { t.add_near(wanted, found); });
}

void communicator_state::leave_others() {
  if (session_) session_->leave_others();
}

int communicator_state::agree(MPI_Comm comm, bool pays, bool asked_for, double passed_s,
                              std::optional<told_call> inside) {
  if (standing_ != select::standing::undecided) return MPI_SUCCESS;
  const double began_s = steady_clock_s();
  session::outcome outcome =
      session::create(comm, settings_, process_, pays, asked_for, passed_s, inside);
  if (outcome.postponed) return MPI_SUCCESS;
  {
    const std::unique_lock lock = process_.hold_statistics();
    session_ = std::move(outcome.made);
  }
  take(session_ ? select::turn::agreement : select::turn::refusal);
  if (session_ && rank_ == 0) process_.account().spend_on_set_up(steady_clock_s() - began_s);
  if (outcome.error_code != MPI_SUCCESS) call_error_handler(comm, outcome.error_code);
  return outcome.error_code;
}

// All ranks know without asking that the plan names no call of this communicator.
bool communicator_state::is_left_out_of_plan(MPI_Comm comm) const {
  return process_.all_follow_plan() && !plan_table::has_any(*process_.plan(), num_ranks_) &&
         bases::is_one_world(comm);
}

bool communicator_state::begins_at_once(const call& c) {
  if (process_.begins_at_first_calls(c.comm)) return true;
  if (began_at_once_ || !process_.at_stake(num_ranks_).are_high(c.op, c.message_bytes))
    return false;
  began_at_once_ = true;
  return process::is_in_one_world(c.comm);
}

int communicator_state::ask_for_native(const call& c, bool& any_excludes) {
  if (process_.begins_at_first_calls(c.comm) || beginning_.has_calls()) return MPI_SUCCESS;
  if (process_.shares_exclusions() && process::is_in_one_world(c.comm)) return MPI_SUCCESS;
  if (rank_ == 0) process_.know_quarantine();
  std::array<char, 160> doing{};
  std::snprintf(doing.data(), doing.size(),
                "rank %d of %d waits in the first call of a communicator, %s, to learn whether the "
                "MPI library's own collectives are excluded,",
                rank_, num_ranks_, name_of(c.op).data());
  const hang_watch::wait in_mpi(rank_, doing.data());
  return internal::ask_for_native(process_.exclusions(), c.comm, any_excludes);
}

[[gnu::hot]] int communicator_state::run(const call& c, const call_options& options) {
  if (standing_ == select::standing::undecided) {
    bool avoids_native = false;
    if (const int failure = ask_for_native(c, avoids_native)) return failure;
    const bool asks = are_particular(options), now = begins_at_once(c) || avoids_native;
    if (beginning_.count(c.message_bytes, asks, process_.clock()) || now) {
      const double now_s = process_.clock()();
      const bool pays = asks || is_particular(settings_) || now ||
                        (beginning_.pays(now_s) && (rank_ != 0 || process_.may_tune_more()));
      if (const int failure =
              agree(c.comm, pays, false, beginning_.passed_s(now_s),
                    told_call{.bytes = c.message_bytes, .root = c.root, .op = c.op}))
        return failure;
    }
  }
  return standing_ == select::standing::tuned ? session_->run(c, options) : run_native(c);
}

void communicator_state::configure(std::string_view setting, std::string_view value) {
  if (standing_ == select::standing::tuned)
    throw error("setting '" + std::string(setting) +
                "' comes too late: the communicator is tuned already");
  const own_float_environment own;
  assign(settings_, setting, value, setting);
}

std::string communicator_state::last_arm() const {
  if (standing_ == select::standing::tuned && session_->last_arm())
    return name_of(*session_->last_arm());
  return native() || beginning_.has_calls() ? "native" : "";
}

}  // namespace railpass::internal
