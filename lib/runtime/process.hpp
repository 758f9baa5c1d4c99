// SPDX-License-Identifier: BSL-1.0
//
// What one process shares between its communicators. Everything else hangs on a communicator.
#pragma once

#include "lib/runtime/knowledge.hpp"
#include "lib/runtime/leaders.hpp"
#include "lib/runtime/trace_file.hpp"
#include "models/profile.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/knowledge/near.hpp"
#include "railpass/knowledge/recall.hpp"
#include "railpass/select/lockstep/account.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <mpi.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace railpass::internal {

class communicator_state;
struct shared_rails;

class process {
 public:
  /// The process' one object, made at the first call after MPI_Init and never destroyed; null while
  /// MPI is not initialised or has begun to finalize.
  static process* get() {
    process* const known = running_.load(std::memory_order_acquire);
    return known ? known : make();
  }
  /// MPI_Finalize begins: called by the preload library, and by MPI where that is not there, when
  /// it deletes the attributes of MPI_COMM_SELF. May be called again. Local.
  static void end();

  const settings& values() const { return values_; }
  int communicator_key() const { return communicator_key_; }
  int datatype_key() const { return datatype_key_; }
  int rails_key() const { return rails_key_; }
  clock_function clock() const { return clock_; }
  /// For tests. Of calls that are made from then on.
  void use_clock(clock_function other) {
    clock_ = other;
    began_s_ = clock_();
  }

  /// What tuning costs, of all communicators whose rank 0 is this process.
  select::account& account() { return account_; }
  /// Whether that allows one more of their contexts, or one more of them, to be tuned.
  bool may_tune_more() { return account_.allows_more(steady_clock_s()); }

  /// The profile a setting names, read once; null if none is named or it cannot be used on this
  /// machine, on so many hosts or with these rails (see rails_mark), which is recorded.
  const profile* read_profile(const std::string& path, int num_hosts, const std::string& rails);

  /// What earlier runs, and other communicators of this one, learnt of this problem or one like it.
  /// Throws std::bad_alloc.
  std::optional<knowledge::experience> recall(const knowledge::problem& of);
  /// What they learnt of problems of a function set that are near this one by their features, the
  /// nearest first; see knowledge::near(). What lives in this run counts whatever the setting.
  /// Throws std::bad_alloc.
  std::vector<knowledge::neighbour> recall_near(const knowledge::problem& of,
                                                const feature_distance& by);
  /// Hands out what the rank 0 of MPI_COMM_WORLD has read, and what is at stake by that. Collective
  /// over that, before any call, where all ranks run railpass.
  void share_knowledge();
  /// What is at stake in calls of communicators of so many ranks, all of MPI_COMM_WORLD; the same
  /// on all of these.
  const knowledge::stakes& at_stake(int num_ranks) const {
    return num_ranks == world_size_ ? at_stake_.of_all : at_stake_.of_fewer;
  }

  /// From now on communicators agree in their first call. On all ranks before any call, or on none.
  void begin_at_first_calls() { begins_at_first_calls_ = true; }
  bool begins_at_first_calls() const { return begins_at_first_calls_; }

  /// Of these collectives the arms that `use` names have run; a bit for each.
  void note_pins_run(std::uint32_t collectives) { pins_run_ |= collectives; }

  /// There is a function set of that name.
  void note_set(const std::string& name);

  /// For leaders, now and then after merges: what has been learnt so far is kept, or told to who
  /// keeps it, if it is time for that.
  void after_merge() {
    if (clock_() - began_s_ >= keep_after_s_) keep_so_far();
  }

  /// One sentence for the log sink; the same sentence is passed on only once.
  void record(std::string_view text);
  /// The same of what the user has got wrong: the world's rank 0 says it on standard error, too.
  void warn(std::string_view text);
  /// That `rank` of a communicator has waited for `waited_s`; heard as report_of_wait says.
  void report_wait(std::string text, int rank, double waited_s);
  /// A call has failed, and not in the MPI library: one line on standard error for each
  /// communicator, call and reason, as what MPI's error handler says names none of them.
  void complain(MPI_Comm comm, std::string_view call, std::string_view reason);
  /// One line for RAILPASS_TRACE.
  void trace(const std::string& line);
  bool tracing() const { return trace_.is_open(); }

  void add(communicator_state& state);
  /// Keeps what the communicator has learnt for the dump.
  void remove(communicator_state& state);

  /// Rails that are open, which end before MPI does.
  void add(const std::shared_ptr<shared_rails>& rails);
  void remove(const std::shared_ptr<shared_rails>& rails);
  std::vector<std::shared_ptr<shared_rails>> open_rails();

  /// Held while a communicator gets its session, as statistics() may be asked by another thread.
  std::unique_lock<std::mutex> hold_statistics() { return std::unique_lock(mutex_); }
  /// Everything learnt on communicators whose rank 0 is this process, those freed included.
  select::statistics_dump statistics();
  /// For the dump: the most hosts of any communicator whose rank 0 is this process.
  void note_hosts(int num_hosts);

 private:
  // Apart from get(), which every call goes through.
  [[gnu::noinline, gnu::cold]] static process* make();
  explicit process(std::vector<std::string>& problems);  // which the caller is to record
  process(std::vector<std::string>& problems, environment_settings read);
  static int on_finalize(MPI_Comm, int, void*, void*);
  void record(std::string_view text, bool for_user);
  void finalize();
  void say_summary();
  void look_for_unknown_names();
  void look_for_idle_pins();
  void keep_so_far();
  void keep_learnt();
  knowledge::run_record learnt();
  void remember(const select::statistics_dump& learnt);
  void leave_rails();

  // Null before the first call, and from the beginning of MPI_Finalize on.
  static std::atomic<process*> running_;

  settings values_;
  clock_function clock_ = steady_clock_s;
  const int world_rank_, world_size_;
  const std::string mpi_library_;
  double began_s_ = 0;
  std::atomic<double> keep_after_s_;  // since then
  int communicator_key_ = MPI_KEYVAL_INVALID;
  int datatype_key_ = MPI_KEYVAL_INVALID;
  int rails_key_ = MPI_KEYVAL_INVALID;
  // Calls on several communicators from several threads meet here. Not held while MPI or the log
  // handler, which may call railpass, is called.
  std::mutex mutex_;
  // By path, number of hosts and rails; null: unusable.
  std::map<std::tuple<std::string, int, std::string>, std::unique_ptr<profile>> profiles_;
  std::set<std::string> recorded_;
  std::set<std::string> sets_;  // names of function sets
  trace_file trace_;
  std::vector<communicator_state*> communicators_;
  std::vector<std::shared_ptr<shared_rails>> rails_;
  std::vector<knowledge::experience> known_;
  knowledge::stakes_of_job at_stake_;
  kept_knowledge kept_;  // rank 0 of MPI_COMM_WORLD
  leaders leaders_;
  select::account account_;
  select::statistics_dump freed_;  // of communicators that are gone
  int num_hosts_ = 1;
  std::atomic<std::uint32_t> pins_run_{0};
  bool begins_at_first_calls_ = false;
};

/// The time in which it lives is work of railpass, which the process' account pays.
class paid_work {
 public:
  explicit paid_work(process& by) : by_(by) {}
  ~paid_work() { by_.account().spend_on_work(steady_clock_s() - began_s_); }
  paid_work(const paid_work&) = delete;
  paid_work& operator=(const paid_work&) = delete;

 private:
  process& by_;
  const double began_s_ = steady_clock_s();
};

}  // namespace railpass::internal
