// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/knowledge.hpp"

#include "lib/files/files.hpp"
#include "lib/runtime/own_thread.hpp"
#include "lib/store/halts.hpp"
#include "lib/store/quarantine.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/knowledge/imports.hpp"
#include "railpass/knowledge/upgrade.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <type_traits>
#include <utility>

namespace railpass::internal {

namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 10;
// Seconds to wait for files without which a run may meet a known fault: home folders that are
// mounted at the first access need a second.
constexpr double long_patience_s = 2;
// A context is worth keeping if it reaches one of these.
constexpr std::int64_t enough_calls = 30;
constexpr double enough_s = 0.01;

// Work of a thread with lower priority than the program's threads. Without a thread it is over at
// once.
template <class Work>
std::future<void> start_task(Work work) {
  auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
  std::future<void> done = task->get_future();
  start_thread([task] {
    ::setpriority(PRIO_PROCESS, 0, 19);  // Linux: of this thread alone
    (*task)();
  });
  return done;
}

// The future is invalid if the system gives no thread. Work continues until the process ends.
template <class Result, class Work>
std::future<Result> start_work(Work work) {
  auto task = std::make_shared<std::packaged_task<Result()>>(std::move(work));
  std::future<Result> result = task->get_future();
  return start_thread([task] { (*task)(); }) ? std::move(result) : std::future<Result>();
}

template <class Future>
bool ends_in(double seconds, const Future& result) {
  return result.valid() &&
         result.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
}

// Drops the result of work that exceeds the time.
template <class Result, class Work>
std::optional<Result> in_time(double seconds, Work work) {
  std::future<Result> result = start_work<Result>(std::move(work));
  if (!ends_in(seconds, result)) return std::nullopt;
  return result.get();
}

// Waits for work that writes to the file system. Returns a sentence that begins with `failed`, or
// nothing.
template <class Work>
std::string problem_of_writing(double seconds, const std::string& failed, Work work) {
  const auto problem = in_time<std::string>(seconds, [work = std::move(work)]() -> std::string {
    try {
      work();
      return {};
    } catch (const std::exception& e) {
      return e.what();
    }
  });
  if (!problem) return failed + "writing takes more than 50 ms";
  return problem->empty() ? "" : failed + *problem;
}

// Without a folder of the user, the site's counts all the same.
store::locations locations_of_quarantine(const std::string& setting, const std::string& failed,
                                         std::vector<std::string>& problems) {
  try {
    return store::locations_of(setting);
  } catch (const error& problem) {
    problems.push_back(failed + problem.what());
    return store::locations_of("off");
  }
}

// Drivers of networks, GPUs and copies between processes.
std::string drivers_here() {
  std::string text;
  for (const char* const module : {"mlx5_core", "mlx4_core", "hfi1", "efa", "cxi_core", "xpmem",
                                   "knem", "nvidia", "amdgpu", "i915"}) {
    std::string version;
    if (std::ifstream(std::string("/sys/module/") + module + "/version") >> version)
      text.append(text.empty() ? "" : ", ").append(module).append(" ").append(version);
  }
  return text;
}

knowledge::conditions conditions_now() {
  knowledge::conditions now{.railpass_version = RAILPASS_VERSION};
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> now.governor;
  if (std::array<double, 1> load{}; getloadavg(load.data(), 1) == 1) now.load = load[0];
  if (utsname kernel{}; uname(&kernel) == 0) now.kernel = kernel.release;
  now.drivers = drivers_here();
  return now;
}

}  // namespace

knowledge::run_record worth_keeping(const select::statistics_dump& learnt) {
  knowledge::run_record run = knowledge::record_of(learnt);
  std::erase_if(run.contexts, [](const knowledge::experience& e) {
    std::int64_t calls = 0;
    double time_s = 0;
    for (const knowledge::arm_experience& a : e.arms) {
      calls += a.calls;
      time_s += double(a.calls) * a.times.mean_s;
    }
    return !is_worth_keeping(calls, time_s);
  });
  return run;
}

bool is_worth_keeping(std::int64_t calls, double time_s) {
  return calls >= enough_calls || time_s >= enough_s;
}

std::vector<knowledge::experience> read_knowledge(const std::string& setting,
                                                  const fingerprint& here,
                                                  std::vector<std::string>& problems) {
  if (setting == "off") return {};
  try {
    const store::locations from = store::locations_of(setting);
    auto known =
        in_time<store::known>(patience_s, [=] { return store::read(from, here, most_known); });
    if (!known) {
      problems.emplace_back(
          "knowledge of earlier runs is not used: reading takes more than 50 ms (run `railpass "
          "knowledge prune`)");
      return {};
    }
    for (std::string& problem : known->problems) problems.push_back(std::move(problem));
    return std::move(known->contexts);
  } catch (const error& problem) {
    problems.push_back("knowledge of earlier runs is not used: " + std::string(problem.what()));
  }
  return {};
}

std::optional<std::vector<knowledge::quarantined>> quarantine_reader::read(
    const std::string& setting, const std::string& mpi_library,
    std::vector<std::string>& problems) {
  std::vector<knowledge::quarantined> records;
  const std::string failed = "algorithms in quarantine are not avoided: ";
  const bool is_first = !found_.valid();
  try {
    if (is_first) {
      const store::locations from = locations_of_quarantine(setting, failed, problems);
      if (from.own.empty() && from.site.empty()) return records;
      found_ = start_work<store::quarantine_contents>(
          [from, mpi_library] { return store::quarantine(from, mpi_library); });
    }
    if (!ends_in(is_first ? long_patience_s : 0, found_)) {
      if (is_first)
        problems.push_back(
            failed +
            (found_.valid() ? "reading takes more than 2 s" : "the system gives no thread") +
            "; railpass looks again when tuning of a further communicator starts");
      return std::nullopt;
    }
    store::quarantine_contents found = found_.get();
    for (std::string& problem : found.problems) problems.push_back(std::move(problem));
    for (store::quarantine_file& file : found.files)
      if (file.counts) records.push_back(std::move(file.record));
  } catch (const error& problem) {
    problems.push_back(failed + problem.what());
  }
  return records;
}

void judge_killed_runs(const std::string& setting,
                       const std::function<void(const std::string&)>& say) {
  if (setting == "off") return;
  const std::string failed = "runs that were killed are not judged: ";
  try {
    in_time<bool>(long_patience_s, [own = store::locations_of(setting).own, say, failed] {
      try {
        for (const std::string& sentence : store::judge_halts(own)) say(sentence);
      } catch (const std::exception& problem) {
        say(failed + problem.what());
      }
      return true;
    });
  } catch (const error& problem) {
    say(failed + problem.what());
  }
}

std::vector<knowledge::experience> hand_out(std::vector<knowledge::experience> mine,
                                            knowledge::stakes_of_job& at_stake, MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  std::string bytes;
  try {
    if (rank == 0) bytes = store::encode(mine, most_bytes);
  } catch (const std::exception&) {  // then no rank gets knowledge
  }
  struct {
    knowledge::stakes_of_job at_stake;
    std::uint64_t size;
  } first{at_stake, bytes.size()};
  static_assert(std::is_trivially_copyable_v<knowledge::stakes_of_job>);
  if (PMPI_Bcast(&first, sizeof first, MPI_BYTE, 0, comm) != MPI_SUCCESS) return mine;
  at_stake = first.at_stake;
  if (first.size == 0) return mine;
  static std::array<char, most_bytes> room;  // no rank lacks memory for it, or has a small stack
  std::copy(bytes.begin(), bytes.end(), room.begin());
  if (PMPI_Bcast(room.data(), int(first.size), MPI_BYTE, 0, comm) != MPI_SUCCESS || rank == 0)
    return mine;
  try {
    return store::decode({room.data(), first.size});
  } catch (const std::exception&) {
    return {};
  }
}

std::string sentence_about_upgrade(const std::string& setting, const fingerprint& here) {
  try {
    const store::locations from = store::locations_of(setting);
    const auto sentence = in_time<std::string>(patience_s, [=]() -> std::string {
      try {
        std::vector<knowledge::stored_run> runs;
        for (store::machine_contents& m : store::contents(from.own).machines)
          std::ranges::move(m.runs, std::back_inserter(runs));
        for (const knowledge::upgrade& u : knowledge::upgrades_of(runs))
          if (mismatch(u.machine, here).empty() &&
              (u.machine.num_hosts > 1) == (here.num_hosts > 1) &&
              std::ranges::any_of(u.cells, &knowledge::cell_change::is_shown))
            return knowledge::summary_of(u);
      } catch (const std::exception&) {  // railpass knowledge compare says it
      }
      return {};
    });
    return sentence.value_or("");
  } catch (const error&) {  // said at the start
    return {};
  }
}

void kept_knowledge::keep_quarantine(const knowledge::quarantined& q, bool withdraws,
                                     const std::function<void(const std::string&)>& say) {
  if (setting_ == "off") return;
  const std::string failed =
      "the quarantine of " + q.algorithm + " is not " + (withdraws ? "withdrawn" : "kept") + ": ";
  std::shared_future<void> written;
  try {
    const std::lock_guard lock(keeping_);
    written = start_work<void>([own = store::locations_of(setting_).own, q, withdraws, say, failed,
                                before = quarantined_] {
      if (before.valid()) before.wait();
      try {
        if (withdraws)
          store::withdraw(own, q);
        else
          store::add(own, q);
      } catch (const std::exception& problem) {
        say(failed + problem.what());
      }
    });
    if (written.valid()) quarantined_ = written;
  } catch (const error& problem) {
    return say(failed + problem.what());
  }
  if (!written.valid()) return say(failed + "the system gives no thread");
  ends_in(patience_s, written);
}

bool kept_knowledge::begin() {
  if (setting_ == "off") return false;
  if (!run_) run_ = std::make_shared<store::run_under_way>(store::locations_of(setting_).own);
  return true;
}

void kept_knowledge::keep(knowledge::run_record so_far, const std::string& mpi_library) {
  try {
    const std::lock_guard lock(keeping_);
    if (so_far.contexts.empty() || !begin() || (written_.valid() && !ends_in(0, written_))) return;
    // What it throws is said at the end, if it is still so then.
    written_ = start_task([run = run_, so_far = std::move(so_far), mpi_library]() mutable {
      so_far.machine = files::this_machine(so_far.machine.num_hosts, mpi_library);
      so_far.was = conditions_now();
      run->keep(so_far);
    });
  } catch (const std::exception&) {  // as above
  }
}

void kept_knowledge::tidy() {
  if (setting_ == "off") return;
  try {
    tidied_ = start_task([own = store::locations_of(setting_).own, stop = tidying_.get_token()] {
      store::tidy(own, stop);
    });
  } catch (const std::exception&) {  // the next run, perhaps
  }
}

std::string kept_knowledge::end(knowledge::run_record run, double patience_left_s) {
  const own_float_environment own;
  const double until_s = steady_clock_s() + patience_left_s;
  tidying_.request_stop();
  std::string problem = write_last(std::move(run), patience_left_s);
  const auto wait_for = [&](const auto& task) {
    return !task.valid() || ends_in(std::max(0.0, until_s - steady_clock_s()), task);
  };
  if (!wait_for(quarantined_) && problem.empty())
    problem =
        "the quarantine of an algorithm may be lost: writing takes more than 50 ms at the end of "
        "the run";
  // Threads that run while the process ends would call libraries that have ended.
  wait_for(tidied_);
  wait_for(written_);
  return problem;
}

std::string kept_knowledge::write_last(knowledge::run_record run, double patience_left_s) {
  std::string failed = "knowledge of this run is not kept: ";
  try {
    if (run.contexts.empty() || !begin()) return {};
    if (run_->has_kept()) failed = "the last part of this run's knowledge is not kept: ";
    run.was = conditions_now();
    return problem_of_writing(patience_left_s, failed,
                              [kept = run_, run = std::move(run)] { kept->end(run); });
  } catch (const error& e) {
    return failed + e.what();
  }
}

}  // namespace railpass::internal
