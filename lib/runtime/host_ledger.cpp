// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/host_ledger.hpp"

#include "railpass/select/statistics/host_statistics.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <map>
#include <optional>
#include <sched.h>
#include <unistd.h>
#include <utility>

namespace railpass::internal {

namespace {

// For how long the kernel has kept the first thread of this process from running although it was
// ready. Nothing if the kernel does not count that.
std::optional<double> starved_s() {
  std::array<char, 128> text{};
  const int file = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const ssize_t size = read(file, text.data(), text.size() - 1);
  close(file);
  std::uint64_t waited_ns = 0;
  if (size <= 0 || std::sscanf(text.data(), "%*u %" SCNu64, &waited_ns) != 1) return std::nullopt;
  return 1e-9 * double(waited_ns);
}

// Hosts of the ranks, numbered from 0 on in the order of their first ranks.
std::vector<int> numbered(const base_mapping& world) {
  std::map<int, int> numbers;
  std::vector<int> host_of_rank;
  for (int r = 0; r < world.num_ranks; ++r)
    host_of_rank.push_back(
        numbers.try_emplace(world.of->hosts->node_of(world.ranks[r]), int(numbers.size()))
            .first->second);
  return host_of_rank;
}

}  // namespace

void host_ledger::start() {
  if (std::exchange(has_started_, true)) return;
  began_s_ = steady_clock_s();
  starved_before_s_ = starved_s().value_or(0);
}

void host_ledger::end_batch() {
  const double now_s = steady_clock_s();
  const std::optional<double> starved = starved_s();
  sums_.end_batch(starved ? now_s - began_s_ : 0, starved ? *starved - starved_before_s_ : 0);
  began_s_ = now_s;
  starved_before_s_ = starved.value_or(0);
}

host_ledger::message host_ledger::own_message(const base_mapping& world, bool names_host) const {
  message mine{.sums = sums_, .rank = world.rank};
  if (names_host) {
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    PMPI_Get_processor_name(name, &length);
    std::copy_n(name, std::min<std::size_t>(std::size_t(length), mine.host.size() - 1),
                mine.host.begin());
  }
  return mine;
}

void host_ledger::tell(const base_mapping& world, bool names_host) {
  sent_ = own_message(world, names_host);
  PMPI_Isend(&sent_, int(sizeof sent_), MPI_BYTE, world.ranks[0], base::ledger_tag, world.of->comm,
             &request_);
}

std::vector<select::host_statistics> host_ledger::gather(const base_mapping& world,
                                                         bool names_hosts) {
  const auto num_ranks = std::size_t(world.num_ranks);
  std::vector<message> all(num_ranks);
  all[0] = own_message(world, names_hosts);
  const double until_s = steady_clock_s() + patience_s;
  for (std::size_t missing = num_ranks - 1; missing > 0;) {
    int came = 0;
    message one;
    MPI_Status status;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, base::ledger_tag, world.of->comm, &came, &status) !=
        MPI_SUCCESS)
      return {};
    if (!came) {
      if (steady_clock_s() > until_s) return {};
      sched_yield();
      continue;
    }
    if (PMPI_Recv(&one, int(sizeof one), MPI_BYTE, status.MPI_SOURCE, base::ledger_tag,
                  world.of->comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return {};
    all[std::size_t(one.rank)] = one;
    --missing;
  }
  std::vector<select::rank_ledger> ledgers;
  for (const message& one : all) ledgers.push_back(one.sums);
  std::vector<select::host_statistics> hosts = select::hosts_of(ledgers, numbered(world));
  if (names_hosts)
    for (select::host_statistics& h : hosts) h.name = all[std::size_t(h.first_rank)].host.data();
  return hosts;
}

}  // namespace railpass::internal
