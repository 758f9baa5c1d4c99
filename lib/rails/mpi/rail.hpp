// SPDX-License-Identifier: BSL-1.0
//
// The rail that every machine has: MPI point-to-point.
#pragma once

#include "lib/base/yielding.hpp"
#include "lib/rails/mpi/rank_map.hpp"
#include "railpass/transport/rail.hpp"

#include <mpi.h>

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// Sends and receives bytes on a communicator, with tags that are unused there; see the concept
/// `rail`. Errors are MPI error codes; the constructor sets MPI_ERRORS_RETURN on the communicator.
/// Some MPI libraries raise errors of MPI_Testsome on MPI_COMM_WORLD, which belongs to the user.
class mpi_rail {
 public:
  /// Over TCP, the answers of MPI libraries' handshakes wait behind all pending data.
  static constexpr int large_messages_at_once = 1;

  /// `communicator` belongs to the caller, and must outlive the rail like `ranks`, which maps peers
  /// to ranks of the communicator (null: no mapping). `first_tag` is added to all tags. `own_core`:
  /// see yielding. Messages of more than `largest_count` bytes use a derived datatype (MPI counts
  /// are int); both ends must use the same value. Local.
  explicit mpi_rail(MPI_Comm communicator, const rank_map* ranks = nullptr, int first_tag = 0,
                    bool own_core = false,
                    std::int64_t largest_count = std::numeric_limits<int>::max());
  mpi_rail(const mpi_rail&) = delete;
  mpi_rail& operator=(const mpi_rail&) = delete;
  ~mpi_rail() = default;

  void reserve(std::size_t messages);
  post_result post_send(std::int32_t peer, std::int32_t tag, const std::byte* from,
                        std::int64_t bytes, rail_token token);
  post_result post_receive(std::int32_t peer, std::int32_t tag, std::byte* to, std::int64_t bytes,
                           rail_token token);
  int poll(std::span<rail_token> completed);
  int pending() const { return static_cast<int>(requests_.size()); }
  void give_way() { yields_.offer_core(); }  // a sleeping rank would not progress MPI for others
  int error_code() const { return error_code_; }
  void abandon();
  /// Message for the user if error_code() is MPI_ERR_TRUNCATE, because a message had another length
  /// than its receive; else empty.
  const std::string& unlike() const { return unlike_; }

 private:
  struct posted {
    rail_token token = 0;
    std::int32_t peer = 0;
    std::int64_t awaited_bytes = sends;
    static constexpr std::int64_t sends = -1;
  };

  post_result added(int code, MPI_Request request, const posted& what);
  bool has_its_length(const posted& what, const MPI_Status& status);
  void note_unlike(const posted& what, std::string_view came);
  void drop_ended_at_back();

  MPI_Comm communicator_;
  const rank_map* ranks_;
  int first_tag_;
  std::int64_t largest_count_;
  yielding yields_;
  int error_code_ = MPI_SUCCESS;
  std::string unlike_;
  // Active requests only, without gaps: testing idle ones costs 4 ns each.
  std::vector<MPI_Request> requests_;
  std::vector<posted> posted_;
  std::size_t next_tested_ = 0;
  static constexpr std::size_t tested_at_once = 64;  // the executor's limit
  std::array<int, tested_at_once> indices_;          // found by MPI_Testsome
  std::array<MPI_Status, tested_at_once> statuses_;  // for the error code of a failed request
};

/// Forgets requests after a failure. The content of their memory is undefined, but MPI no longer
/// writes there while the sending ranks live.
void abandon(std::span<MPI_Request> requests);

/// Makes a datatype of `bytes` contiguous bytes from counts of at most `largest_count`, and commits
/// it. Free it with MPI_Type_free. Returns an MPI error code.
int make_byte_type(std::int64_t bytes, std::int64_t largest_count, MPI_Datatype* type);

}  // namespace railpass::internal
