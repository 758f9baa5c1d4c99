// SPDX-License-Identifier: BSL-1.0
//
// The rail that every machine has: MPI point-to-point.
#pragma once

#include "lib/rails/mpi/rank_map.hpp"
#include "railpass/transport/rail.hpp"

#include <mpi.h>

#include <array>
#include <limits>
#include <sched.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// Sends and receives bytes on a communicator, by tags that nobody else uses there; see the concept
/// `rail`. Errors are MPI error codes; the constructor sets MPI_ERRORS_RETURN on the communicator.
/// What MPI_Testsome finds is raised on MPI_COMM_WORLD by some MPI libraries, which is the user's.
class mpi_rail {
 public:
  /// Over TCP the answers of MPI libraries' hand-shakes wait behind all that is under way.
  static constexpr int large_messages_at_once = 1;

  /// `communicator` stays the caller's and must outlive the rail, as must `ranks`, which says what
  /// it calls the peers (null: as they are called); `first_tag` is added to all tags. Messages of
  /// more than `largest_count` bytes are described by a derived datatype (MPI counts are int); both
  /// ends must use the same value. Local.
  explicit mpi_rail(MPI_Comm communicator, const rank_map* ranks = nullptr, int first_tag = 0,
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
  void give_way() { sched_yield(); }  // a rank that sleeps progresses no MPI for others
  int error_code() const { return error_code_; }
  void abandon();
  /// What a person is told where error_code() is MPI_ERR_TRUNCATE, since a message had another
  /// length than was posted for it; else empty.
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
  int error_code_ = MPI_SUCCESS;
  std::string unlike_;
  // Active requests only, without gaps: testing idle ones costs 4 ns each.
  std::vector<MPI_Request> requests_;
  std::vector<posted> posted_;
  std::size_t next_tested_ = 0;
  static constexpr std::size_t tested_at_once = 64;  // as many as the executor takes
  std::array<int, tested_at_once> indices_;          // what MPI_Testsome found
  std::array<MPI_Status, tested_at_once> statuses_;  // for the error code of the one that failed
};

/// Forgets requests after a failure: what they left in memory is undefined, but they write to it no
/// more if the ranks that send to it live.
void abandon(std::span<MPI_Request> requests);

/// A datatype of `bytes` contiguous bytes made of counts of at most `largest_count`, committed;
/// free it with MPI_Type_free. Returns an MPI error code.
int make_byte_type(std::int64_t bytes, std::int64_t largest_count, MPI_Datatype* type);

}  // namespace railpass::internal
