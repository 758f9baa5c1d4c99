// SPDX-License-Identifier: BSL-1.0
//
// State that the communicators of one process share. Layers above keep the state of single
// communicators.
#pragma once

#include "lib/runtime/host_ledger.hpp"
#include "lib/runtime/knowledge.hpp"
#include "lib/runtime/leaders.hpp"
#include "lib/runtime/trace_file.hpp"
#include "models/profile.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/knowledge/advisories.hpp"
#include "railpass/knowledge/near.hpp"
#include "railpass/knowledge/plan.hpp"
#include "railpass/knowledge/quarantine.hpp"
#include "railpass/knowledge/recall.hpp"
#include "railpass/select/lockstep/account.hpp"
#include "railpass/select/lockstep/exclusions.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <mpi.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace railpass::internal {

struct shared_rails;

/// The name that MPI has for the communicator.
std::string name_of_communicator(MPI_Comm comm);

/// A communicator as the process knows it. What has been learnt may be asked for while other
/// threads make calls on the communicator.
class known_communicator {
 public:
  virtual int num_ranks() const = 0;
  /// MPI ends, and no call follows: brings the times of the last calls to the leaders, as far as
  /// messages have come, without waiting. Returns whether nothing is left to do. Local.
  virtual bool conclude() = 0;
  /// The communicator or MPI ends: all later calls are native. Local.
  virtual void leave() = 0;
  /// After leave(): frees what calls needed.
  virtual void drop() = 0;
  /// Adds everything that has been learnt.
  virtual void add_statistics(select::statistics_dump& dump) const = 0;
  /// Adds contexts that are informative for this problem.
  virtual void add_contexts_like(const knowledge::problem& of,
                                 select::statistics_dump& dump) const = 0;
  /// Adds what was learnt for near features: see knowledge::near().
  virtual void add_near(const knowledge::near_search& wanted,
                        std::vector<knowledge::neighbour>& found) const = 0;

 protected:
  ~known_communicator() = default;
};

class process {
 public:
  /// The only object of the process, made at the first call after MPI_Init and never destroyed.
  /// Null before MPI is initialised and once MPI has begun to finalize.
  static process* get() {
    process* const known = running_.load(std::memory_order_acquire);
    return known ? known : make();
  }
  /// Called when MPI_Finalize begins: by the preload library, or by MPI when it deletes the
  /// attributes of MPI_COMM_SELF. May be called again. Local.
  static void end();

  const settings& values() const { return values_; }
  int datatype_key() const { return datatype_key_; }
  clock_function clock() const { return clock_; }
  /// For tests. Applies to later calls.
  void use_clock(clock_function other) {
    clock_ = other;
    began_s_ = clock_();
  }

  /// The cost of tuning of all communicators whose rank 0 is this process.
  select::account& account() { return account_; }
  /// Whether the account allows tuning one more of their contexts, or one more such communicator.
  bool may_tune_more() { return account_.allows_more(steady_clock_s()); }

  /// The profile that a setting names, read once. Null if the setting is empty, or if the profile
  /// is unusable on this machine, for `num_hosts` hosts or for these rails (see rails_mark), which
  /// is recorded.
  const profile* read_profile(const std::string& path, int num_hosts, const std::string& rails);

  /// Knowledge about this problem or a similar problem, from earlier runs and from other
  /// communicators of this run. Throws std::bad_alloc.
  std::optional<knowledge::experience> recall(const knowledge::problem& of);
  /// From now on no knowledge is recalled, and nothing that calls teach is kept; quarantine and
  /// records of hangs go on. For measurements, before any communicator is tuned. Local.
  void keep_no_knowledge();
  /// Knowledge about problems of a function set with near features, the nearest first; see
  /// knowledge::near(). Live communicators of this run count whatever the setting. Throws
  /// std::bad_alloc.
  std::vector<knowledge::neighbour> recall_near(const knowledge::near_search& wanted);
  /// Sends the knowledge that rank 0 of MPI_COMM_WORLD has read, and the resulting stakes, to all
  /// ranks. Collective over MPI_COMM_WORLD, before any call, if all ranks run railpass.
  void share_knowledge();
  /// The stakes of calls of communicators of `num_ranks` ranks; equal on all ranks of
  /// MPI_COMM_WORLD.
  const knowledge::stakes& at_stake(int num_ranks) const {
    return num_ranks == world_size_ ? at_stake_.of_all : at_stake_.of_fewer;
  }

  /// Algorithms that calls must not use, as this process knows them. A communicator's ranks unite
  /// their tables when its tuning begins; see session::exclude for communicators that are tuned.
  select::exclusions exclusions();
  /// Adds to them. Local.
  void exclude(const select::exclusion& e);
  /// Adds what earlier runs have put into quarantine. The first call waits for the files for some
  /// seconds; a later call adds what they hold if they took longer. On rank 0 of MPI_COMM_WORLD and
  /// of each communicator that is tuned. Local.
  void know_quarantine();
  /// Records the known faults that calls of the MPI library's own collective may meet, once each.
  void say_known_faults(collective op, const select::excludable_call& c);
  /// Keeps the record of a wrong result for later runs, or withdraws what this run has kept. Fills
  /// in MPI library, version and time. Local.
  void quarantine(knowledge::quarantined q, bool withdraws);
  /// Gives all ranks the exclusions of all, unless all have the same. Collective over
  /// MPI_COMM_WORLD, before any call, if all ranks run railpass.
  void share_exclusions(bool all_have_the_same);
  /// Whether that was called.
  bool shares_exclusions() const { return shares_exclusions_; }

  /// From now on, communicators agree in their first call. On all ranks before any call, or on no
  /// rank.
  void begin_at_first_calls() { begins_at_first_calls_ = true; }
  /// Of a communicator within the world, in which all ranks have said so.
  bool begins_at_first_calls(MPI_Comm comm) const {
    return begins_at_first_calls_ && is_in_one_world(comm);
  }
  /// True without memory to find out: all ranks in one world reach the agreement.
  static bool is_in_one_world(MPI_Comm comm);

  /// The plan that the setting names; null: none. Equal on all ranks with equal marks.
  const knowledge::plan* plan() const { return plan_ ? &*plan_ : nullptr; }
  std::uint64_t plan_mark() const { return plan_mark_; }
  /// All ranks of MPI_COMM_WORLD have this plan. On all ranks before any call, or on no rank.
  void follow_plan_on_all_ranks() {
    all_follow_plan_ = true;
    begin_at_first_calls();
  }
  bool all_follow_plan() const { return all_follow_plan_; }
  /// A communicator of this rank follows the plan.
  void note_plan_followed() { plan_followed_ = true; }

  /// A bit for each collective whose arm, named by `use`, has run.
  void note_pins_run(std::uint32_t collectives) { pins_run_ |= collectives; }

  /// A function set with this name exists.
  void note_set(const std::string& name);

  /// For leaders, after merges: stores what has been learnt, or sends it to the rank that stores
  /// it, if enough time has passed.
  void after_merge() {
    if (clock_() - began_s_ >= keep_after_s_) keep_so_far();
  }

  /// One sentence for the log sink. Repeated sentences are dropped.
  void record(std::string_view text);
  /// Like record(), for mistakes of the user: the world's rank 0 also writes to standard error.
  void warn(std::string_view text);
  /// Reports that `rank` of a communicator has waited for `waited_s` seconds; see report_of_wait.
  void report_wait(std::string text, int rank, double waited_s);
  /// A call has failed outside the MPI library. Writes one line to standard error per communicator,
  /// call and reason, because the message of MPI's error handler lacks these.
  void complain(MPI_Comm comm, std::string_view call, std::string_view reason);
  /// Adds a call that was made to RAILPASS_TRACE: the line that `describe` returns. Without memory
  /// the line is lost.
  template <class Describe>
  void trace(const Describe& describe) {
    const own_float_environment own;
    try {
      const trace_line line = describe();
      write_trace(line.text(), line.started_s + line.seconds);
    } catch (const std::bad_alloc&) {
    }
  }
  bool tracing() const { return trace_.is_open(); }

  void add(known_communicator& one);
  /// Keeps the communicator's results for the dump.
  void remove(known_communicator& one);

  /// Open rails, which end before MPI does.
  void add(const std::shared_ptr<shared_rails>& rails);
  void remove(const std::shared_ptr<shared_rails>& rails);
  std::vector<std::shared_ptr<shared_rails>> open_rails();

  /// Held while a communicator gets its session, because another thread may call statistics().
  std::unique_lock<std::mutex> hold_statistics() { return std::unique_lock(mutex_); }
  /// Everything learnt on communicators whose rank 0 is this process, including freed
  /// communicators.
  select::statistics_dump statistics();
  /// For the dump: the largest number of hosts of any communicator whose rank 0 is this process.
  void note_hosts(int num_hosts);
  /// Kept by communicators of all ranks; gathered when MPI is finalized.
  host_ledger& ledger() { return ledger_; }
  int num_ranks() const { return world_size_; }

 private:
  // Separate from get(), which is part of every call.
  [[gnu::noinline, gnu::cold]] static process* make();
  explicit process(std::vector<std::string>& problems);  // problems for the caller to record
  process(std::vector<std::string>& problems, environment_settings read);
  static int on_finalize(MPI_Comm, int, void*, void*);
  void read_plan(std::vector<std::string>& problems);
  void read_advisories(std::vector<std::string>& problems);
  void record(std::string_view text, bool for_user);
  void write_trace(const std::string& line, double now_s);
  void finalize();
  void conclude();
  void say_summary();
  void gather_ledgers();
  void look_for_unknown_names();
  void look_for_idle_pins();
  void keep_so_far();
  // The file of this name for the ranks of this MPI_COMM_WORLD: a program that another one spawned
  // has the same settings, and its ranks are counted from 0, too.
  std::string file_of_program(const std::string& name) const;
  void keep_learnt();
  knowledge::run_record learnt();
  void remember(const select::statistics_dump& learnt);
  void leave_rails();

  // Null before the first call, and from the start of MPI_Finalize on.
  static std::atomic<process*> running_;

  settings values_;
  bool keeps_knowledge_ = values_.enable && values_.knowledge != "off";
  clock_function clock_ = steady_clock_s;
  const int world_rank_, world_size_;
  const bool writes_as_spawned_;  // see file_of_program()
  const std::string mpi_library_;
  double began_s_ = 0;
  std::atomic<double> keep_after_s_;  // seconds since began_s_
  int datatype_key_ = MPI_KEYVAL_INVALID;
  // Protects against calls on several communicators from several threads. Not held during calls of
  // MPI or of the log handler, which may call railpass.
  std::mutex mutex_;
  // By path, number of hosts and rails; null: unusable.
  std::map<std::tuple<std::string, int, std::string>, std::unique_ptr<profile>> profiles_;
  std::set<std::string> recorded_;
  select::exclusions exclusions_;
  std::mutex quarantine_mutex_;
  quarantine_reader quarantine_;
  bool knows_quarantine_ = false;
  std::optional<std::vector<knowledge::advisory>> known_faults_;  // read when first asked for
  std::set<std::string> sets_;                                    // names of function sets
  trace_file trace_;
  std::vector<known_communicator*> communicators_;
  std::vector<std::shared_ptr<shared_rails>> rails_;
  std::vector<knowledge::experience> known_,
      known_here_;  // by earlier runs; by freed communicators
  knowledge::stakes_of_job at_stake_;
  kept_knowledge kept_;  // knowledge: rank 0 of MPI_COMM_WORLD; quarantine: all leaders
  leaders leaders_;
  select::account account_;
  select::statistics_dump freed_;  // of freed communicators
  int num_hosts_ = 1;
  host_ledger ledger_;
  std::vector<select::host_statistics> hosts_;  // rank 0 of MPI_COMM_WORLD, at the end
  std::atomic<std::uint32_t> pins_run_{0};
  std::atomic<bool> plan_followed_{false};
  bool shares_exclusions_ = false, begins_at_first_calls_ = false;
  std::optional<knowledge::plan> plan_;
  std::uint64_t plan_mark_ = 0;  // of its text; 0: no plan
  bool all_follow_plan_ = false;
};

/// Charges the time of its life to the process' account, as work of railpass.
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
