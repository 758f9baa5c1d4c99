// SPDX-License-Identifier: BSL-1.0
//
// Where what runs learnt is kept from one to the next: docs/explanation/knowledge.md. A run adds
// one file that nobody changes any more; `railpass knowledge` brings many together in a database.
// Nothing needs locks or shared memory of the file system, as homes of clusters have none that can
// be relied on. Whatever is damaged or written by a newer railpass is left out and left alone, and
// a sentence says so. Nothing here is collective, and nothing is for use inside a collective.
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

/// Where knowledge is kept: the user's place, which is written to, and places that are only read.
struct places {
  std::filesystem::path own;
  std::vector<std::filesystem::path> others;
};

/// Of the value of the setting: "on" is $XDG_STATE_HOME/railpass or ~/.local/state/railpass, and
/// the site's /var/lib/railpass if that is there; all else is a path, or several separated by ':',
/// of which the first is the own one. Throws error if there is no home.
places places_of(std::string_view value);

/// Adds what a run learnt, as one file. Of more than fits into one (1 MiB) the most useful part.
/// Throws error (disk full, read-only, too many files); then nothing has changed.
void add(const std::filesystem::path& own, const knowledge::run_record& run);

/// A run that keeps what it learns as it goes, so that something is left of it if it is killed.
/// Several threads may be inside, as one may wait for its file for ever.
class run_under_way {
 public:
  /// Throws error if there are no random numbers.
  explicit run_under_way(std::filesystem::path own);
  /// Keeps what it has learnt so far, in place of what it kept before. Throws error as add() does.
  void keep(const knowledge::run_record& so_far);
  /// Adds what it learnt, in place of what it kept, without waiting for the disk. What it kept
  /// counts as the run's first of all, however long the rest takes. Throws error as add() does.
  void end(const knowledge::run_record& run);
  bool has_kept() const;

 private:
  std::filesystem::path own_;
  std::string id_;
  mutable std::mutex mutex_;  // not held while a file is waited for
  std::vector<std::filesystem::path> kept_;
};

struct known {
  std::vector<knowledge::experience> contexts;
  std::vector<std::string> problems;  ///< what was left out: a sentence each
};

/// What is known of this machine (those that mismatch() lets pass): contexts merged over runs, the
/// most useful first, at most so many. A context that several places know is taken from the one
/// with the most samples, as these may be the same runs. Reads the database's beginning and the
/// newest files, not everything: tidy() brings more than that together. Never throws for what is
/// wrong with files.
known read(const places& from, const fingerprint& here, std::size_t most_contexts);

/// As many contexts as fit into so many bytes, from the first one on; numbers are kept to 7 digits.
std::string encode(std::span<const knowledge::experience> contexts, std::size_t most_bytes);
/// Throws error if these bytes are not what encode() makes.
std::vector<knowledge::experience> decode(std::string_view bytes);

/// All that one machine's folder holds; for people and for other stores.
struct machine_contents {
  fingerprint machine{};
  std::filesystem::path folder{};
  std::vector<knowledge::experience> contexts{};  ///< merged over all runs, the most useful first
  std::vector<knowledge::stored_run> runs{};      ///< that have ended; the oldest first
  std::size_t under_way = 0;  ///< runs that go on, or were killed less than a day ago
  std::uint64_t file_bytes = 0;
  std::size_t num_files = 0;  ///< not yet brought together
};
struct store_contents {
  std::vector<machine_contents> machines;
  std::vector<std::string> problems;
};
/// Reads everything. Throws error only if the place cannot be read at all; one that is not there is
/// empty.
store_contents contents(const std::filesystem::path& place);

struct added {
  std::size_t runs = 0;     ///< new ones
  std::size_t present = 0;  ///< that were there before
  std::vector<std::string> problems;
};
/// A run under a name that follows from the text it was read from, so that it is recognised when it
/// comes again. Throws error if it does not say when it ended.
knowledge::stored_run named_after(knowledge::run_record run, std::string_view text);

/// Adds runs of elsewhere, each once however often it comes. Throws error, before anything is
/// written, if one is not as it must be; or if the place cannot be written: what was added until
/// then stays.
added merge(const std::filesystem::path& own, std::span<const knowledge::stored_run> runs);

/// How large a machine's database may become, and how old what is in it.
struct bounds {
  std::uint64_t most_bytes = std::uint64_t{8} << 20;
  std::string not_before{};  ///< UTC; what was not seen since is dropped. Empty: nothing is
  /// Of the files that are brought together; the rest stays for the next time.
  std::uint64_t most_file_bytes = std::numeric_limits<std::uint64_t>::max();
};
struct compacted {
  std::size_t files = 0;     ///< brought together
  std::size_t contexts = 0;  ///< in the databases now
  std::size_t dropped = 0;   ///< contexts, as too old or too many
  std::vector<std::string> problems;
};
/// Brings each machine's files together in its database and removes them, those of runs that were
/// killed more than a day ago included, and what was left by writers that died. Files that are
/// added meanwhile stay. Leaves a machine alone that another process is busy with. Throws error if
/// the place cannot be written; then nothing is lost. When it is told to stop it changes nothing
/// more.
compacted compact(const std::filesystem::path& own, const bounds& keep = {},
                  const std::stop_token& stop = {});

/// The same for machines of which many files have gathered, or that have old leftovers, in bounded
/// memory: for programs, in the background.
void tidy(const std::filesystem::path& own, const std::stop_token& stop);

}  // namespace railpass::internal::store
