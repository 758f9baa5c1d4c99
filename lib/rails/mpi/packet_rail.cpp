// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/mpi/packet_rail.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/rails/registry.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace railpass {

using transport::header_bytes;
using transport::packet;
using transport::packet_sink;
using transport::piece;

namespace {

constexpr int header_tag = 0, payload_tag = 1;

// Begins a message of several pieces of memory. Returns an MPI error code.
template <class Begin>
int with_pieces(const std::vector<piece>& pieces, const Begin& begin) {
  if (pieces.size() == 1)
    return begin(static_cast<void*>(pieces[0].data), int(pieces[0].bytes), MPI_BYTE);
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  for (const piece& p : pieces) {
    lengths.push_back(int(p.bytes));
    places.emplace_back();
    PMPI_Get_address(p.data, &places.back());
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int code =
      PMPI_Type_create_hindexed(int(pieces.size()), lengths.data(), places.data(), MPI_BYTE, &type);
  if (code == MPI_SUCCESS) code = PMPI_Type_commit(&type);
  if (code == MPI_SUCCESS) code = begin(MPI_BOTTOM, 1, type);
  if (type != MPI_DATATYPE_NULL) PMPI_Type_free(&type);
  return code;
}

std::string said_by_mpi(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(code, text, &length);
  return {text, std::size_t(length)};
}

}  // namespace

mpi_packet_rail::mpi_packet_rail(int index, MPI_Comm communicator, clock_function clock)
    : index_(index),
      communicator_(communicator),
      clock_(clock),
      polled_s_(clock()),
      polled_before_s_(polled_s_) {
  PMPI_Comm_rank(communicator, &rank_);
  PMPI_Comm_size(communicator, &num_ranks_);
  PMPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
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
  for (std::size_t peer = 0; peer < peers_.size(); ++peer)
    if (requests_[peer] != MPI_REQUEST_NULL) static_cast<void>(peers_[peer].incoming.release());
  for (sending& s : sending_) static_cast<void>(s.joined.release());
}

std::unique_ptr<mpi_packet_rail::buffer> mpi_packet_rail::free_buffer() {
  if (free_.empty()) return std::make_unique<buffer>();
  std::unique_ptr<buffer> b = std::move(free_.back());
  free_.pop_back();
  return b;
}

void mpi_packet_rail::await_header(int peer) {
  const int code = PMPI_Irecv(of(peer).incoming->data(), int(sizeof(buffer)), MPI_BYTE, peer,
                              header_tag, communicator_, &requests_[std::size_t(peer)]);
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
    sending s{.peer = peer,
              .bytes = std::int64_t(header_bytes),
              .token = joins ? o.token : 0,
              .joined = free_buffer()};
    const transport::packed_header header = transport::pack(o.header);
    std::byte* to = std::copy(header.begin(), header.end(), s.joined->data());
    if (joins)
      for (const piece& p : o.payload) to = std::copy_n(p.data, p.bytes, to);
    s.bytes = to - s.joined->data();
    MPI_Request request = MPI_REQUEST_NULL;
    int code = PMPI_Isend(s.joined->data(), int(s.bytes), MPI_BYTE, peer, header_tag, communicator_,
                          &request);
    if (!add(code, request, std::move(s))) return;
    if (joins) continue;
    // Synchronous, so that what has not been asked for counts as under way.
    code = with_pieces(o.payload, [&](void* memory, int count, MPI_Datatype type) {
      return PMPI_Issend(memory, count, type, peer, payload_tag, communicator_, &request);
    });
    if (!add(code, request,
             {.peer = peer,
              .bytes = std::int64_t(o.header.length),
              .token = o.token,
              .joined = nullptr}))
      return;
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
      if (s.joined) free_.push_back(std::move(s.joined));
      if (s.token != 0) sink.sent(s.token);
      continue;
    }
    int bytes = 0;
    PMPI_Get_count(&statuses_[std::size_t(i)], MPI_BYTE, &bytes);
    if (const auto current = std::exchange(of(which).current, std::nullopt)) {
      if (std::uint64_t(bytes) == current->length)
        completed(which, *current, sink);
      else
        close(which, "the other end has given up", sink);
    } else {
      header_came(which, bytes, sink);
    }
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
    close(peer, "the other end has given up", sink);
    return;
  }
  const auto header = std::size_t(bytes) < header_bytes
                          ? std::nullopt
                          : transport::parse(std::span<const std::byte, header_bytes>(
                                p.incoming->data(), header_bytes));
  const std::size_t joined =
      header && header->length <= most_joined_bytes ? std::size_t(header->length) : 0;
  if (!header || std::size_t(bytes) != header_bytes + joined) {
    close(peer, "bytes came that are no packet", sink);
    return;
  }
  std::vector<piece> where;
  sink.arrived(index_, peer, *header, where);
  if (header->length > most_joined_bytes) {
    const int code = with_pieces(where, [&](void* memory, int count, MPI_Datatype type) {
      return PMPI_Irecv(memory, count, type, peer, payload_tag, communicator_,
                        &requests_[std::size_t(peer)]);
    });
    p.current = *header;
    if (code != MPI_SUCCESS) close(peer, said_by_mpi(code), sink);
    return;
  }
  const std::byte* from = p.incoming->data() + header_bytes;
  for (const piece& to : where) {
    std::copy_n(from, to.bytes, to.data);
    from += to.bytes;
  }
  completed(peer, *header, sink);
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
  for (MPI_Request& request : requests_)
    if (request != MPI_REQUEST_NULL) {
      PMPI_Cancel(&request);
      PMPI_Request_free(&request);
    }
  // Not all of MPI lets go of a send that is cancelled.
  for (sending& s : sending_) static_cast<void>(s.joined.release());
  sending_.clear();
  requests_.resize(std::size_t(num_ranks_));
  // Who waits for a header, or for a payload, learns of it.
  for (int peer = 0; peer < num_ranks_; ++peer) {
    if (!of(peer).open) continue;
    of(peer).open = false;
    for (const int tag : {header_tag, payload_tag}) {
      MPI_Request request = MPI_REQUEST_NULL;
      if (PMPI_Isend(nullptr, 0, MPI_BYTE, peer, tag, communicator_, &request) == MPI_SUCCESS)
        PMPI_Request_free(&request);
    }
  }
}

packet_rails open_mpi_rails(MPI_Comm comm, const std::vector<wanted_rail>& wanted) {
  packet_rails result;
  on_all(comm, [&] {
    if (wanted.size() > 1 || !wanted.front().name.empty())
      throw error("rails: expected 'mpi' once, and no name of it");
    result.push_back(std::make_unique<mpi_packet_rail>(wanted.front().index, comm));
  });
  return result;
}

}  // namespace railpass
