// SPDX-License-Identifier: BSL-1.0
//
// What the ranks of a host show of their rails while they run: a file in shared memory for each
// transport, in which every rank writes its own places and nobody waits for anybody.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal {

/// Where shared memory is found as files.
inline constexpr const char* shared_memory = "/dev/shm";

/// What a rank shows of one of its rails.
struct posted_rail {
  int rank = 0;          ///< of the communicator that the rails were opened for
  std::int64_t pid = 0;  ///< of who posted it
  std::string program{};
  std::string rail{};  ///< interface and address, so that ranks that share one are recognised
  std::int64_t sent_bytes = 0;
  double bytes_per_s = 0;  ///< as estimated, median over the peers
  std::optional<double> prediction_error{};
  std::int64_t backlog_bytes = 0;  ///< given to the rail and not known to have left it
  double posted_at_s = 0;          ///< by steady_clock_s, the same for all processes of a host
};

/// A rank's places on the board of a transport. The file is mode 0600 and locked by all who use it,
/// so that the kernel knows whether anybody lives; the last one removes it.
class rail_board {
 public:
  /// Finds the board `id`, or makes it, and removes those that nobody uses any more. `id` is the
  /// same on all ranks of the transport, and no other's. Throws error if that cannot be.
  rail_board(std::uint64_t id, int num_ranks, int num_rails, int rank,
             const std::string& folder = shared_memory);
  ~rail_board();
  rail_board(const rail_board&) = delete;
  rail_board& operator=(const rail_board&) = delete;

  /// What this rank shows from now on, of each rail in order. Who posts it is filled in.
  void post(std::span<const posted_rail> rails);

 private:
  std::string path_;
  int fd_ = -1;
  std::int64_t first_place_;  // of this rank
};

/// Who runs with rails on this host.
struct found_board {
  std::uint64_t id = 0;
  int num_ranks = 0;               ///< on all hosts
  std::vector<posted_rail> rails;  ///< by rank, of those on this host
};

struct found_boards {
  std::vector<found_board> boards;
  std::vector<std::string> skipped;  ///< files that are none, and why
};

/// The boards of this user's programs. Removes those that nobody uses any more.
found_boards find_boards(const std::string& folder = shared_memory);

}  // namespace railpass::internal
