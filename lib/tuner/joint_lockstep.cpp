// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/joint_lockstep.hpp"

#include "lib/buffers/device_memory.hpp"
#include "lib/call/own_errors.hpp"
#include "lib/runtime/host_ledger.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/settings.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <new>
#include <sched.h>
#include <utility>

namespace railpass::internal {

joint_lockstep::joint_lockstep(const settings& values, process& owner, int rank, int num_ranks,
                               std::string subject)
    : steps_({.max_contexts = int(std::min<std::int64_t>(values.contexts, 1 << 16))}, rank,
             num_ranks),
      process_(owner),
      settings_(values),
      patience_s_(std::min(values.hang_report, 1.0)),
      rank_(rank),
      num_ranks_(num_ranks),
      subject_(std::move(subject)),
      words_(rank, num_ranks) {
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  is_shared_ = threads == MPI_THREAD_MULTIPLE && rank == 0;
  if (num_ranks < 2) return;
  lane_ = std::make_shared<base_lane>();
  merges_ = std::make_unique<merge_messages>(rank, num_ranks);
  merges_->connect(lane_);
  tree_ = {rank, num_ranks, 2};
}

void joint_lockstep::connect(base_mapping mapping, int lane_number, std::uint64_t name) {
  lane_->become(std::move(mapping), lane_number, name);
  over_mpi_.emplace(*lane_);
  words_.connect(lane_);
}

void joint_lockstep::measure_together(bool same_clock) {
  shared_clock* const agreed = lane_->of().clock.get();
  if (!same_clock && !agreed) return;
  steps_.share_clock();
  if (!same_clock) merges_->compare_clocks(*agreed);
}

void joint_lockstep::keep_ledger(host_ledger& kept) {
  if (!steps_.shares_clock()) return;
  ledger_ = &kept;
  if (const std::string why = ledger_->start(lane_->of().id); !why.empty())
    process_.record("the ledgers of hosts are not shown while the program runs: " + why);
}

// ---- first plans

int joint_lockstep::begin_context(int context, select::plan_message message) {
  plan_ = message;
  if (merges_)
    if (const int failure = hand_down(plan_, "the first plan")) {
      if (is_gone() || failure_ != own_error::unlike) leave_others();
      return failure;
    }
  const std::unique_lock lock = guard();
  steps_.adopt(context, plan_);
  return MPI_SUCCESS;
}

// ---- small messages

namespace {

template <class Word>
std::span<std::int32_t> as_sent(std::span<Word> words) {
  return {reinterpret_cast<std::int32_t*>(words.data()), words.size_bytes() / sizeof(std::int32_t)};
}

}  // namespace

int joint_lockstep::agree(std::span<std::uint64_t> words) {
  return reduce_to_all(words, "the agreement on shared memory", std::bit_and());
}

int joint_lockstep::find_largest(std::span<std::uint64_t> words, std::string_view doing) {
  return reduce_to_all(words, doing,
                       [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
}

int joint_lockstep::add_up(std::span<std::uint64_t> words) {
  return reduce_to_all(words, "the check of the result", std::plus());
}

template <class Combine>
int joint_lockstep::reduce_to_all(std::span<std::uint64_t> words, std::string_view doing,
                                  const Combine& combine) {
  const std::size_t size = words.size();
  const auto add = [&](const agreed_words& more, std::span<std::uint64_t> to) {
    std::ranges::transform(to, std::span(more).first(size), to.begin(), combine);
  };
  const int others = num_ranks_ - 1;
  int code = MPI_SUCCESS;
  for (int unit = agreement_round::first_unit(others); unit > 0 && code == MPI_SUCCESS;
       unit /= agreement_round::radix) {
    const agreement_round round(others, unit);
    std::ranges::copy(words, sent_.begin());
    if (round.before > 0) add(known_, std::span(sent_).first(size));
    code = exchange(round, size, doing);
    if (round.before == 0) known_ = arrived_[0];
    for (int i = round.before == 0 ? 1 : 0; i < round.messages(); ++i)
      add(arrived_[std::size_t(i)], std::span(known_).first(size));
  }
  if (code != MPI_SUCCESS) leave_others();
  if (others > 0) add(known_, words);
  return code;
}

int joint_lockstep::exchange(const agreement_round& round, std::size_t size,
                             std::string_view doing) {
  constexpr auto most = std::size_t(agreement_round::radix - 1);
  const auto n = std::size_t(round.messages());
  std::array<MPI_Request, most> received, sent;
  received.fill(MPI_REQUEST_NULL);
  sent.fill(MPI_REQUEST_NULL);
  const auto peer = [&](std::size_t i, int sign) {
    return wrap(rank_ + sign * round.distance(int(i)), num_ranks_);
  };
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < n && code == MPI_SUCCESS; ++i) {
    agreed_words& told = round.has_own(int(i)) ? sent_ : known_;
    code = start_receive(peer(i, -1), as_sent(std::span(arrived_[i]).first(size)), received[i]);
    if (code == MPI_SUCCESS)
      code = start_send(peer(i, 1), as_sent(std::span(told).first(size)), sent[i]);
  }
  for (std::size_t i = 0; i < n && code == MPI_SUCCESS; ++i) {
    code = end_send(peer(i, 1), sent[i], doing);
    if (code == MPI_SUCCESS) code = end_receive(peer(i, -1), received[i], doing);
  }
  return code;
}

int joint_lockstep::hand_down(std::span<std::int32_t> words, std::string_view doing) {
  if (rank_ > 0)
    if (const int failure = receive_from(tree_.parent(), words, doing)) return failure;
  for (int i = tree_.num_children(); i-- > 0;)
    if (const int failure = send_to(tree_.child(i), words, doing)) return failure;
  return MPI_SUCCESS;
}

int joint_lockstep::send_to(int peer, std::span<std::int32_t> words, std::string_view doing) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int failure = start_send(peer, words, request)) return failure;
  return end_send(peer, request, doing);
}

int joint_lockstep::start_send(int peer, std::span<std::int32_t> words, MPI_Request& request) {
  return lane_->isend(words.data(), int(words.size()), peer, base_lane::plan_tag, &request);
}

int joint_lockstep::end_send(int peer, MPI_Request& request, std::string_view doing) {
  MPI_Status status;
  const awaited_peer receiver{.rank = peer, .sends = 1};
  return wait_for(request, status, doing, &receiver);
}

int joint_lockstep::receive_from(int peer, std::span<std::int32_t> words, std::string_view doing) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int failure = start_receive(peer, words, request)) return failure;
  return end_receive(peer, request, doing);
}

int joint_lockstep::start_receive(int peer, std::span<std::int32_t> words, MPI_Request& request) {
  return lane_->irecv(words.data(), int(words.size()), peer, base_lane::plan_tag, &request);
}

int joint_lockstep::end_receive(int peer, MPI_Request& request, std::string_view doing) {
  MPI_Status status;
  const awaited_peer sender{.rank = peer, .receives = 1};
  return wait_for(request, status, doing, &sender);
}

// ---- times and merges

void joint_lockstep::record(const select::timed_call& chosen, double started_s, double ended_s,
                            bool gave_core, select::rank_role role) {
  const std::unique_lock lock = guard();
  if (chosen.timed) {
    steps_.record(chosen, ended_s - started_s, steps_.gap_s(chosen, started_s), gave_core);
    const bool has_own_clock = process_.clock() != steady_clock_s;
    if (has_own_clock) steps_.lose_clock();
    if (steps_.shares_clock() && (!has_own_clock || ledger_))
      steps_.await_next(chosen, started_s, ended_s, role);
  }
  if (chosen.notes_end) steps_.note_end(chosen, ended_s);
}

void joint_lockstep::note_next(collective op) {
  const std::unique_lock lock = guard();
  const select::timed_stay stay = steps_.note_next(process_.clock()(), select::dependence_in(op));
  if (ledger_) ledger_->add(stay);
}

void joint_lockstep::merge_steps() {
  if (!merges_) {
    const std::unique_lock lock = guard();
    steps_.begin_steps(process_.clock()());
    while (steps_.due() != select::merge_step::none) (void)steps_.step_alone();
    steps_.end_steps(process_.clock()());
    return;
  }
  {
    const std::unique_lock lock = guard();
    steps_.begin_steps(process_.clock()());
  }
  bool mismatch = false;
  const int code = merges_->make_due_steps(
      steps_, is_shared_ ? &mutex_ : nullptr,
      [this](MPI_Request& r, MPI_Status& s) { return wait_for(r, s, "a merge"); }, mismatch);
  note_merge(code, mismatch);
  {
    const std::unique_lock lock = guard();
    steps_.end_steps(process_.clock()());
  }
  if (rank_ == 0) process_.after_merge();
}

bool joint_lockstep::conclude() {
  if (failure_ || steps_.standing() != select::standing::tuned) return true;
  if (num_ranks_ < 2) {
    const std::unique_lock lock = guard();
    steps_.conclude_alone();
    return true;
  }
  if (!merges_) return true;
  if (lane_) hear();  // not keep_on(): rails of ranks that have concluded say farewell
  if (failure_) return true;
  {
    const std::unique_lock lock = guard();
    steps_.conclude();
  }
  bool mismatch = false;
  const bool all = merges_->conclude(steps_, is_shared_ ? &mutex_ : nullptr, mismatch);
  note_merge(MPI_SUCCESS, mismatch);
  return all;
}

void joint_lockstep::leave() {
  if (!merges_) return;
  bool mismatch = false;
  merges_->leave(steps_, is_shared_ ? &mutex_ : nullptr, mismatch);
  note_merge(MPI_SUCCESS, mismatch);
  if (failure_) {
    words_.state().leave(steps_.calls());
    words_.tell();
  }
  try {
    bases::of_process().settle();
    bases::of_process().keep(std::move(merges_));
  } catch (const std::bad_alloc&) {  // later messages are dropped, and the number is never reused
    lane_->lose();
  }
}

void joint_lockstep::note_merge(int code, bool mismatch) {
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    PMPI_Error_string(code, text, &length);
    process_.record("a message of " + subject_ + " about its tuning has failed: " + text);
    leave_others();
  }
  if (!mismatch || failure_) return;
  if (steps_.device_found())
    process_.record(subject_ + " is not tuned any more: " + std::string(told_of_device_memory));
  else
    process_.record(
        subject_ +
        " is not tuned any more: its ranks did not make the same calls through railpass");
}

int joint_lockstep::wait_for(MPI_Request& request, MPI_Status& status, std::string_view doing,
                             const awaited_peer* told) {
  constexpr unsigned tests_per_look = 16, tests_per_clock = 1024;
  std::optional<patience> left;
  unsigned tests = 0;
  for (int done = 0;;) {
    if (const int failure = PMPI_Test(&request, &done, &status)) return failure;
    if (done) return MPI_SUCCESS;
    if (++tests % tests_per_look == 0) {
      keep_on();
      // A merge informs all ranks that tuning has ended, for unlike calls and for other reasons.
      if (told ? is_lost() : is_gone()) return code_of(failure());
    }
    if (told && tests % tests_per_clock == 0) {
      const double now_s = process_.clock()();
      if (!left) left.emplace(patience_s(), now_s);
      if (left->is_out(now_s)) tell_wait(doing, {told, 1}, left->waited_s(now_s));
    }
    sched_yield();
  }
}

// ---- failures

// Many ranks may see the same failure. A rank that has already heard of the failure does not inform
// all other ranks again.
void joint_lockstep::fail(own_error why) {
  if (failure_) return;
  if (lane_) hear();
  if (failure_) return;
  note_failure(why);
  if (lane_)
    lane_->tell_all(why == own_error::unlike ? base_lane::trouble::unlike
                                             : base_lane::trouble::failed);
  words_.tell();
}

void joint_lockstep::take(select::turn what) {
  const std::unique_lock lock = guard();
  steps_.take(what);
}

void joint_lockstep::note_failure(own_error why) {
  failure_ = why;
  take(select::turn::failure);
  words_.begin(why == own_error::unlike ? base_lane::trouble::unlike : base_lane::trouble::failed,
               steps_.calls());
  if (lane_) lane_->lose();
}

void joint_lockstep::leave_others() {
  fail();
  if (is_gone()) return;
  take(select::turn::departure);
  if (lane_) lane_->tell_all(base_lane::trouble::gone);
}

void joint_lockstep::hear() {
  const base_lane::news heard = lane_->look();
  const base_lane::trouble of_tree = words_.look(steps_.calls());
  if (heard.announced) hear(heard.announcer, *heard.announced);
  const base_lane::trouble what = std::max(heard.worst, of_tree);
  if (what == base_lane::trouble::none) return;
  const bool unlike = heard.unlike || of_tree == base_lane::trouble::unlike;
  if (!failure_) {
    note_failure(unlike ? own_error::unlike : own_error::rank_failed);
    if (!unlike)
      process_.record(
          "another rank has failed in a call of " + subject_ +
          ": calls fail until all ranks know of the failure, and are not tuned after that");
  }
  if (what == base_lane::trouble::gone) take(select::turn::departure);
}

void joint_lockstep::keep_on() {
  if (companion_ && !failure_ && !companion_()) fail();
  if (lane_) hear();
  if (failure_) words_.tell();
}

// This time determines how long this rank waits for other ranks, but not what this rank may do.
void joint_lockstep::stop() {
  constexpr double silence_s = 1;
  const std::int64_t next = steps_.calls() + 1;
  select::fallback& state = words_.state();
  const double began_s = steady_clock_s();
  double since_s = began_s;
  while (!is_gone()) {
    keep_on();
    if (state.may_enter(next) && words_.tell()) break;
    sched_yield();
    const double now_s = steady_clock_s();
    if (now_s - since_s < silence_s) continue;
    if (settings_.hang_report > 0)
      tell_wait("the end of tuning after a failure", {}, now_s - began_s);
    if (!state.was_asked()) break;
    state.lose_patience();
    since_s = now_s;
  }
  if (!is_gone() && state.is_native(next)) take(select::turn::fallback);
}

void joint_lockstep::hear(std::int32_t from, const told_call& theirs) {
  if (failure_) return;
  try {
    const std::string how = told_.difference(from, theirs);
    if (!how.empty()) differ(how + ", on rank " + std::to_string(rank_));
  } catch (const std::bad_alloc&) {  // the other rank announces its call again
  }
}

void joint_lockstep::differ(std::string how) {
  if (failure_) return;
  why_unlike_ = std::move(how);
  fail(own_error::unlike);
}

void joint_lockstep::tell_wait(std::string_view doing, std::span<const awaited_peer> peers,
                               double waited_s) {
  const told_call* const own = told_.find(steps_.calls());
  if (own)
    for (const awaited_peer& p : peers) lane_->announce(*own, p.rank);
  if (waited_s < settings_.hang_report) return;
  double told_s = settings_.hang_report;
  while (2 * told_s <= waited_s) told_s *= 2;
  std::string text = "rank " + std::to_string(rank_) + " of " + std::to_string(num_ranks_) +
                     " is inside call " + std::to_string(steps_.calls()) + " of " + subject_ +
                     " (" + (own ? own->text() + ", " : "") + std::string(doing) +
                     ") for more than " + railpass::detail::show_setting(told_s) +
                     " s and waits for";
  if (peers.empty()) text += " other ranks";
  for (const awaited_peer& p : peers)
    text += " rank " + std::to_string(p.rank) + " (" + std::to_string(p.sends) + " sends, " +
            std::to_string(p.receives) + " receives)";
  process_.report_wait(std::move(text), rank_, told_s);
}

}  // namespace railpass::internal
