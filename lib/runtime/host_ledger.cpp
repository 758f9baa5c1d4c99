// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/host_ledger.hpp"

#include "railpass/base/float_environment.hpp"
#include "railpass/select/statistics/host_statistics.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <map>
#include <new>
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

}  // namespace

hosts_of_world::hosts_of_world(const base_mapping& world) {
  std::map<int, int> numbers;
  for (int r = 0; r < world.num_ranks; ++r) {
    const auto [number, is_new] =
        numbers.try_emplace(world.of->hosts->node_of(world.ranks[r]), int(numbers.size()));
    host_of_rank.push_back(number->second);
    if (is_new) first_ranks.push_back(r);
  }
}

std::string host_ledger::start(std::uint64_t board) {
  if (std::exchange(has_started_, true)) return "";
  const own_float_environment own;
  began_s_ = steady_clock_s();
  starved_before_s_ = starved_s().value_or(0);
  int rank = 0, num_ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  try {
    board_.emplace(board, num_ranks, rank);
  } catch (const std::exception& problem) {
    return problem.what();
  }
  return "";
}

void host_ledger::end_batch() {
  const own_float_environment own;
  const double now_s = steady_clock_s();
  const std::optional<double> starved = starved_s();
  sums_.end_batch(starved ? now_s - began_s_ : 0, starved ? *starved - starved_before_s_ : 0);
  began_s_ = now_s;
  starved_before_s_ = starved.value_or(0);
  if (board_) try {
      board_->post(sums_.total());
    } catch (const std::bad_alloc&) {  // the next batch shows all sums again
    }
}

host_ledger::message host_ledger::own_message(const base_mapping& world, bool names_host) const {
  message mine{.sums = sums_, .links = links_, .rank = world.rank};
  if (names_host) {
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    PMPI_Get_processor_name(name, &length);
    std::copy_n(name, std::min<std::size_t>(std::size_t(length), mine.host.size() - 1),
                mine.host.begin());
  }
  return mine;
}

std::vector<select::host_statistics> host_ledger::end(const base_mapping& world,
                                                      const settings& values) {
  board_.reset();
  const hosts_of_world hosts(world);
  const double until_s = steady_clock_s() + patience_s;
  const double budget_s = values.stats.empty() ? 0 : links_budget_s;
  const int host = hosts.host_of_rank[std::size_t(world.rank)];
  if (hosts.first_ranks[std::size_t(host)] == world.rank)
    links_ = probe_.run(world, hosts.first_ranks, host, {.until_s = until_s, .budget_s = budget_s});
  if (world.rank == 0) return gather(world, hosts, values.host_names, until_s);
  sent_ = own_message(world, values.host_names);
  PMPI_Isend(&sent_, int(sizeof sent_), MPI_BYTE, world.ranks[0], base::ledger_tag, world.of->comm,
             &request_);
  return {};
}

std::vector<select::host_statistics> host_ledger::gather(const base_mapping& world,
                                                         const hosts_of_world& on, bool names_hosts,
                                                         double until_s) const {
  const auto num_ranks = std::size_t(world.num_ranks);
  std::vector<message> all(num_ranks);
  all[0] = own_message(world, names_hosts);
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
  std::vector<select::link_times> links;
  for (const int r : on.first_ranks) links.push_back(all[std::size_t(r)].links);
  std::vector<select::host_statistics> hosts = select::hosts_of(ledgers, on.host_of_rank, links);
  if (names_hosts)
    for (select::host_statistics& h : hosts) h.name = all[std::size_t(h.first_rank)].host.data();
  return hosts;
}

}  // namespace railpass::internal
