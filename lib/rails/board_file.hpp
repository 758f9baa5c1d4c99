// SPDX-License-Identifier: BSL-1.0
//
// Boards: files in shared memory in which the ranks of a host show what they do while they run.
// Each rank writes its own entries only, so no rank waits. Here are the files; what entries hold is
// elsewhere (board.hpp, lib/runtime/ledger_board.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal {

/// Folder in which shared memory appears as files.
inline constexpr const char* shared_memory = "/dev/shm";

struct board_kind {
  const char* prefix;          ///< of the names of files
  const char* shows;           ///< for messages
  std::uint32_t entry_bytes;   ///< the last 8 bytes are a checksum, which board_file computes
  std::uint32_t most_entries;  ///< of a rank
};

/// A rank's part of a board. The file has mode 0600. Each process that uses the file holds a lock,
/// so that the kernel knows whether any process still lives; the last process removes the file.
class board_file {
 public:
  /// Opens or creates the board `id`, and removes boards that no process uses any more. `id` is
  /// equal on all ranks of a board and differs between boards. `kind` must live as long. Throws
  /// error if the board cannot be opened.
  board_file(const board_kind& kind, std::uint64_t id, int num_ranks, int num_entries, int rank,
             const std::string& folder);
  ~board_file();
  board_file(const board_file&) = delete;
  board_file& operator=(const board_file&) = delete;

  /// Shows the rank's entries from now on. Entry: trivially copyable, and never all zero.
  template <class Entry>
  void post(std::span<const Entry> entries) {
    std::vector<std::byte> bytes(entries.size_bytes());
    std::memcpy(bytes.data(), entries.data(), bytes.size());
    write(bytes);
  }

 private:
  void write(std::span<std::byte> entries);

  const board_kind& kind_;
  std::string path_;
  int fd_ = -1;
  std::int64_t begin_;  // of the rank's entries
};

struct found_entry {
  int rank = 0;
  std::vector<std::byte> bytes;

  template <class Entry>
  Entry as() const {
    Entry e;
    std::memcpy(&e, bytes.data(), sizeof e);
    return e;
  }
};

/// A board of this user on this host.
struct found_file {
  std::string path;
  std::uint64_t id = 0;
  int num_ranks = 0;                 ///< on all hosts
  std::vector<found_entry> entries;  ///< whole entries that were posted, by rank
};

struct found_files {
  std::vector<found_file> files;
  std::vector<std::string> skipped;  ///< files that are no boards, with the reason
};

/// The boards of a kind whose entries are all sound. Removes boards that no process uses any more.
found_files find_board_files(const board_kind& kind, const std::string& folder,
                             bool (*is_sound)(const found_entry&));

/// Copies text into a field of an entry, and cuts the text if it is too long.
template <std::size_t n>
void set_text(char (&field)[n], const std::string& text) {
  text.copy(field, n - 1);
}

/// Text of a field, made safe for a terminal.
std::string text_of_field(std::span<const char> field);
template <std::size_t n>
std::string text_of(const char (&field)[n]) {
  return text_of_field(field);
}

}  // namespace railpass::internal
