// SPDX-License-Identifier: BSL-1.0
//
// The folder of one machine in a store: its files, and how they change where file systems may lie
// about locks. Files appear complete under their name (by rename or link) and never change.
#pragma once

#include "lib/files/files.hpp"
#include "models/profile.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::store {

/// The folder in `location` for the machine's kind and MPI library. The number of hosts does not
/// matter, except whether it is one.
std::filesystem::path folder_of(const std::filesystem::path& location, const fingerprint& machine);
/// All folders in `location`. Throws error if the location exists but cannot be read.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& location);

struct listing {
  std::vector<std::string> runs{};       ///< ids, the newest first
  std::vector<std::string> under_way{};  ///< ids of runs that go on or were killed; newest first
  /// Numbers of databases, the latest first: each contains all data of its predecessor.
  std::vector<std::uint64_t> generations{};
  std::vector<std::filesystem::path> leftovers{};  ///< of writers that died, or still write
};
/// Throws error if the folder cannot be read.
listing list(const std::filesystem::path& folder);

std::filesystem::path run_file(const std::filesystem::path& folder, const std::string& id);
/// The file with the results so far of a run that goes on.
std::filesystem::path under_way_file(const std::filesystem::path& folder, const std::string& id);
std::filesystem::path database_file(const std::filesystem::path& folder, std::uint64_t generation);

/// Writes a file under a new name; false: the name is taken. Throws error.
bool write_new(const std::filesystem::path& path, const std::string& bytes,
               files::durability how = files::durability::on_disk);

/// The name of this host.
std::string own_host();

/// A name for a run that started to keep, or ended, at that time, with a random number or with
/// these digits. Throws error if `ended_at` is not a time.
std::string new_id(const std::string& ended_at);
std::string id_of(const std::string& ended_at, const std::string& digits);

/// The right to merge a folder's files, for ten minutes or until its process has died. A file
/// states owner and end; an end more than twenty minutes ahead is none. The lease only saves double
/// work: clocks differ, so two processes may have a lease; then write_new() prevents losses.
class lease {
 public:
  /// Nothing if another process has the lease, or tried at the same time. Removes expired leases.
  /// Throws error if the folder cannot be written.
  static std::optional<lease> take(const std::filesystem::path& folder);
  lease(lease&& other) noexcept;
  lease& operator=(lease&&) = delete;
  ~lease();

 private:
  explicit lease(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

}  // namespace railpass::internal::store
