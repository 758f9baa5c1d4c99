// SPDX-License-Identifier: BSL-1.0
#include "lib/group/same_on_all.hpp"
#include "lib/runtime/process.hpp"
#include "lib/sets/function_sets.hpp"
#include "railpass/region.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace railpass::internal {

region_state::region_state(MPI_Comm comm, const settings& values, process& owner, std::string name)
    : process_(owner),
      comm_(comm),
      name_(std::move(name)),
      decider_(comm, values, owner, "region '" + name_ + "'", name_) {}

bool region_state::has_ranks_of(MPI_Comm comm) const {
  int result = MPI_UNEQUAL;
  return !decider_.has_ended() && PMPI_Comm_compare(comm_, comm, &result) == MPI_SUCCESS &&
         result != MPI_UNEQUAL;
}

void region_state::enter() {
  if (depth_ == 0 && decider_.tunes()) {
    decider_.begin_call();
    if (entries_ % turn_entries == 0) give_turn();
    ++entries_;
    choice_.reset();
    started_s_ = process_.clock()();
  }
  ++depth_;
}

void region_state::exit(bool counts) {
  if (--depth_ > 0 || !choice_) return;
  if (counts && decider_.tunes()) decider_.record(*choice_, started_s_, process_.clock()());
  choice_.reset();
}

// To the next set that is still called here.
void region_state::give_turn() {
  const int n = int(called_in_.size());
  for (int step = 1; step <= n; ++step) {
    const int next = (turn_ + step) % n;
    if (called_in_[std::size_t(next)] + n * turn_entries < entries_) continue;
    turn_ = next;
    return;
  }
}

int region_state::choose(int context) {
  if (context < 0) return select::native_arm;
  called_in_.resize(std::max(called_in_.size(), std::size_t(context) + 1));
  called_in_[std::size_t(context)] = entries_;
  if (context != turn_) return decider_.incumbent(context);
  if (!choice_) choice_ = decider_.next_call(context);
  return choice_->call.arm;
}

// ---- of a communicator

std::shared_ptr<region_state> function_sets::region_named(std::string name, MPI_Comm comm,
                                                          const std::string& subject) {
  require_same(comm, subject, {"region " + name}, problem_of_name("region", name));
  const auto known = std::ranges::find(regions, name, [](const auto& r) { return r->name(); });
  if (known != regions.end()) return *known;
  process& owner = *process::get();
  const auto made = std::make_shared<region_state>(comm, values, owner, std::move(name));
  made->decider().begin(comm);
  const auto lock = owner.hold_statistics();
  return regions.emplace_back(made);
}

}  // namespace railpass::internal

// ---- what users have

namespace railpass {

using namespace internal;

thread_local railpass::detail::entered_region* railpass::detail::entered_region::innermost =
    nullptr;

region::entry::entry(const std::shared_ptr<region_state>& of)
    : exceptions_(std::uncaught_exceptions()) {
  of->enter();
  stay_ = {of, std::exchange(railpass::detail::entered_region::innermost, &stay_)};
}

region::entry::~entry() {
  railpass::detail::entered_region::innermost = stay_.outer;
  stay_.region->exit(std::uncaught_exceptions() == exceptions_);
}

}  // namespace railpass
