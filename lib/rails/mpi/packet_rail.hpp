// SPDX-License-Identifier: BSL-1.0
//
// A rail over MPI messages, to ranks that no interface reaches and, by shared memory, to ranks of
// the same host.
#pragma once

#include "lib/rails/mpi/tags.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/transport/packet_rail.hpp"

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal {

/// Every packet is one MPI message of header and payload, or a header followed by messages with the
/// parts of a large payload. An empty message means that its sender has given up.
///
/// All messages leave from and arrive in memory of the rail. MPI operations cannot be cancelled
/// reliably, so after giving up the rail no other memory is safe from MPI.
class mpi_packet_rail final : public transport::packet_rail {
 public:
  /// Connects this rank and all other ranks, over a communicator that must outlive the rail.
  /// `index` identifies this rail for the sink. Throws error if MPI cannot receive.
  mpi_packet_rail(int index, mpi_tags over, int rank, int num_ranks,
                  clock_function clock = steady_clock_s);
  /// Leaves to MPI what was never closed, including memory and tags: MPI may still write and
  /// receive.
  ~mpi_packet_rail() override;

  void send(int peer, std::vector<transport::outgoing>& packets,
            transport::packet_sink& sink) override;
  std::int64_t under_way_bytes(int peer) override { return of(peer).under_way_bytes; }
  std::int64_t under_way_bytes() override { return under_way_bytes_; }
  bool poll(transport::packet_sink& sink) override;
  void abandon() override;
  int descriptor() const override { return -1; }  // MPI advances only inside MPI calls
  const std::string& name() const override { return name_; }

 private:
  // Payload sent together with its header.
  static constexpr std::size_t most_joined_bytes = 4096;
  using buffer = std::array<std::byte, transport::header_bytes + most_joined_bytes>;
  // Payload in separate messages, small enough to be copied within the caches.
  static constexpr std::size_t part_bytes = 128 << 10;
  using part = std::array<std::byte, part_bytes>;

  struct peer_state {
    bool open = true;
    std::int64_t under_way_bytes = 0;
    std::unique_ptr<buffer> incoming;
    std::optional<transport::packet> current;  // whose payload comes in parts
    std::unique_ptr<part> arriving;
    std::vector<transport::piece> where;  // memory of the remaining payload
    std::size_t next_piece = 0;
    std::uint64_t left_bytes = 0;
  };
  struct sending {
    int peer = 0;
    std::int64_t bytes = 0;
    std::uint64_t token = 0;
    std::unique_ptr<buffer> joined{};  // one of these two
    std::unique_ptr<part> apart{};
  };

  peer_state& of(int peer) { return peers_[std::size_t(peer)]; }
  void await_header(int peer);
  void await_part(int peer, transport::packet_sink& sink);
  void part_came(int peer, int bytes, transport::packet_sink& sink);
  void header_came(int peer, int bytes, transport::packet_sink& sink);
  void completed(int peer, const transport::packet& header, transport::packet_sink& sink);
  void close(int peer, const std::string& why, transport::packet_sink& sink);
  void drop_sent();
  void leave_to_mpi();
  void keep_tags();  // for ever
  int receive(void* to, std::size_t bytes, int peer, int tag);

  int index_;
  std::string name_ = "mpi";
  mpi_tags over_;
  clock_function clock_;
  int rank_, num_ranks_;
  std::vector<peer_state> peers_;
  std::int64_t under_way_bytes_ = 0;
  // First a receive per rank, then the sends.
  std::vector<MPI_Request> requests_;
  std::vector<sending> sending_;
  std::vector<std::unique_ptr<buffer>> free_buffers_;
  std::vector<std::unique_ptr<part>> free_parts_;
  std::vector<int> ended_;
  std::vector<MPI_Status> statuses_;
  double polled_s_, polled_before_s_;
};

}  // namespace railpass::internal
