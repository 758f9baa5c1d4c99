// SPDX-License-Identifier: BSL-1.0
//
// The folder of one machine in a store: which files are in it, and what it takes to change it where
// locks may lie. Files appear under their name as a whole (by rename or link) and are never
// changed.
#pragma once

#include "models/profile.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::store {

/// Of a place: below it, one for each kind of machine and MPI library. How many hosts took part
/// does not count, but whether it was one alone.
std::filesystem::path folder_of(const std::filesystem::path& place, const fingerprint& machine);
/// All that are there. Throws error if the place is there but cannot be read.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& place);

struct listing {
  std::vector<std::string> runs{};       ///< ids, the newest first
  std::vector<std::string> under_way{};  ///< ids of runs that go on, or were killed; newest first
  /// Of databases, the latest first: each holds all that the one before held.
  std::vector<std::uint64_t> generations{};
  std::vector<std::filesystem::path> leftovers{};  ///< of writers that died, or are at it
};
/// Throws error if the folder cannot be read.
listing list(const std::filesystem::path& folder);

std::filesystem::path run_file(const std::filesystem::path& folder, const std::string& id);
/// Of a run that goes on: what it has learnt so far.
std::filesystem::path under_way_file(const std::filesystem::path& folder, const std::string& id);
std::filesystem::path database_file(const std::filesystem::path& folder, std::uint64_t generation);

/// Writes a file under a name that nobody has; false: somebody was first. Throws error.
bool write_new(const std::filesystem::path& path, const std::string& bytes);

/// A name for a run that began to keep, or ended, at that time: with a random number, or with these
/// digits. Throws error if it is no time.
std::string new_id(const std::string& ended_at);
std::string id_of(const std::string& ended_at, const std::string& digits);

/// The right to bring a folder's files together, for ten minutes, or until its process has died: a
/// file of its own, which says until when, and whose it is. It saves double work: that nothing is
/// lost if two should have it, as clocks differ, is for write_new() to see to.
class lease {
 public:
  /// Nothing: another process has it, or tried at the same time. Removes those that have expired.
  /// Throws error if the folder cannot be written.
  static std::optional<lease> take(const std::filesystem::path& folder);
  lease(lease&& other) noexcept;
  lease& operator=(lease&&) = delete;
  ~lease();

 private:
  explicit lease(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: given on
};

}  // namespace railpass::internal::store
