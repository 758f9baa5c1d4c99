// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/link_probe.hpp"

#include "railpass/base/clock.hpp"

#include <unistd.h>

namespace railpass::internal {

namespace {

// Longer than what MPI libraries send unasked, and than the bursts that shaped links let through.
constexpr std::size_t data_bytes = 512 << 10;

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
      if (!meet(world.ranks[first_ranks[std::size_t(partner)]], host < partner)) return times;
      if (trial > first_trial && took_s_ > 0) times.add(std::size_t(trial), took_s_);
    }
  return times;
}

bool link_probe::meet(int peer, bool sends_first) {
  took_s_ = 0;
  goes_on_[0] = std::byte(spent_s_ < within_.budget_s);
  if (!agree_to_go_on(peer)) return false;
  if (goes_on_[0] == std::byte{} || peer_goes_on_[0] == std::byte{}) return true;
  const double began_s = steady_clock_s();
  if (!send_back_and_forth(peer, sends_first)) return false;
  took_s_ = steady_clock_s() - began_s;
  spent_s_ += took_s_;
  return true;
}

// Not at once: acknowledgements of one direction would wait behind data of the other direction. The
// last message tells the second host that its data has arrived.
bool link_probe::send_back_and_forth(int peer, bool sends_first) {
  if (sends_first) return send(data_, peer) && receive(data_, peer) && send(goes_on_, peer);
  return receive(data_, peer) && send(data_, peer) && receive(peer_goes_on_, peer);
}

bool link_probe::agree_to_go_on(int peer) {
  MPI_Request sent = MPI_REQUEST_NULL;
  return PMPI_Isend(goes_on_.data(), 1, MPI_BYTE, peer, base::link_tag, comm_, &sent) ==
             MPI_SUCCESS &&
         receive(peer_goes_on_, peer) && wait(sent);
}

bool link_probe::send(std::span<std::byte> bytes, int peer) {
  MPI_Request request = MPI_REQUEST_NULL;
  return PMPI_Isend(bytes.data(), int(bytes.size()), MPI_BYTE, peer, base::link_tag, comm_,
                    &request) == MPI_SUCCESS &&
         wait(request);
}

bool link_probe::receive(std::span<std::byte> bytes, int peer) {
  MPI_Request request = MPI_REQUEST_NULL;
  return PMPI_Irecv(bytes.data(), int(bytes.size()), MPI_BYTE, peer, base::link_tag, comm_,
                    &request) == MPI_SUCCESS &&
         wait(request);
}

// Naps leave the core to other ranks of the host, which may have to take part in the messages.
bool link_probe::wait(MPI_Request& request) const {
  constexpr double wakeful_s = 200e-6;
  constexpr unsigned nap_us = 50;
  const double began_s = steady_clock_s();
  for (int done = 0;;) {
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done) return true;
    const double now_s = steady_clock_s();
    if (now_s > within_.until_s) return false;
    if (now_s - began_s > wakeful_s) usleep(nap_us);
  }
}

}  // namespace railpass::internal
