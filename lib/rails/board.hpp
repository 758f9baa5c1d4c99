// SPDX-License-Identifier: BSL-1.0
//
// The board of a transport: a file in shared memory in which the ranks of a host show the load of
// their rails. Each rank writes its own entries only, so no rank waits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal {

/// Folder in which shared memory appears as files.
inline constexpr const char* shared_memory = "/dev/shm";

/// Load of one rail of a rank.
struct posted_rail {
  int rank = 0;          ///< in the communicator that opened the rails
  std::int64_t pid = 0;  ///< the process that posted
  std::string program{};
  std::string rail{};  ///< interface and address, which show whether ranks share a rail
  std::int64_t sent_bytes = 0;
  double bytes_per_s = 0;  ///< estimate; median over the peers
  std::optional<double> prediction_error{};
  std::int64_t backlog_bytes = 0;  ///< given to the rail, and not known to have left
  double posted_at_s = 0;          ///< by steady_clock_s, the same for all processes of a host
};

/// A rank's entries on the board of a transport. The file has mode 0600. Each process that uses the
/// file holds a lock, so that the kernel knows whether any process still lives; the last process
/// removes the file.
class rail_board {
 public:
  /// Opens or creates the board `id`, and removes boards that no process uses any more. `id` is
  /// equal on all ranks of a transport and differs between transports. Throws error if the board
  /// cannot be opened.
  rail_board(std::uint64_t id, int num_ranks, int num_rails, int rank,
             const std::string& folder = shared_memory);
  ~rail_board();
  rail_board(const rail_board&) = delete;
  rail_board& operator=(const rail_board&) = delete;

  /// Shows these loads from now on, for each rail in order. post() fills in process and program.
  void post(std::span<const posted_rail> rails);

 private:
  std::string path_;
  int fd_ = -1;
  std::int64_t first_entry_;  // of this rank
};

/// A program with rails on this host.
struct found_board {
  std::uint64_t id = 0;
  int num_ranks = 0;               ///< on all hosts
  std::vector<posted_rail> rails;  ///< by rank, of the ranks on this host
};

struct found_boards {
  std::vector<found_board> boards;
  std::vector<std::string> skipped;  ///< files that are no boards, with the reason
};

/// The boards of this user's programs. Removes boards that no process uses any more.
found_boards find_boards(const std::string& folder = shared_memory);

}  // namespace railpass::internal
