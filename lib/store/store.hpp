// SPDX-License-Identifier: BSL-1.0
//
// Stores what runs learnt: docs/explanation/knowledge.md. Each run adds one file, which never
// changes afterwards. `railpass knowledge` merges many files into a database. Nothing needs locks
// or shared memory of the file system, because home folders of clusters lack reliable ones. Files
// that are corrupt or written by a newer railpass are skipped and kept, and a sentence reports
// each. Nothing here is collective, or for use inside a collective.
#pragma once

#include "railpass/knowledge/collection.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::store {

/// The user's folder, which is written to, and folders that are only read. Of the site's folder,
/// the quarantine always counts, and the knowledge if it is one of the others. Empty: none.
struct locations {
  std::filesystem::path own;
  std::vector<std::filesystem::path> others;
  std::filesystem::path site{};
};

/// Parses the value of the setting. "on": $XDG_STATE_HOME/railpass or ~/.local/state/railpass, and
/// the site's folder if it exists. "off": neither. Otherwise one or more paths separated by ':';
/// the first path is the user's own. The site's folder is /var/lib/railpass, unless RAILPASS_SITE
/// names another (empty: none). Throws error without a home folder.
locations locations_of(std::string_view value);

/// Adds the results of a run as one file; beyond 1 MiB, only the most useful part. Throws error
/// (disk full, read-only, too many files); then nothing has changed.
void add(const std::filesystem::path& own, const knowledge::run_record& run);

/// A run that stores its results from time to time, in case the run is killed. Several threads may
/// call at the same time, because a write may block forever.
class run_under_way {
 public:
  /// Throws error if there are no random numbers.
  explicit run_under_way(std::filesystem::path own);
  /// Replaces the stored results by the results so far. Throws error like add().
  void keep(const knowledge::run_record& so_far);
  /// Replaces the stored results by the file of an ended run, without waiting for the disk. Throws
  /// error like add(); then the stored results are those of an ended run.
  void end(const knowledge::run_record& run);
  bool has_kept() const;

 private:
  std::filesystem::path own_;
  std::string id_;
  mutable std::mutex mutex_;  // not held during writes
  std::vector<std::filesystem::path> kept_;
};

struct known {
  std::vector<knowledge::experience> contexts;
  std::vector<std::string> problems;  ///< a sentence for each skipped file
};

/// Knowledge about this machine (marks accepted by mismatch()): contexts merged over runs, the most
/// useful first, at most `most_contexts`. Of a context in several locations, the version with the
/// most samples counts, because the locations may share runs. Reads the start of the database and
/// the newest files; tidy() merges the rest. Never throws for problems of files.
known read(const locations& from, const fingerprint& here, std::size_t most_contexts);

/// The first contexts that fit into `most_bytes` bytes; numbers keep 7 digits.
std::string encode(std::span<const knowledge::experience> contexts, std::size_t most_bytes);
/// Throws error if the bytes are not the result of encode().
std::vector<knowledge::experience> decode(std::string_view bytes);

/// All data in one machine's folder, for people and for other stores.
struct machine_contents {
  fingerprint machine{};
  std::filesystem::path folder{};
  std::vector<knowledge::experience> contexts{};  ///< merged over all runs, the most useful first
  std::vector<knowledge::stored_run> runs{};      ///< runs that have ended, the oldest first
  /// Runs that go on, or were killed less than a day ago.
  std::vector<knowledge::stored_run> under_way{};
  std::uint64_t file_bytes = 0;
  std::size_t num_files = 0;  ///< not yet merged into the database
};
struct store_contents {
  std::vector<machine_contents> machines;
  std::vector<std::string> problems;
};
/// Reads everything. A missing location is empty. Throws error only if the location cannot be read
/// at all.
store_contents contents(const std::filesystem::path& location);

struct added {
  std::size_t runs = 0;     ///< new runs
  std::size_t present = 0;  ///< runs that were there before
  std::vector<std::string> problems;
};
/// Contexts of several runs, with each problem once; the most useful first.
std::vector<knowledge::experience> joined(std::span<const knowledge::experience> contexts);

/// Names a run after the text that it was read from, to recognise the run later. Throws error
/// without the time of the run's end.
knowledge::stored_run named_after(knowledge::run_record run, std::string_view text);

/// Adds runs from elsewhere, each run once. Throws error before any write if a run is invalid; or
/// if the location cannot be written (runs added until then stay).
added merge(const std::filesystem::path& own, std::span<const knowledge::stored_run> runs);

/// Limits of a machine's database: size, and age of contexts.
struct bounds {
  std::uint64_t most_bytes = std::uint64_t{8} << 20;
  std::string not_before{};  ///< UTC; contexts last seen earlier are dropped; empty: no limit
  /// Limit of the files that are merged now; further files stay for the next time.
  std::uint64_t most_file_bytes = std::numeric_limits<std::uint64_t>::max();
};
struct compacted {
  std::size_t files = 0;     ///< merged
  std::size_t contexts = 0;  ///< in the databases now
  std::size_t dropped = 0;   ///< contexts dropped because of age or size
  std::vector<std::string> problems;
};
/// Merges each machine's files into its database and removes the files, including files of runs
/// that were killed more than a day ago, and leftovers of dead writers. Files added meanwhile stay.
/// Skips a machine on which another process works. Throws error if the location cannot be written;
/// then nothing is lost. After a stop request, changes nothing more.
compacted compact(const std::filesystem::path& own, const bounds& keep = {},
                  const std::stop_token& stop = {});

/// Like compact(), in bounded memory, for machines with many files or old leftovers. For programs,
/// in the background.
void tidy(const std::filesystem::path& own, const std::stop_token& stop);

}  // namespace railpass::internal::store
