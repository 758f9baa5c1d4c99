// SPDX-License-Identifier: BSL-1.0
#include "lib/sets/neighbor_set.hpp"

#include "lib/buffers/call_buffers.hpp"
#include "lib/call/eligibility.hpp"
#include "lib/call/inside.hpp"
#include "lib/call/own_errors.hpp"
#include "lib/runtime/process.hpp"
#include "lib/runtime/setting_values.hpp"
#include "lib/sets/function_sets.hpp"
#include "lib/sets/neighbor_versions.hpp"
#include "lib/tuner/kept_call.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal {

namespace {

constexpr std::size_t native = std::size_t(neighbor_version::native);
constexpr std::size_t nonblocking = std::size_t(neighbor_version::ineighbor);

std::vector<set_definition::version> versions() {
  std::vector<set_definition::version> all;
  for (const std::string_view name : neighbor_version_names)
    all.push_back({.name = std::string(name), .values = {}});
  return all;
}

// The bytes of the longest message that this rank sends.
std::int64_t longest_message(const neighbor_call& c, const neighbors& around) {
  const neighbor_blocks sent(c.send, c.sends_one_block());
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < around.destinations.size(); ++i) {
    const neighbor_block b = sent[int(i)];
    MPI_Count size = 0;
    if (around.destinations[i] == MPI_PROC_NULL) continue;
    PMPI_Type_size_x(b.type, &size);
    longest = std::max(longest, std::uint64_t(b.count) * std::uint64_t(size));
  }
  return std::int64_t(longest);
}

}  // namespace

// All that a communicator needs to tune calls.
class neighbor_set::tuned {
 public:
  /// Allocates all of it, on this rank alone; throws std::bad_alloc, error.
  tuned(const neighbor_call& first, function_sets& all, const neighbors& around);

  set_decider& decider() { return set_->decider(); }
  /// Asks the MPI library how its own calls match edges, and takes a number among the sets of the
  /// communicator. False, on all ranks: no tuning is possible. Collective.
  bool begin(const neighbor_call& first);

  int run(const neighbor_call& c);
  void leave_others() { request_state_->leave_others(); }

 private:
  int run_nonblocking(const neighbor_call& c);
  int run_version(neighbor_version by, const neighbor_call& c);
  int run_verified(neighbor_version by, const neighbor_call& c);
  int raise(const neighbor_call& c, int code);
  int result_blocks_of(const neighbor_call& c, std::vector<user_block>& blocks);

  function_sets& all_;  // of the communicator
  process& owner_;
  const neighbors& around_;
  std::shared_ptr<tuned_set> set_;
  edge_question question_;
  std::vector<std::int32_t> edges_, edges_nonblocking_;
  neighbor_versions versions_;
  request_state* request_state_;
  set_request request_;
};

namespace {

std::shared_ptr<tuned_set> make_set(const neighbor_call& first, const function_sets& all) {
  auto made =
      std::make_shared<tuned_set>(first.comm, all.values, *process::get(),
                                  std::string(name_of(first.op)), std::vector<std::string>());
  made->define(versions());
  made->decider().make_part();
  return made;
}

std::unique_ptr<request_state> make_request(const neighbor_call& first, const function_sets& all,
                                            const std::shared_ptr<tuned_set>& set) {
  set_context calls{.of = set->definition(),
                    .shape = {0, 0, 0},
                    .features = {},
                    .distance = {},
                    .policy = {},
                    .without = {std::string(neighbor_version_names[nonblocking])},
                    .lags = {}};
  return std::make_unique<request_state>(set, first.comm, all.values.verify, std::move(calls));
}

}  // namespace

neighbor_set::tuned::tuned(const neighbor_call& first, function_sets& all, const neighbors& around)
    : all_(all),
      owner_(*process::get()),
      around_(around),
      set_(make_set(first, all)),
      question_(around, first.op),
      edges_(around.sources.size()),
      edges_nonblocking_(around.sources.size()),
      versions_(around, set_->decider().joint(), all.values, owner_.clock()),
      request_state_(nullptr),
      request_([&] {
        auto made = make_request(first, all, set_);
        request_state_ = made.get();
        return made;
      }()) {
  owner_.note_set(set_->name());
  const auto lock = owner_.hold_statistics();
  all.sets.reserve(all.sets.size() + 1);
}

bool neighbor_set::tuned::begin(const neighbor_call& first) {
  const joint_lockstep& joint = decider().joint();
  const bool answered = question_.ask(first.comm, false, edges_) &&
                        versions_.connect(joint.rank(), joint.num_ranks(), edges_);
  const bool same =
      question_.ask(first.comm, true, edges_nonblocking_) && edges_ == edges_nonblocking_;
  // MPI_MAX reduces these values, so conditions are 0 where they hold.
  std::array<std::int64_t, 5> all{
      answered ? 0 : 1, same ? 0 : 1, std::int64_t(around_.sources.size()),
      std::int64_t(around_.destinations.size()), longest_message(first, around_)};
  if (PMPI_Allreduce(MPI_IN_PLACE, all.data(), int(all.size()), MPI_INT64_T, MPI_MAX, first.comm) !=
          MPI_SUCCESS ||
      all[0] != 0 || all[4] < all_.values.min_bytes)
    return false;
  all[4] = std::int64_t(std::bit_ceil(std::uint64_t(all[4])));
  set_context& calls = request_state_->calls();
  if (all[1] == 0) calls.without.clear();
  std::copy(all.begin() + 2, all.end(), calls.shape.begin());
  int prepared = 0;
  try {
    request_state_->pin();
    decider().prepare(calls);
    prepared = 1;
  } catch (const std::bad_alloc&) {  // then no rank tunes
  }
  if (PMPI_Allreduce(MPI_IN_PLACE, &prepared, 1, MPI_INT, MPI_MIN, first.comm) != MPI_SUCCESS ||
      !prepared)
    return false;
  const auto lock = owner_.hold_statistics();
  all_.sets.push_back(set_);
  return true;
}

int neighbor_set::tuned::run(const neighbor_call& c) {
  const set_call call(request_);
  const std::size_t version = call.version();
  if (version == native || decider().joint().steps().native_for_good()) return run_native(c);
  if (version == nonblocking) return run_nonblocking(c);
  const auto by = neighbor_version(version);
  return all_.values.verify ? run_verified(by, c) : raise(c, run_version(by, c));
}

int neighbor_set::tuned::run_version(neighbor_version by, const neighbor_call& c) {
  return decider().has_failed() ? code_of(own_error::rank_failed) : versions_.run(by, c);
}

int neighbor_set::tuned::run_nonblocking(const neighbor_call& c) {
  const outside there;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start_native(c, &request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

int neighbor_set::tuned::raise(const neighbor_call& c, int code) {
  if (code == MPI_SUCCESS) return code;
  request_state_->fail();
  if (const std::string_view told = text_of(code); !told.empty())
    owner_.complain(c.comm, name_of(c.op), told);
  call_error_handler(c.comm, code);
  return code;
}

int neighbor_set::tuned::result_blocks_of(const neighbor_call& c, std::vector<user_block>& blocks) {
  const neighbor_blocks received(c.receive, false);
  for (std::size_t i = 0; i < around_.sources.size(); ++i) {
    if (around_.sources[i] == MPI_PROC_NULL) continue;
    const neighbor_block b = received[int(i)];
    user_block& one = blocks.emplace_back(
        user_block{.memory = b.memory, .count = b.count, .type = b.type, .layout = {}});
    if (const int failure = layout_of(b.type, owner_.datatype_key(), one.layout)) return failure;
  }
  return MPI_SUCCESS;
}

// As verify.hpp does for collectives: the user gets the MPI library's result. A failed rank still
// makes the MPI library's call, because the other ranks are inside.
int neighbor_set::tuned::run_verified(neighbor_version by, const neighbor_call& c) {
  std::vector<user_block> blocks;
  std::vector<std::byte> ours, theirs;
  MPI_Comm const own = decider().joint().lane().of().comm;
  int failure = run_version(by, c);
  const auto go_on = [&](auto action) {
    try {
      if (failure == MPI_SUCCESS) failure = action();
    } catch (const std::bad_alloc&) {
      failure = MPI_ERR_NO_MEM;
    }
  };
  go_on([&] { return result_blocks_of(c, blocks); });
  go_on([&] { return pack_blocks(blocks, ours, own); });
  if (failure != MPI_SUCCESS) request_state_->fail();
  if (const int code = run_native(c)) return code;
  bool alike = false;
  go_on([&] { return pack_blocks(blocks, theirs, own); });
  go_on([&] { return compare_values(blocks, ours, theirs, alike); });
  if (failure != MPI_SUCCESS) return raise(c, failure);
  if (!alike)
    owner_.record("RAILPASS_VERIFY: " + set_->name() + " by " + request_.last() +
                  " differs from the MPI library's own result; the call returns the library's");
  return MPI_SUCCESS;
}

// ---- before

neighbor_set::neighbor_set() = default;
neighbor_set::~neighbor_set() = default;

// MPI libraries report no lack of memory here. Without memory, calls are counted and stay native.
void neighbor_set::look(MPI_Comm comm) {
  // No plan names calls between neighbours.
  const bool native =
      !has_topology(comm) || (process::get()->all_follow_plan() && bases::is_one_world(comm));
  phase_ = native ? phase::native : phase::counting;
  if (phase_ == phase::native) return;
  try {
    around_ = std::make_unique<neighbors>(neighbors::of(comm));
  } catch (const std::bad_alloc&) {
  }
}

[[gnu::hot]] int neighbor_set::run(const neighbor_call& c, function_sets& all) {
  if (phase_ == phase::unseen) look(c.comm);
  if (phase_ == phase::native || (around_ && classify(c, *around_) != eligibility::eligible))
    return run_native(c);
  if (phase_ == phase::counting) {
    const process& owner = *process::get();
    const bool at_once = owner.begins_at_first_calls(c.comm);
    if (beginning_.count(0, false, owner.clock()) || at_once) {
      const bool pays = at_once || is_particular(all.values) || beginning_.pays(owner.clock()());
      if (const int failure = agree(c, all, pays)) return failure;
    }
  }
  return phase_ == phase::tuned ? tuned_->run(c) : run_native(c);
}

int neighbor_set::agree(const neighbor_call& c, function_sets& all, bool pays) {
  std::unique_ptr<tuned> made;
  set_up by(c.comm, all.values, *process::get(), "a neighborhood");
  const auto own_part = [&] {
    if (!around_) throw std::bad_alloc();
    made = std::make_unique<tuned>(c, all, *around_);
  };
  by.make_part(pays, false, std::ref(own_part));
  auto refused = by.agree();
  if (!refused) refused = made->decider().take_resources(by);
  if (refused && refused->postponed) return MPI_SUCCESS;
  phase_ = phase::native;
  if (refused) {
    if (refused->error_code != MPI_SUCCESS) call_error_handler(c.comm, refused->error_code);
    return refused->error_code;
  }
  if (!is_named(all.values.collectives, name_of(c.op)) || !made->begin(c)) return MPI_SUCCESS;
  tuned_ = std::move(made);
  phase_ = phase::tuned;
  return MPI_SUCCESS;
}

void neighbor_set::leave_others() {
  if (tuned_) tuned_->leave_others();
}

void neighbor_set::drop() {
  tuned_.reset();
  phase_ = phase::native;
}

}  // namespace railpass::internal
