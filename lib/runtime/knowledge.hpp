// SPDX-License-Identifier: BSL-1.0
//
// Knowledge of earlier runs is read, and knowledge of this run is written, through the store
// (lib/store). Only rank 0 of MPI_COMM_WORLD does this. File systems may block: ranks wait for
// them for at most `patience_s`, and longer only for quarantine.
#pragma once

#include "lib/store/quarantine.hpp"
#include "lib/store/store.hpp"
#include "railpass/knowledge/experience.hpp"
#include "railpass/knowledge/quarantine.hpp"
#include "railpass/knowledge/stakes.hpp"

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace railpass::internal {

/// Seconds that the start and the end of a program may wait for files.
inline constexpr double patience_s = 0.05;

/// Limit of the contexts that are read.
inline constexpr std::size_t most_known = 256;

/// The contexts worth keeping: with more than a few calls, or with long calls. Throws
/// std::bad_alloc.
knowledge::run_record worth_keeping(const select::statistics_dump& learnt);
/// Whether a context with `calls` calls, which took `time_s` in all, is kept.
bool is_worth_keeping(std::int64_t calls, double time_s);

/// Knowledge about this machine, the most useful contexts first; empty if `setting` is "off".
/// Appends a sentence to `problems` for each problem. Local; throws std::bad_alloc.
std::vector<knowledge::experience> read_knowledge(const std::string& setting,
                                                  const fingerprint& here,
                                                  std::vector<std::string>& problems);

/// Reads the algorithms in quarantine, once.
class quarantine_reader {
 public:
  /// The algorithms for this MPI library; the site's alone if `setting` is "off". The first call
  /// waits for at most 2 s; nothing is returned as long as reading goes on. Appends a sentence to
  /// `problems` for each problem. Local; throws std::bad_alloc.
  std::optional<std::vector<knowledge::quarantined>> read(const std::string& setting,
                                                          const std::string& mpi_library,
                                                          std::vector<std::string>& problems);
  bool is_reading() const { return found_.valid(); }

 private:
  std::future<store::quarantine_contents> found_;
};
/// Judges runs that were killed: see store::judge_halts. `say` may be called by another thread,
/// even later. Waits for at most 2 s, and only if there are records. Local; throws std::bad_alloc.
void judge_killed_runs(const std::string& setting,
                       const std::function<void(const std::string&)>& say);
/// One sentence about calls that take another time since this machine's MPI library, kernel or
/// drivers changed, by the user's own store; empty: nothing is known. Local.
std::string sentence_about_upgrade(const std::string& setting, const fingerprint& here);

/// Sends rank 0's stakes and knowledge to all ranks of `comm`: at most 64 KiB, the most useful
/// contexts first. Collective; returns this rank's knowledge, which on rank 0 is `mine`.
std::vector<knowledge::experience> hand_out(std::vector<knowledge::experience> mine,
                                            knowledge::stakes_of_job& at_stake, MPI_Comm comm);

/// The knowledge and the quarantine that this run writes. Local.
class kept_knowledge {
 public:
  /// Keeps nothing if `setting` is "off".
  explicit kept_knowledge(const std::string& setting) : setting_(setting) {}
  /// Merges files of earlier runs if there are many. A thread with low priority does this; no rank
  /// waits for the thread, and end() stops it.
  void tidy();
  /// Writes in the background, in case the run is killed. The same thread finds the marks of the
  /// machine other than the number of hosts and the MPI library. Any thread may call.
  void keep(knowledge::run_record so_far, const std::string& mpi_library);
  /// Adds a record to the user's store, or withdraws the record after all that was added before.
  /// Waits for at most `patience_s`; writing that takes longer goes on. `say` gets a sentence about
  /// a problem, perhaps later and in another thread. Any thread may call; throws std::bad_alloc.
  void keep_quarantine(const knowledge::quarantined& q, bool withdraws,
                       const std::function<void(const std::string&)>& say);
  /// Writes at the end, if `run` has contexts, and waits for all that is being written, within the
  /// rest of the patience. Returns a sentence about a problem, or nothing. Throws std::bad_alloc.
  std::string end(knowledge::run_record run, double patience_left_s);

 private:
  bool begin();
  std::string write_last(knowledge::run_record run, double patience_left_s);

  std::string setting_;
  std::stop_source tidying_;
  std::mutex keeping_;
  std::future<void> tidied_, written_;    // written_: the latest results so far
  std::shared_future<void> quarantined_;  // the latest change of the quarantine
  std::shared_ptr<store::run_under_way> run_;
};

}  // namespace railpass::internal
