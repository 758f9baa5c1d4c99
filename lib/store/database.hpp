// SPDX-License-Identifier: BSL-1.0
//
// The database of one machine: an SQLite file that is made in memory, written once and never
// changed, so that it is read without locks. Rows are records of record.hpp. The contexts are
// numbered from 1, the most useful first, and the head says how many there are: what is missing is
// noticed.
#pragma once

#include "lib/store/record.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

struct sqlite3;

namespace railpass::internal::store {

/// All that is in a database.
struct database_contents {
  struct context {
    knowledge::experience known{};                   ///< all runs together
    std::optional<knowledge::experience> earlier{};  ///< of the runs that are not kept one by one
  };
  fingerprint machine{};
  std::vector<std::string> recent{};          ///< see database_head
  std::vector<std::string> earlier_ids{};     ///< of the runs that are not kept one by one
  std::vector<context> contexts{};            ///< the most useful first
  std::vector<knowledge::stored_run> runs{};  ///< one by one, the oldest first
};

/// The file's bytes. After a stop request, rows may be missing.
std::string database_of(const database_contents& c, const std::stop_token& stop = {});
/// Checks everything. Throws newer_error, or error if anything that is used has changed. After a
/// stop request, rows may be missing.
database_contents contents_of_database(std::string_view bytes, const std::string& name,
                                       const std::stop_token& stop = {});

/// A file that is read where it is, as far as needed. Everything throws newer_error, or error.
class database {
 public:
  explicit database(const std::filesystem::path& path);
  const database_head& head() const { return head_; }
  /// The most useful contexts, at most `most`.
  std::vector<knowledge::experience> best(std::size_t most) const;
  std::optional<knowledge::experience> find(const knowledge::problem& p) const;

 private:
  std::string name_;
  std::shared_ptr<sqlite3> file_;
  database_head head_;
};

/// Tells problems apart.
std::string key_of(const knowledge::problem& p);

}  // namespace railpass::internal::store
