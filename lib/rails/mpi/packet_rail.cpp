// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/mpi/packet_rail.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/rails/registry.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace railpass::internal {

using transport::header_bytes;
using transport::packet;
using transport::packet_sink;
using transport::piece;

namespace {

constexpr int header_tag = 0, payload_tag = 1;
static_assert(payload_tag < mpi_tags::num_tags);

template <class T>
std::unique_ptr<T> taken_from(std::vector<std::unique_ptr<T>>& free) {
  if (free.empty()) return std::make_unique<T>();
  std::unique_ptr<T> one = std::move(free.back());
  free.pop_back();
  return one;
}

std::string said_by_mpi(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(code, text, &length);
  return {text, std::size_t(length)};
}

}  // namespace

mpi_packet_rail::mpi_packet_rail(int index, mpi_tags over, int rank, int num_ranks,
                                 clock_function clock)
    : index_(index),
      over_(std::move(over)),
      clock_(clock),
      rank_(rank),
      num_ranks_(num_ranks),
      polled_s_(clock()),
      polled_before_s_(polled_s_) {
  PMPI_Comm_set_errhandler(over_.comm, MPI_ERRORS_RETURN);
  peers_.resize(std::size_t(num_ranks_));
  requests_.assign(std::size_t(num_ranks_), MPI_REQUEST_NULL);
  for (int peer = 0; peer < num_ranks_; ++peer) {
    of(peer).open = peer != rank_;
    if (peer == rank_) continue;
    of(peer).incoming = std::make_unique<buffer>();
    await_header(peer);
  }
}

mpi_packet_rail::~mpi_packet_rail() {
  if (std::ranges::any_of(requests_, [](MPI_Request r) { return r != MPI_REQUEST_NULL; }))
    keep_tags();
  leave_to_mpi();
}

void mpi_packet_rail::keep_tags() {
  static_cast<void>(new auto(std::exchange(over_.owner, nullptr)));
}

// Some MPI libraries keep using cancelled requests, so their memory is leaked.
void mpi_packet_rail::leave_to_mpi() {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer)
    if (requests_[peer] != MPI_REQUEST_NULL) {
      static_cast<void>(peers_[peer].incoming.release());
      static_cast<void>(peers_[peer].arriving.release());
    }
  for (sending& s : sending_) {
    static_cast<void>(s.joined.release());
    static_cast<void>(s.apart.release());
  }
  sending_.clear();
}

int mpi_packet_rail::receive(void* to, std::size_t bytes, int peer, int tag) {
  return PMPI_Irecv(to, int(bytes), MPI_BYTE, over_.ranks[peer], over_.first_tag + tag, over_.comm,
                    &requests_[std::size_t(peer)]);
}

void mpi_packet_rail::await_header(int peer) {
  const int code = receive(of(peer).incoming->data(), sizeof(buffer), peer, header_tag);
  if (code != MPI_SUCCESS) throw error("rail mpi: " + said_by_mpi(code));
}

void mpi_packet_rail::send(int peer, std::vector<transport::outgoing>& packets, packet_sink& sink) {
  if (!of(peer).open) return;  // the sink knows
  const auto add = [&](int code, MPI_Request request, sending&& s) {
    if (code != MPI_SUCCESS) {
      close(peer, said_by_mpi(code), sink);
      return false;
    }
    of(peer).under_way_bytes += s.bytes;
    under_way_bytes_ += s.bytes;
    requests_.push_back(request);
    sending_.push_back(std::move(s));
    return true;
  };
  for (transport::outgoing& o : packets) {
    const bool joins = o.header.length <= most_joined_bytes;
    sending s{.peer = peer, .token = joins ? o.token : 0, .joined = taken_from(free_buffers_)};
    const transport::packed_header header = transport::pack(o.header);
    std::byte* to = std::copy(header.begin(), header.end(), s.joined->data());
    if (joins)
      for (const piece& p : o.payload) to = std::copy_n(p.data, p.bytes, to);
    s.bytes = to - s.joined->data();
    MPI_Request request = MPI_REQUEST_NULL;
    int code = PMPI_Isend(s.joined->data(), int(s.bytes), MPI_BYTE, over_.ranks[peer],
                          over_.first_tag + header_tag, over_.comm, &request);
    if (!add(code, request, std::move(s))) return;
    if (joins) continue;
    std::size_t next = 0;  // piece
    for (std::uint64_t left = o.header.length; left > 0;) {
      sending one{.peer = peer, .apart = taken_from(free_parts_)};
      while (one.bytes < std::int64_t(part_bytes) && left > 0) {
        piece& p = o.payload[next];
        const std::size_t n = std::min(p.bytes, part_bytes - std::size_t(one.bytes));
        std::copy_n(p.data, n, one.apart->data() + one.bytes);
        one.bytes += std::int64_t(n);
        left -= n;
        p = {p.data + n, p.bytes - n};
        if (p.bytes == 0) ++next;
      }
      if (left == 0) one.token = o.token;
      // Synchronous, so that what has not been asked for counts as under way.
      code = PMPI_Issend(one.apart->data(), int(one.bytes), MPI_BYTE, over_.ranks[peer],
                         over_.first_tag + payload_tag, over_.comm, &request);
      if (!add(code, request, std::move(one))) return;
    }
  }
}

bool mpi_packet_rail::poll(packet_sink& sink) {
  polled_before_s_ = polled_s_;
  polled_s_ = clock_();
  ended_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int found = 0;
  const int code = PMPI_Testsome(int(requests_.size()), requests_.data(), &found, ended_.data(),
                                 statuses_.data());
  if (code != MPI_SUCCESS) {
    for (int peer = 0; peer < num_ranks_; ++peer)
      if (of(peer).open) close(peer, said_by_mpi(code), sink);
    return true;
  }
  if (found == MPI_UNDEFINED || found == 0) return false;
  for (int i = 0; i < found; ++i) {
    const int which = ended_[std::size_t(i)];
    if (which >= num_ranks_) {
      sending& s = sending_[std::size_t(which - num_ranks_)];
      of(s.peer).under_way_bytes -= s.bytes;
      under_way_bytes_ -= s.bytes;
      if (s.joined) free_buffers_.push_back(std::move(s.joined));
      if (s.apart) free_parts_.push_back(std::move(s.apart));
      if (s.token != 0) sink.sent(s.token);
      continue;
    }
    int bytes = 0;
    PMPI_Get_count(&statuses_[std::size_t(i)], MPI_BYTE, &bytes);
    if (of(which).current)
      part_came(which, bytes, sink);
    else
      header_came(which, bytes, sink);
  }
  drop_sent();
  return true;
}

void mpi_packet_rail::drop_sent() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sending_.size(); ++i) {
    MPI_Request& request = requests_[std::size_t(num_ranks_) + i];
    if (request == MPI_REQUEST_NULL) continue;
    if (kept != i) {
      sending_[kept] = std::move(sending_[i]);
      requests_[std::size_t(num_ranks_) + kept] = request;
    }
    ++kept;
  }
  sending_.resize(kept);
  requests_.resize(std::size_t(num_ranks_) + kept);
}

void mpi_packet_rail::header_came(int peer, int bytes, packet_sink& sink) {
  peer_state& p = of(peer);
  if (bytes == 0) {
    close(peer, "the other rank has given up", sink);
    return;
  }
  const auto header = std::size_t(bytes) < header_bytes
                          ? std::nullopt
                          : transport::parse(std::span<const std::byte, header_bytes>(
                                p.incoming->data(), header_bytes));
  const std::size_t joined =
      header && header->length <= most_joined_bytes ? std::size_t(header->length) : 0;
  if (!header || std::size_t(bytes) != header_bytes + joined) {
    close(peer, "received bytes that are no packet", sink);
    return;
  }
  p.where.clear();
  sink.arrived(index_, peer, *header, p.where);
  if (header->length > most_joined_bytes) {
    p.current = *header;
    p.left_bytes = header->length;
    p.next_piece = 0;
    p.arriving = taken_from(free_parts_);
    await_part(peer, sink);
    return;
  }
  const std::byte* from = p.incoming->data() + header_bytes;
  for (const piece& to : p.where) {
    std::copy_n(from, to.bytes, to.data);
    from += to.bytes;
  }
  completed(peer, *header, sink);
}

void mpi_packet_rail::await_part(int peer, packet_sink& sink) {
  const int code = receive(of(peer).arriving->data(), part_bytes, peer, payload_tag);
  if (code != MPI_SUCCESS) close(peer, said_by_mpi(code), sink);
}

void mpi_packet_rail::part_came(int peer, int bytes, packet_sink& sink) {
  peer_state& p = of(peer);
  auto here = std::uint64_t(bytes);
  if (here == 0 || here != std::min<std::uint64_t>(p.left_bytes, part_bytes)) {
    close(peer, here == 0 ? "the other rank has given up" : "received a part of another size",
          sink);
    return;
  }
  p.left_bytes -= here;
  for (const std::byte* from = p.arriving->data(); here > 0;) {
    piece& to = p.where[p.next_piece];
    const std::size_t n = std::min<std::size_t>(to.bytes, here);
    std::copy_n(from, n, to.data);
    from += n;
    here -= n;
    to = {to.data + n, to.bytes - n};
    if (to.bytes == 0) ++p.next_piece;
  }
  if (p.left_bytes > 0) {
    await_part(peer, sink);
    return;
  }
  free_parts_.push_back(std::move(p.arriving));
  completed(peer, *std::exchange(p.current, std::nullopt), sink);
}

void mpi_packet_rail::completed(int peer, const packet& header, packet_sink& sink) {
  if (header.type != transport::packet_type::farewell) await_header(peer);
  const double now_s = clock_();
  sink.complete(index_, peer, header, {.at_s = now_s, .late_s = now_s - polled_before_s_});
}

void mpi_packet_rail::close(int peer, const std::string& why, packet_sink& sink) {
  of(peer).open = false;
  sink.failed(index_, peer, why);
}

void mpi_packet_rail::abandon() {
  keep_tags();
  leave_to_mpi();
  for (MPI_Request& request : requests_)
    if (request != MPI_REQUEST_NULL) {
      PMPI_Cancel(&request);
      PMPI_Request_free(&request);
    }
  requests_.resize(std::size_t(num_ranks_));
  // Informs peers that wait for a header or a payload from this rank.
  for (int peer = 0; peer < num_ranks_; ++peer) {
    if (!of(peer).open) continue;
    of(peer).open = false;
    for (const int tag : {header_tag, payload_tag}) {
      MPI_Request request = MPI_REQUEST_NULL;
      if (PMPI_Isend(nullptr, 0, MPI_BYTE, over_.ranks[peer], over_.first_tag + tag, over_.comm,
                     &request) == MPI_SUCCESS)
        PMPI_Request_free(&request);
    }
  }
}

packet_rails open_mpi_rails(MPI_Comm comm, const mpi_tags& over,
                            const std::vector<wanted_rail>& wanted) {
  int rank = 0, num_ranks = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &num_ranks);
  packet_rails result;
  on_all(comm, [&] {
    if (wanted.size() > 1 || !wanted.front().name.empty())
      throw error("rails: expected 'mpi' once, and without a name");
    result.push_back(
        std::make_unique<mpi_packet_rail>(wanted.front().index, over, rank, num_ranks));
  });
  return result;
}

}  // namespace railpass::internal
