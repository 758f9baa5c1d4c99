// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/link_probe.hpp"

#include "railpass/base/clock.hpp"

#include <unistd.h>

namespace railpass::internal {

namespace {

// Longer than what MPI libraries send unasked, and than the bursts that shaped links let through.
constexpr std::size_t data_bytes = 512 << 10;

// The first word says whether a host has time left, the second word that the host is still there. A
// host that has waited in vain says `gone` to all its partners.
constexpr std::byte ends{0}, goes_on{1}, gone{2};

}  // namespace

select::link_times link_probe::run(const base_mapping& world, std::span<const int> first_ranks,
                                   int host, const limits& within) {
  comm_ = world.of->comm;
  within_ = within;
  spent_s_ = 0;
  data_.resize(data_bytes);
  select::link_times times;
  const int num_hosts = int(first_ranks.size());
  constexpr int first_trial = -1;  // opens connections and is not counted
  for (int trial = first_trial; trial < int(select::link_times::num_trials); ++trial)
    for (int round = 0; round < select::link_rounds(num_hosts); ++round) {
      const int partner = select::link_partner(host, round, num_hosts);
      if (partner == host) continue;
      if (!meet(world.ranks[first_ranks[std::size_t(partner)]], host < partner)) {
        leave(world, first_ranks, host);
        return times;
      }
      if (trial > first_trial && took_s_ > 0) times.add(std::size_t(trial), took_s_);
    }
  return times;
}

void link_probe::leave(const base_mapping& world, std::span<const int> first_ranks, int host) {
  const int num_hosts = int(first_ranks.size());
  for (int round = 0; round < select::link_rounds(num_hosts); ++round) {
    const int partner = select::link_partner(host, round, num_hosts);
    MPI_Request request = MPI_REQUEST_NULL;
    if (partner != host &&
        PMPI_Isend(&gone, 1, MPI_BYTE, world.ranks[first_ranks[std::size_t(partner)]],
                   base::link_tag, comm_, &request) == MPI_SUCCESS)
      PMPI_Request_free(&request);
  }
}

bool link_probe::meet(int peer, bool sends_first) {
  took_s_ = 0;
  const std::byte mine = spent_s_ < within_.budget_s ? goes_on : ends;
  if (!exchange(mine, peer)) return false;
  if (mine == ends || peer_word_[0] == ends) return true;
  // The first word of a peer may be old.
  if (!exchange(goes_on, peer)) return false;
  const double began_s = steady_clock_s();
  if (!send_back_and_forth(peer, sends_first)) return false;
  took_s_ = steady_clock_s() - began_s;
  spent_s_ += took_s_;
  return true;
}

// Not at once: acknowledgements of one direction would wait behind data of the other direction. The
// last message says that the second host's data has arrived.
bool link_probe::send_back_and_forth(int peer, bool sends_first) {
  if (sends_first) return send(data_, peer) && receive(data_, peer) && send(word_, peer);
  return receive(data_, peer) && send(data_, peer) && receive(peer_word_, peer);
}

bool link_probe::exchange(std::byte word, int peer) {
  word_[0] = word;
  MPI_Request sent = MPI_REQUEST_NULL;
  if (PMPI_Isend(word_.data(), 1, MPI_BYTE, peer, base::link_tag, comm_, &sent) != MPI_SUCCESS)
    return false;
  return receive(peer_word_, peer) && wait(sent) && peer_word_[0] != gone;
}

bool link_probe::send(std::span<std::byte> bytes, int peer) {
  MPI_Request request = MPI_REQUEST_NULL;
  return PMPI_Isend(bytes.data(), int(bytes.size()), MPI_BYTE, peer, base::link_tag, comm_,
                    &request) == MPI_SUCCESS &&
         wait(request);
}

bool link_probe::receive(std::span<std::byte> bytes, int peer) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Irecv(bytes.data(), int(bytes.size()), MPI_BYTE, peer, base::link_tag, comm_,
                 &request) != MPI_SUCCESS)
    return false;
  MPI_Status status;
  if (wait(request, &status)) {
    int count = 0;
    PMPI_Get_count(&status, MPI_BYTE, &count);
    return std::size_t(count) == bytes.size();  // a peer that leaves sends one word
  }
  // A peer that comes later must not send data into it.
  if (request != MPI_REQUEST_NULL && PMPI_Cancel(&request) == MPI_SUCCESS)
    PMPI_Request_free(&request);
  return false;
}

// Naps leave the core to other ranks of the host, which may have to take part in the messages.
bool link_probe::wait(MPI_Request& request, MPI_Status* status) const {
  constexpr double wakeful_s = 200e-6;
  constexpr unsigned nap_us = 50;
  const double began_s = steady_clock_s();
  for (int done = 0;;) {
    if (PMPI_Test(&request, &done, status) != MPI_SUCCESS) return false;
    if (done) return true;
    const double now_s = steady_clock_s();
    if (now_s > within_.until_s) return false;
    if (now_s - began_s > wakeful_s) usleep(nap_us);
  }
}

}  // namespace railpass::internal
