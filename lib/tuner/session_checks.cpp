// SPDX-License-Identifier: BSL-1.0
//
// Checked calls: which arms run again if a result is wrong, and what follows. All ranks learn the
// same words in each reduction, so all ranks decide alike. See checked_call.hpp.
#include "lib/runtime/process.hpp"
#include "lib/tuner/checked_call.hpp"
#include "lib/tuner/session.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

namespace railpass::internal {

namespace {

std::string name_of_type(MPI_Datatype type) {
  std::array<char, MPI_MAX_OBJECT_NAME + 1> name{};
  int length = 0;
  PMPI_Type_get_name(type, name.data(), &length);
  return name.data();
}

}  // namespace

int session::add_up(checked_call& check) {
  checked_call::word_array words = check.words();
  if (const int failure = joint_.add_up(words)) return failure;
  check.take(words);
  const bool may_miss = check.kind() == check_kind::extreme && check.can_judge() && check.holds();
  return may_miss ? find_missed(check) : MPI_SUCCESS;
}

// The MPI library collects the marks, and a wrong answer of it must not decide: all ranks confirm.
int session::find_missed(checked_call& check) {
  std::uint64_t missed = check.missed_element();
  if (const int failure = joint_.find_largest({&missed, 1}, "the check of the result"))
    return failure;
  if (missed == 0) return MPI_SUCCESS;
  std::uint64_t by_all = check.attains(missed) ? 0 : 1;
  if (const int failure = joint_.agree({&by_all, 1})) return failure;
  if (by_all != 0) check.note_missed();
  return MPI_SUCCESS;
}

// The time of the arm excludes the time of the check, which the leader learns separately.
int session::run_checked(const call& c, const arm& a, const select::timed_call& chosen,
                         const asked_size* asked) {
  const auto now_s = [&] { return process_.clock()(); };
  const double came_s = now_s();
  checked_call check(c, caller(), has_device_driver() ? 0 : settings_.scratch_limit.value);
  check.begin();
  const double began_s = now_s();
  int code = run_timed(c, a, chosen, asked);
  const double ended_s = now_s();
  check.note_run(code);
  if (const int failure = judge(c, check, code); code == MPI_SUCCESS) code = failure;
  joint_.note_check(chosen, now_s() - came_s - (ended_s - began_s));
  return code;
}

// All ranks of the communicator come here, also a rank whose part of the call has failed.
int session::judge(const call& c, checked_call& check, int code) {
  const bool by_law = check.judges_one_run();
  std::array<const arm*, checked_call::most_runs> arms{last_arm_};
  const auto is_right = [&] {
    return by_law ? check.holds() : check.runs() == 2 && !check.differ(0, 1);
  };
  for (int runs = 1;; ++runs) {
    if (const int failure = add_up(check))
      return code == MPI_SUCCESS ? raise(c, failure) : MPI_SUCCESS;
    if (!check.can_judge()) return code;
    if (check.operation_is_wrong()) return accuse_operation(c), code;
    const auto ran = std::span<const arm* const>(arms).first(std::size_t(runs));
    if (runs == checked_call::most_runs || is_right()) break;
    const arm* const next = another_arm(c, ran);
    if (!next) break;
    arms[std::size_t(runs)] = next;
    check.prepare_next_run();
    code = run_arm(c, *next);
    check.note_run(code);
    if (runs == 1) check.sum_magnitudes();
  }
  const auto ran = std::span<const arm* const>(arms).first(std::size_t(check.runs()));
  last_arm_ = arms[0];
  const std::size_t last = ran.size() - 1;
  if (is_right()) {
    if (last > 0 && by_law) blame(c, check, {.arms = ran.first(last), .reference = ran[last]});
  } else if (!by_law && last == 2 && !check.differ(1, 2)) {
    blame(c, check, {.arms = ran.first(1), .reference = ran[2]});
  } else if (!by_law && last == 2 && !check.differ(0, 2)) {
    blame(c, check, {.arms = ran.subspan(1, 1), .reference = ran[2], .first_run = 1});
  } else if (by_law || last > 0) {
    blame(c, check, {.arms = ran});
  }
  return MPI_SUCCESS;
}

const arm* session::another_arm(const call& c, std::span<const arm* const> before) const {
  for (const arm& a : known_arms()[std::size_t(c.op)]) {
    const bool ran = std::ranges::any_of(before, [&](const arm* b) { return b->base == a.base; });
    const bool may_run = a.base->is_native()
                             ? !is_excluded(*a.base, c)
                             : !a.base->needs.longest_block && eligible_here(*a.base, c);
    if (!ran && may_run) return &a;
  }
  return nullptr;
}

bool session::find_wrong_rank(checked_call& check, int run, wrong_result& where) {
  const checked_call::difference own = check.from_last(run);
  std::uint64_t lowest = own.bytes > 0 ? std::uint64_t(num_ranks_ - rank_) : 0;
  if (joint_.find_largest({&lowest, 1}, "the check of the result") != MPI_SUCCESS) return false;
  where.rank = lowest > 0 ? num_ranks_ - int(lowest) : -1;
  wrong_result::word_array words{};
  if (rank_ == where.rank) {
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    PMPI_Get_processor_name(name.data(), &length);
    words[0] = own.first_byte;
    words[1] = own.bytes;
    std::memcpy(&words[2], name.data(), std::min(name.size(), wrong_result::most_name));
  }
  if (joint_.add_up(words) != MPI_SUCCESS) return false;
  where.first_byte = words[0];
  where.bytes = words[1];
  std::memcpy(where.host.data(), &words[2], wrong_result::most_name);
  return true;
}

// Cannot fail: a rank without memory writes no message and no record.
void session::blame(const call& c, checked_call& check, const verdict& v) {
  wrong_result found{.of = c.op, .by = v.arms[0]};
  if (!find_wrong_rank(check, v.first_run, found)) return;
  const algorithm& wrong = *found.by->base;
  const auto is_same_host = [&](const wrong_result& w) {
    return w.host == found.host && (w.of != c.op || w.by->base != &wrong);
  };
  const bool host_is_known = std::ranges::any_of(wrong_results_, is_same_host);
  const bool is_clear = v.reference && v.arms.size() == 1 && !host_is_known;
  if (is_clear && !wrong.is_native()) exclude({.what = &wrong});
  const own_float_environment own;
  try {
    if (rank_ == 0) {
      const std::string_view after =
          !is_clear ? "; different arms gave wrong results there, so the host may be faulty: "
                      "nothing is quarantined"
          : wrong.is_native()
              ? "; railpass goes on to call the MPI library, because only a site's file may "
                "quarantine its collectives (railpass quarantine list)"
              : "; the call returns the right result, and no later call uses this algorithm, on "
                "other communicators from their next synchronisation on (railpass quarantine list)";
      process_.warn(tell(c, found, v).append(after));
      if (is_clear) process_.quarantine(record_of(c, found), false);
      for (const wrong_result& w : wrong_results_)
        if (!is_clear && w.is_kept && is_same_host(w)) process_.quarantine(record_of(c, w), true);
    }
  } catch (const std::bad_alloc&) {
  }
  found.is_kept = is_clear;
  // The limit is equal on all ranks.
  if (wrong_results_.size() < most_wrong_results) wrong_results_.push_back(found);
}

void session::accuse_operation(const call& c) {
  if (rank_ != 0) return;
  const own_float_environment own;
  try {
    process_.warn(std::string(name_of(c.op)) + ": the MPI library's operation " +
                  (c.operation == MPI_MIN ? "MPI_MIN" : "MPI_MAX") + " of " +
                  name_of_type(c.receive.type) +
                  " is wrong, and so are results of calls with these numbers; all algorithms use "
                  "this operation, so nothing is quarantined");
  } catch (const std::bad_alloc&) {
  }
}

knowledge::quarantined session::record_of(const call& c, const wrong_result& w) const {
  knowledge::quarantined q{.collective = std::string(name_of(w.of)),
                           .algorithm = std::string(w.by->base->name),
                           .variant = name_of(*w.by),
                           .num_ranks = num_ranks_,
                           .ranks_per_node = std::max(1, nodes_.facts().most_ranks),
                           .bytes = c.message_bytes,
                           .difference = place_of(w)};
  if (c.is_reduction()) q.elements = name_of_type(c.receive.type);
  return q;
}

std::string session::place_of(const wrong_result& w) {
  if (w.rank < 0) return {};
  return std::to_string(w.bytes) + (w.bytes == 1 ? " wrong byte" : " wrong bytes") +
         ", from byte " + std::to_string(w.first_byte) + " on, on rank " + std::to_string(w.rank) +
         " on host " + w.host.data();
}

// On rank 0.
std::string session::tell(const call& c, const wrong_result& w, const verdict& v) const {
  std::string text(name_of(c.op));
  if (c.message_bytes > 0) text += " of " + format_bytes(c.message_bytes);
  text += " on communicator '" + joint_.communicator() + "' of " + std::to_string(num_ranks_) +
          " ranks: the result of " + name_of(*v.arms[0]);
  for (const arm* other : v.arms.subspan(1)) text += " and of " + name_of(*other);
  text += " is wrong";
  if (const std::string where = place_of(w); !where.empty()) text += " (" + where + ")";
  if (v.reference) text += ", the result of " + name_of(*v.reference) + " is right";
  return text;
}

}  // namespace railpass::internal
