// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/process.hpp"

#include "collectives/registry.hpp"
#include "lib/call/datatype.hpp"
#include "lib/files/call_trace.hpp"
#include "lib/files/files.hpp"
#include "lib/group/base.hpp"
#include "lib/group/common_exclusions.hpp"
#include "lib/rails/names.hpp"
#include "lib/runtime/halt_watch.hpp"
#include "lib/runtime/hang_watch.hpp"
#include "lib/runtime/known_faults.hpp"
#include "lib/runtime/log.hpp"
#include "lib/runtime/setting_values.hpp"
#include "lib/runtime/shared_rails.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/knowledge/joined.hpp"
#include "railpass/select/statistics/freed.hpp"
#include "railpass/select/statistics/summary.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <new>
#include <sched.h>
#include <span>
#include <unistd.h>
#include <utility>

namespace railpass::internal {

namespace {

std::mutex making;
std::atomic<bool> ended{false};
// Never destroyed: communicators may be freed, and MPI finalized, after all destructors have run.
process* made = nullptr;

std::string mpi_library() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, ' ');  // 8 KiB in MPICH
  int length = 0;
  PMPI_Get_library_version(text.data(), &length);
  text.resize(std::size_t(length));
  return text;
}

int world_rank() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
// Before the program disconnects from its parents. SMPI does not know this function, and ends.
bool is_spawned() {
  MPI_Comm parents = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parents);
  return parents != MPI_COMM_NULL;
}
int world_size() {
  int size = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// Rank 0 alone looks for settings that name missing things, because this check reads files.
environment_settings read_and_checked() {
  settings_in_force read = read_settings(environ);
  for (std::string& problem : read.problems) problem += "; ignored";
  if (world_rank() == 0 && read.values.enable)
    std::ranges::move(problems_of(read), std::back_inserter(read.problems));
  // Calls that a plan does not name are native, and nothing is learnt.
  if (!read.values.plan.empty()) {
    read.values.policy = "native";
    read.values.knowledge = "off";
  }
  return {.values = std::move(read.values),
          .from_environment = {},
          .problems = std::move(read.problems)};
}

// Seconds between two savings of what a run has learnt. Each pause is as long as the run so far, up
// to the longest pause, so that a killed run loses at most half of its knowledge. Other leaders
// than rank 0 write no file; they tell rank 0 a few dozen times in all, as messages that nobody
// receives wait in its memory.
constexpr double first_keeping_s = 1, first_telling_s = 0.1, longest_pause_s = 3600;
// Seconds that rank 0 waits for the last messages of other leaders, and that every rank waits for
// the last times of other ranks. These ranks come to MPI_Finalize, which waits for them, too.
constexpr double last_words_s = 0x1p-6, last_times_s = 0x1p-2;

// As rank 0 knows it; empty if there is no base.
knowledge::stakes_of_job what_is_at_stake(std::span<const knowledge::experience> known) {
  const own_float_environment own;
  try {
    const base_mapping world = bases::of_process().find(MPI_COMM_WORLD);
    if (!world.of) return {};
    const host_counts on = count_hosts(*world.of->hosts, world.ranks, world.num_ranks);
    return {knowledge::stakes::of_knowledge(known, world.num_ranks, on.ranks_per_host),
            knowledge::stakes::of_sizes(on.num_hosts == 1)};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

std::string owed_over(open_transport& rails) {
  return "a message over rails '" + rails.rails() + "' to rank " +
         std::to_string(rails.owed().value_or(MPI_PROC_NULL)) + " of " +
         std::to_string(rails.num_ranks()) + ", whose send has ended,";
}

}  // namespace

std::string name_of_communicator(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  return {name, std::size_t(length)};
}

constinit std::atomic<process*> process::running_{nullptr};

process* process::make() {
  if (ended.load(std::memory_order_acquire)) return nullptr;
  int initialized = 0, finalized = 0;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  if (!initialized || finalized) return nullptr;
  std::vector<std::string> problems;
  {
    const own_float_environment own;
    const std::lock_guard lock(making);
    if (!made) {
      made = new process(problems);
      running_.store(made, std::memory_order_release);
    }
  }
  process* const known = running_.load(std::memory_order_acquire);
  if (known)
    for (const std::string& problem : problems) known->warn(problem);
  if (known && known->world_rank_ == 0) known->know_quarantine();
  return known;
}

process::process(std::vector<std::string>& problems) : process(problems, read_and_checked()) {}

process::process(std::vector<std::string>& problems, environment_settings read)
    : values_(std::move(read.values)),
      world_rank_(world_rank()),
      world_size_(world_size()),
      writes_as_spawned_((!values_.stats.empty() || !values_.trace.empty()) && is_spawned()),
      mpi_library_(mpi_library()),
      began_s_(clock_()),
      keep_after_s_(world_rank_ == 0 ? first_keeping_s : first_telling_s),
      kept_(values_.enable ? values_.knowledge : "off") {
  problems = std::move(read.problems);
  if (values_.enable && !values_.plan.empty()) read_plan(problems);
  if (values_.enable && !values_.advisories.empty()) read_advisories(problems);
  if (values_.enable) hang_watch::begin(values_.hang_report, values_.log);
  if (keeps_knowledge_)
    halt_watch::begin(values_.hang_report, values_.knowledge, mpi_library_, values_.log);

  create_datatype_key(&datatype_key_);
  // MPI_Finalize deletes attributes of MPI_COMM_SELF first, while messages still travel. Attributes
  // of MPI_COMM_WORLD are deleted too late.
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, key, this);
  PMPI_Comm_free_keyval(&key);

  // Contexts contain the ranks per host, so the number of hosts is not a mark of the machine here.
  if (world_rank_ == 0 && values_.enable)
    known_ = read_knowledge(values_.knowledge, files::this_machine(1, mpi_library_), problems);
  if (world_rank_ == 0) kept_.tidy();

  if (!values_.trace.empty()) {
    const std::string problem =
        trace_.open(file_of_program(values_.trace) + "." + std::to_string(world_rank_));
    if (!problem.empty()) problems.push_back(problem);
    write_trace(std::string(files::trace_header), clock_());
  }
}

std::string process::file_of_program(const std::string& name) const {
  return writes_as_spawned_ ? name + ".spawned" + std::to_string(::getpid()) : name;
}

// A rank that cannot follow its plan must not be tuned in another way.
void process::read_plan(std::vector<std::string>& problems) {
  try {
    const std::string text = files::read_text(values_.plan);
    plan_ = files::parse_plan(text, values_.plan, files::this_machine(1, mpi_library_));
    // The same plan has other entries for other rails.
    plan_mark_ = text_hash().add(text).add(rails_mark(values_.rails)).value();
  } catch (const error& problem) {
    problems.push_back("RAILPASS_PLAN: " + std::string(problem.what()) +
                       "; every call goes to the MPI library");
    values_.enable = false;
  }
}

void process::read_advisories(std::vector<std::string>& problems) {
  try {
    known_faults_ = known_faults(values_.advisories, mpi_library_);
    for (const knowledge::advisory& a : *known_faults_)
      if (const auto e = knowledge::exclusion_of(a); e && !exclusions_.add(*e))
        throw error(values_.advisories + ": at most " + std::to_string(select::exclusions::most) +
                    " advisories that name what to avoid are heeded");
  } catch (const error& problem) {
    problems.push_back("RAILPASS_ADVISORIES: " + std::string(problem.what()));
  }
}

int process::on_finalize(MPI_Comm, int, void*, void*) {
  end();
  return MPI_SUCCESS;
}

bool process::is_in_one_world(MPI_Comm comm) {
  try {
    return bases::is_one_world(comm);
  } catch (const std::bad_alloc&) {
    return true;
  }
}

void process::end() {
  // From here on, all calls of this rank are native; other ranks follow when they come here. No
  // call in between needs ranks of both kinds.
  ended.store(true, std::memory_order_release);
  if (process* const mine = running_.exchange(nullptr, std::memory_order_acq_rel)) mine->finalize();
}

void process::finalize() {
  // MPI allows no other thread inside a call now. Waits for other ranks are short, if any.
  conclude();
  for (known_communicator* const one : communicators_) one->leave();
  halt_watch::end();
  leave_rails();
  gather_ledgers();
  if (!values_.stats.empty()) {
    const own_float_environment own;
    try {
      const select::statistics_dump dump = statistics();
      const std::string file = file_of_program(values_.stats);
      if (world_rank_ == 0)
        files::write_text(file, files::to_json(dump));
      else if (!dump.contexts.empty())
        files::write_text(file + ".rank" + std::to_string(world_rank_), files::to_json(dump));
    } catch (const std::exception& problem) {
      warn(std::string("RAILPASS_STATS: ") + problem.what());
    }
  }
  keep_learnt();
  if (values_.summary && world_rank_ == 0) say_summary();
  if (world_rank_ == 0) {
    look_for_unknown_names();
    look_for_idle_pins();
  }
  if (const std::string problem = trace_.close(); !problem.empty()) record(problem);
  std::vector<known_communicator*> ended;
  {
    const std::lock_guard lock(mutex_);  // a thread may still ask for statistics
    ended.swap(communicators_);
  }
  for (known_communicator* const one : ended) one->drop();
  bases::of_process().end();
}

void process::conclude() {
  const own_float_environment own;
  const double until_s = steady_clock_s() + last_times_s;
  for (;;) {
    bool all = true;
    for (known_communicator* const one : communicators_) all = one->conclude() && all;
    if (all || steady_clock_s() > until_s) return;
    sched_yield();
  }
}

void process::gather_ledgers() {
  if (!ledger_.has_started()) return;
  const own_float_environment own;
  try {
    const base_mapping world = bases::of_process().find(MPI_COMM_WORLD);
    if (!world.of) return;
    hosts_ = ledger_.end(world, values_);
    if (hosts_.empty() && world_rank_ == 0)
      record("the statistics lack the hosts: not all ranks came to MPI_Finalize within " +
             std::to_string(host_ledger::patience_s) + " s of rank 0");
  } catch (const std::bad_alloc&) {  // the statistics lack the hosts
  }
}

// The function sets are known only at the end of the program.
void process::look_for_unknown_names() {
  try {
    for (const std::string& name : names_of_sets(values_.use))
      if (!sets_.contains(name) && meant_collective(name).empty())  // else already reported
        warn("RAILPASS_USE: '" + name +
             "' is neither a collective nor a function set that rank 0 called");
  } catch (const std::bad_alloc&) {  // the warning is lost
  }
}

// Without this warning, users would mistake native's times for times of the pinned arm.
void process::look_for_idle_pins() {
  if (!values_.enable) return;
  try {
    std::string idle;
    for (const std::string_view pin : words_of(values_.use)) {
      const std::size_t colon = pin.find(':');
      const auto op = find_collective(pin.substr(0, colon));
      if (!op || (pins_run_ >> unsigned(*op) & 1) != 0) continue;
      if (parse_arm(*op, pin.substr(colon + 1)).base->is_native()) continue;
      idle.append(idle.empty() ? "" : ", ").append(pin);
    }
    if (!idle.empty())
      warn("RAILPASS_USE: never run: " + idle +
           " (the program made too few of these calls, or the arm cannot run them: see `railpass "
           "algorithms --collective NAME`)");
  } catch (const error&) {           // no such arm; already reported
  } catch (const std::bad_alloc&) {  // the warning is lost
  }
}

// Leaders other than the world's rank 0 send their knowledge to rank 0, which stores it.
void process::keep_so_far() {
  const double passed_s = clock_() - began_s_;
  double due_s = keep_after_s_;
  if (passed_s < due_s ||  // another thread was first
      !keep_after_s_.compare_exchange_strong(
          due_s, passed_s + (world_rank_ == 0 ? std::min(passed_s, longest_pause_s) : passed_s)))
    return;
  if (!keeps_knowledge_) return;
  try {
    if (world_rank_ != 0) return leaders_.tell(learnt().contexts);
    leaders_.hear();
    kept_.keep(learnt(), mpi_library_);
  } catch (const std::bad_alloc&) {  // the next attempt may succeed
  }
}

void process::keep_learnt() {
  const own_float_environment own;
  try {
    knowledge::run_record run;  // with contexts where this rank stores them
    double left_s = patience_s;
    if (keeps_knowledge_ && world_rank_ != 0) leaders_.tell_last(learnt().contexts);
    if (keeps_knowledge_ && world_rank_ == 0) {
      leaders_.hear_last(last_times_s + last_words_s);  // leaders wait for times first
      const double began_s = steady_clock_s();
      run = learnt();
      run.machine = files::this_machine(run.machine.num_hosts, mpi_library_);
      left_s = std::max(0.0, patience_s - (steady_clock_s() - began_s));
    }
    if (const std::string problem = kept_.end(std::move(run), left_s); !problem.empty())
      record(problem);
  } catch (const std::bad_alloc&) {  // this run leaves no knowledge
  }
}

// Contexts that are worth keeping, without the machine's marks but the number of hosts, as the
// others may be in files.
knowledge::run_record process::learnt() {
  const own_float_environment own;
  select::statistics_dump dump;
  {
    const std::lock_guard lock(mutex_);
    dump = freed_;
    dump.machine_id.num_hosts = num_hosts_;
    for (const known_communicator* const one : communicators_)
      if (world_rank_ == 0 || tells(world_rank_, world_size_, one->num_ranks()))
        one->add_statistics(dump);
  }
  dump.written_at = files::utc_now();
  knowledge::run_record run = worth_keeping(dump);
  std::ranges::move(leaders_.heard(), std::back_inserter(run.contexts));
  return run;
}

void process::say_summary() {
  const own_float_environment own;
  try {
    if (plan_ && !plan_followed_) {
      std::fprintf(stderr,
                   "railpass: no communicator of rank 0 followed plan %s; all calls were "
                   "native\n",
                   values_.plan.c_str());
      return;
    }
    if (plan_) {
      std::fprintf(stderr,
                   "railpass: the calls that plan %s names took its arms, all others were native; "
                   "nothing was timed. railpass compare tells whether the plan pays.\n",
                   values_.plan.c_str());
      return;
    }
    std::string text = "railpass: " + select::summary_of(statistics());
    text += values_.stats.empty() ? " RAILPASS_STATS=FILE keeps the details."
                                  : " Details: railpass stats " + file_of_program(values_.stats);
    const bool has_profile =
        std::ranges::any_of(profiles_, [](const auto& p) { return p.second != nullptr; });
    text +=
        has_profile ? "" : " No profile of this machine was used (railpass sample, railpass fit).";
    std::fprintf(stderr, "%s\n", text.c_str());
    if (!keeps_knowledge_) return;
    const std::string upgrade =
        sentence_about_upgrade(values_.knowledge, files::this_machine(num_hosts_, mpi_library_));
    if (!upgrade.empty()) std::fprintf(stderr, "railpass: %s\n", printable(upgrade).c_str());
  } catch (const std::bad_alloc&) {  // the message is lost
  }
}

const profile* process::read_profile(const std::string& path, int num_hosts,
                                     const std::string& rails) {
  if (path.empty()) return nullptr;
  const own_float_environment own;
  std::string failure;
  const profile* result = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = profiles_.try_emplace({path, num_hosts, rails});
    std::unique_ptr<profile>& made = known->second;
    if (!is_new) return made.get();
    try {
      fingerprint here = files::this_machine(num_hosts, mpi_library_);
      here.rails = rails;
      made = std::make_unique<profile>(files::read_profile(path, here));
    } catch (const std::exception& problem) {
      failure = problem.what();
    }
    result = made.get();
  }
  if (!result) warn("RAILPASS_PROFILE: " + failure);
  return result;
}

void process::note_set(const std::string& name) {
  const std::lock_guard lock(mutex_);
  sets_.insert(name);
}

void process::record(std::string_view text) { record(text, false); }
void process::warn(std::string_view text) { record(text, world_rank_ == 0); }
void process::report_wait(std::string text, int rank, double waited_s) {
  const wait_report report = report_of_wait(std::move(text), rank, waited_s, values_.hang_report);
  record(report.text, report.for_user);
}

void process::complain(MPI_Comm comm, std::string_view call, std::string_view reason) {
  try {
    std::string text = "communicator '" + name_of_communicator(comm) + "', ";
    text.append(call).append(": ").append(reason);
    record(text, true);
  } catch (const std::bad_alloc&) {  // as below
  }
}

void process::record(std::string_view text, bool for_user) {
  try {
    std::string kept(text);
    {
      const std::lock_guard lock(mutex_);
      if (!recorded_.insert(kept).second) return;
    }
    write_record(values_.log, kept, for_user);
  } catch (const std::bad_alloc&) {  // losing a record is better than failing
  }
}

void process::write_trace(const std::string& line, double now_s) {
  if (const std::string problem = trace_.add(line, now_s); !problem.empty()) record(problem);
}

void process::add(known_communicator& one) {
  const std::lock_guard lock(mutex_);
  communicators_.push_back(&one);
}

// Other ranks may still use the rails without this rank, whose connections stay open until the
// process ends. So data handed to the connections arrives. Messages whose send has ended but whose
// data was not handed over yet are waited for: no other rank can deliver them.
void process::leave_rails() {
  const double began_s = steady_clock_s();
  double report_s = values_.hang_report;
  auto waits = rails_;
  for (unsigned empty = 0;; ++empty) {
    std::erase_if(waits, [](const auto& rails) { return rails->transport.leave(); });
    const double passed_s = steady_clock_s() - began_s;
    if (passed_s > patience_s)
      std::erase_if(waits, [](const auto& rails) { return !rails->transport.owed(); });
    if (waits.empty()) break;
    open_transport& first = waits.front()->transport;
    if (report_s > 0 && passed_s > report_s) {
      report_wait("rank " + std::to_string(world_rank_) + " is inside MPI_Finalize for more than " +
                      railpass::detail::show_setting(report_s) + " s: " + owed_over(first) +
                      " has not been received",
                  world_rank_, report_s);
      report_s *= 2;
    }
    first.give_way(empty);
  }
  for (const auto& rails : rails_) {
    open_transport& over = rails->transport;
    if (over.owed()) record(owed_over(over) + " is lost: " + over.failure(), true);
    over.part();
    over.end();
  }
}

void process::add(const std::shared_ptr<shared_rails>& rails) {
  const std::lock_guard lock(mutex_);
  rails_.push_back(rails);
}

void process::remove(const std::shared_ptr<shared_rails>& rails) {
  const std::lock_guard lock(mutex_);
  if (std::erase(rails_, rails) > 0) select::add_closed(freed_, statistics_of(rails->transport));
}

std::vector<std::shared_ptr<shared_rails>> process::open_rails() {
  const std::lock_guard lock(mutex_);
  return rails_;
}

void process::note_hosts(int num_hosts) {
  const std::lock_guard lock(mutex_);
  num_hosts_ = std::max(num_hosts_, num_hosts);
}

void process::remove(known_communicator& one) {
  const own_float_environment own;
  const std::lock_guard lock(mutex_);
  if (std::erase(communicators_, &one) == 0) return;
  try {
    select::statistics_dump gone;
    one.add_statistics(gone);
    remember(gone);
    select::add_freed(freed_, std::move(gone));
  } catch (const std::bad_alloc&) {  // an incomplete dump is better than a failed free
  }
}

void process::share_knowledge() {
  if (world_rank_ == 0) at_stake_ = what_is_at_stake(known_);
  known_ = hand_out(std::move(known_), at_stake_, MPI_COMM_WORLD);
}

select::exclusions process::exclusions() {
  const std::lock_guard lock(mutex_);
  return exclusions_;
}

void process::exclude(const select::exclusion& e) {
  bool has_room = false;
  {
    const std::lock_guard lock(mutex_);
    has_room = exclusions_.add(e);
  }
  if (has_room) return;
  const own_float_environment own;
  try {
    warn("calls may use " + select::text_of(e) + ": at most " +
         std::to_string(select::exclusions::most) + " exclusions are heeded");
  } catch (const std::bad_alloc&) {  // the warning is lost
  }
}

void process::say_known_faults(collective op, const select::excludable_call& c) {
  const own_float_environment own;
  try {
    std::vector<std::string> here;
    {
      const std::lock_guard lock(mutex_);
      if (!known_faults_) known_faults_ = known_faults({}, mpi_library_);
      for (const knowledge::advisory& a : *known_faults_)
        if (knowledge::concerns(a, op, c))
          here.push_back((a.avoid ? *a.avoid + " is not used: " : "known fault: ") + text_of(a));
    }
    for (const std::string& text : here) record(text);
  } catch (const std::bad_alloc&) {  // the records are lost
  }
}

void process::quarantine(knowledge::quarantined q, bool withdraws) {
  const own_float_environment own;
  try {
    q.mpi_library = files::this_machine(1, mpi_library_).mpi_library;
    q.railpass_version = RAILPASS_VERSION;
    q.found_at = files::utc_now();
    kept_.keep_quarantine(q, withdraws, [this](const std::string& problem) { warn(problem); });
  } catch (const std::bad_alloc&) {  // later runs may meet the fault again
  }
}

void process::know_quarantine() {
  if (!values_.enable) return;
  const own_float_environment own;
  try {
    std::vector<std::string> problems;
    {
      const std::lock_guard lock(quarantine_mutex_);
      if (knows_quarantine_) return;
      if (!quarantine_.is_reading())
        judge_killed_runs(values_.knowledge,
                          [this](const std::string& said) { record(said, true); });
      if (const auto found = quarantine_.read(
              values_.knowledge, files::this_machine(1, mpi_library_).mpi_library, problems)) {
        for (const knowledge::quarantined& q : *found)
          exclude({.what = find_algorithm(*find_collective(q.collective), q.algorithm)});
        knows_quarantine_ = true;
      }
    }
    for (const std::string& problem : problems) warn(problem);
  } catch (const std::bad_alloc&) {  // this run may meet the faults again
  }
}

void process::share_exclusions(bool all_have_the_same) {
  {
    const std::lock_guard lock(quarantine_mutex_);
    if (!quarantine_.is_reading()) knows_quarantine_ = true;  // rank 0 has read it, or still reads
  }
  if (!all_have_the_same) unite(exclusions_, least_over(MPI_COMM_WORLD));
  shares_exclusions_ = true;
}

void process::keep_no_knowledge() {
  const std::lock_guard lock(mutex_);
  keeps_knowledge_ = false;
  known_.clear();
}

std::optional<knowledge::experience> process::recall(const knowledge::problem& of) {
  const own_float_environment own;
  const std::lock_guard lock(mutex_);
  if (!keeps_knowledge_) return std::nullopt;
  // Libraries make communicators of the same shape, in some programs hundreds.
  constexpr std::size_t enough = 8;
  select::statistics_dump living;
  for (const known_communicator* const one : communicators_)
    if (living.contexts.size() < enough && one->num_ranks() == of.num_ranks)
      one->add_contexts_like(of, living);
  living.written_at = files::utc_now();
  std::vector<knowledge::experience> all = worth_keeping(living).contexts;
  for (const auto* const known : {&known_, &known_here_})
    for (const knowledge::experience& e : *known)
      if (knowledge::distance(e.of, of)) all.push_back(e);
  return knowledge::closest(all, of);
}

std::vector<knowledge::neighbour> process::recall_near(const knowledge::near_search& wanted) {
  const own_float_environment own;
  const std::lock_guard lock(mutex_);
  std::vector<knowledge::neighbour> near;
  for (const known_communicator* const one : communicators_) one->add_near(wanted, near);
  const std::string now = files::utc_now();
  for (const auto* const known : {&known_, &known_here_})
    for (const knowledge::experience& e : *known)
      if (const auto away = knowledge::near(e.of, wanted))
        near.push_back({.distance = away->distance,
                        .octaves = away->octaves,
                        .days_ago = knowledge::days_between(e.last_at, now).value_or(0),
                        .known = e});
  std::ranges::stable_sort(near, {}, &knowledge::neighbour::distance);
  near.resize(std::min(near.size(), knowledge::most_near));
  return near;
}

// Programs and libraries make and free communicators of the same shape again and again.
void process::remember(const select::statistics_dump& learnt) {
  if (!keeps_knowledge_) return;
  for (const knowledge::experience& fresh : worth_keeping(learnt).contexts) {
    const auto same = std::ranges::find(known_here_, fresh.of, &knowledge::experience::of);
    if (same != known_here_.end())
      *same = knowledge::joined(*same, fresh);
    else if (known_here_.size() < most_known)
      known_here_.push_back(fresh);
  }
}

select::statistics_dump process::statistics() {
  const own_float_environment own;
  const std::lock_guard lock(mutex_);
  select::statistics_dump dump = freed_;
  for (const known_communicator* const one : communicators_) one->add_statistics(dump);
  for (const auto& rails : rails_)
    std::ranges::move(statistics_of(rails->transport), std::back_inserter(dump.rails));
  dump.hosts = hosts_;
  dump.machine_id = files::this_machine(num_hosts_, mpi_library_);
  dump.written_at = files::utc_now();
  return dump;
}

}  // namespace railpass::internal
