// SPDX-License-Identifier: BSL-1.0
//
// Records of halted ranks as files: one for each process, in the folder `halted` of a store. A
// process holds a lock on its file, rewrites the file in place and removes it when calls go on or
// MPI ends. So the files of processes that were killed stay. Nothing here is collective.
#pragma once

#include "lib/base/descriptor.hpp"
#include "lib/store/folder.hpp"
#include "railpass/knowledge/halts.hpp"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::store {

/// The file of this process. Its text survives the end of the process by SIGKILL.
class halt_file {
 public:
  /// Throws error (disk full, read-only).
  explicit halt_file(const std::filesystem::path& own);
  halt_file(const halt_file&) = delete;
  halt_file& operator=(const halt_file&) = delete;
  /// Removes the file.
  ~halt_file();

  /// Replaces the record. Throws error.
  void write(const knowledge::halted_rank& r);

 private:
  std::filesystem::path path_;
  file_descriptor file_;
  std::size_t size_ = 0;
};

/// Judges runs that were killed: puts arms that hung into quarantine, and removes the files of
/// these runs. Returns a sentence for each hang and each corrupt file. A run is over if no process
/// of it holds a lock, and a process of it was on host `here`, or all its records are old at
/// `now_s` (seconds since 1970), because locks may not reach other hosts. Several processes may
/// call: they take turns, and each waits for its turn for a second. Throws error if the store
/// cannot be written.
std::vector<std::string> judge_halts(const std::filesystem::path& own,
                                     const std::string& here = own_host(),
                                     std::int64_t now_s = std::time(nullptr));
/// Like judge_halts(), but does not wait: returns nothing if there are runs to judge and it is
/// another process' turn.
std::optional<std::vector<std::string>> try_to_judge_halts(const std::filesystem::path& own,
                                                           const std::string& here = own_host(),
                                                           std::int64_t now_s = std::time(nullptr));

}  // namespace railpass::internal::store
