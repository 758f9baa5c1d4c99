// SPDX-License-Identifier: BSL-1.0
//
// What bench/regret runs under smpirun. Times are simulated seconds; JSON goes to the file OUT.
//
//     simulated_machine samples OUT RANKS_PER_NODE
//         what `railpass sample` would measure between two ranks
//     simulated_machine arms OUT COLLECTIVE BYTES BUDGET_S ARM...
//         a call of each arm; arms that come after BUDGET_S of real time are left out
//     simulated_machine native OUT COLLECTIVE BYTES
//         the MPI library's own (--cfg=smpi/coll-selector), its result compared with what it must
//         be
//     simulated_machine live OUT COLLECTIVE BYTES CALLS
//         calls that railpass tunes by its settings; the arm and time of each
//
// Before each timed call all ranks sleep until one agreed moment; it ends when the last rank does.
#include "collectives/registry.hpp"
#include "lib/cli/workload.hpp"
#include "lib/files/files.hpp"
#include "railpass/mpi.hpp"

#include <nlohmann/json.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace {

using nlohmann::ordered_json;
using namespace railpass;

int rank = 0, num_ranks = 0;

void sleep_until(double moment_s) {
  const double left_s = moment_s - MPI_Wtime();
  if (left_s <= 0) return;
  timespec t{};
  t.tv_sec = time_t(left_s);
  t.tv_nsec = long((left_s - double(t.tv_sec)) * 1e9);
  nanosleep(&t, nullptr);
}

double largest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

/// How long the call takes if all ranks begin it at once.
double timed(const std::function<void()>& call) {
  const double start_s = largest(MPI_Wtime()) + 1e-3;
  sleep_until(start_s);
  call();
  return largest(MPI_Wtime()) - start_s;
}

void tuned_call(const cli::workload& w, const call_options& options) {
  call c = w.made_on(MPI_COMM_WORLD);
  run_call(c, options);
}

bool is_right_everywhere(const cli::workload& w) { return largest(w.is_right() ? 0 : 1) == 0; }

std::vector<std::int64_t> sample_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 8; b <= std::int64_t{4} << 20; b *= 2) sizes.push_back(b);
  return sizes;
}

/// Half a round trip, two ranks exchanging, a ring shifting, a stream; each once: nothing varies.
void sample_link(link_class link, int peer, measurements& into) {
  std::vector<std::byte> out(std::size_t{4} << 20), in(out.size());
  const MPI_Comm comm = MPI_COMM_WORLD;
  for (const std::int64_t bytes : sample_sizes()) {
    const int n = int(bytes);
    const auto ping = [&](bool synchronous) {
      const auto send = synchronous ? MPI_Ssend : MPI_Send;
      if (rank == 0) {
        send(out.data(), n, MPI_BYTE, peer, 0, comm);
        MPI_Recv(in.data(), n, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
      } else if (rank == peer) {
        MPI_Recv(in.data(), n, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
        send(out.data(), n, MPI_BYTE, 0, 0, comm);
      }
    };
    link_sample s{.link = link, .bytes = bytes};
    s.one_way_s = timed([&] { ping(false); }) / 2;
    s.rendezvous_s = timed([&] { ping(true); }) / 2;
    const auto swap = [&](int to, int from) {
      MPI_Sendrecv(out.data(), n, MPI_BYTE, to, 0, in.data(), n, MPI_BYTE, from, 0, comm,
                   MPI_STATUS_IGNORE);
    };
    s.exchange_s = timed([&] {
      if (rank == 0) swap(peer, peer);
      if (rank == peer) swap(0, 0);
    });
    if (link == link_class::across_nodes)
      s.shift_s = timed([&] { swap((rank + 1) % num_ranks, (rank + num_ranks - 1) % num_ranks); });
    // The sender's own time; the receiver's is as long in SMPI's model.
    double overhead_s = 0;
    timed([&] {
      MPI_Request r = MPI_REQUEST_NULL;
      if (rank == 0) {
        const double t0 = MPI_Wtime();
        MPI_Isend(out.data(), n, MPI_BYTE, peer, 0, comm, &r);
        overhead_s = MPI_Wtime() - t0;
      }
      if (rank == peer) MPI_Irecv(in.data(), n, MPI_BYTE, 0, 0, comm, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    });
    overhead_s = largest(overhead_s);
    if (overhead_s > 0) s.send_overhead_s = s.receive_overhead_s = overhead_s;
    into.links.push_back(s);
    constexpr int messages = 16;
    std::vector<MPI_Request> requests(messages, MPI_REQUEST_NULL);
    const double stream_s = timed([&] {
      for (MPI_Request& r : requests) {
        if (rank == 0) MPI_Isend(out.data(), n, MPI_BYTE, peer, 0, comm, &r);
        if (rank == peer) MPI_Irecv(in.data(), n, MPI_BYTE, 0, 0, comm, &r);
      }
      if (rank == 0 || rank == peer) MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
    });
    const double busy_s = (stream_s - s.one_way_s) / (messages - 1);
    if (busy_s > 0) into.streams.push_back({.link = link, .bytes = bytes, .busy_s = busy_s});
  }
}

ordered_json samples(int ranks_per_node) {
  sample_set s{.machine_id = {.num_hosts = num_ranks / ranks_per_node},
               .sampled_at = "2026-01-01T00:00:00Z"};
  // Not a neighbour: a message of average length of way.
  const int far = num_ranks / 2;
  sample_link(link_class::across_nodes, std::max(far, ranks_per_node), s.measured);
  if (ranks_per_node > 1) sample_link(link_class::same_node, 1, s.measured);
  return ordered_json::parse(files::to_json(s));
}

/// What a merge adds to the calls in which it begins and ends.
double merge_s() {
  std::vector<int> words(128);
  MPI_Request r = MPI_REQUEST_NULL;
  const double begin_s = timed([&] {
    MPI_Iallreduce(MPI_IN_PLACE, words.data(), int(words.size()), MPI_INT, MPI_MIN, MPI_COMM_WORLD,
                   &r);
  });
  return begin_s + timed([&] { MPI_Wait(&r, MPI_STATUS_IGNORE); });
}

ordered_json arms(cli::workload& w, double budget_s, const std::vector<std::string>& names) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = ordered_json::array();
  mpi::start_tuning(MPI_COMM_WORLD);
  for (const std::string& name : names) {
    const double so_far_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (largest(so_far_s) > budget_s) break;
    w.prepare();
    // Merges, which the policy of no context asks for here, fall into few of the calls.
    constexpr int repetitions = 3;
    double seconds = timed([&] { tuned_call(w, {.arm = name}); });
    for (int i = 1; i < repetitions; ++i)
      seconds = std::min(seconds, timed([&] { tuned_call(w, {.arm = name}); }));
    const bool right = is_right_everywhere(w);
    if (mpi::last_arm(MPI_COMM_WORLD) != name) continue;  // not eligible
    result.push_back({{"arm", name}, {"seconds", seconds}, {"right", right}});
  }
  return {{"merge_s", merge_s()}, {"arms", std::move(result)}};
}

ordered_json native(cli::workload& w) {
  // Some build communicators in their first call.
  tuned_call(w, {.arm = "native"});  // untuned: no merges
  w.prepare();
  const double seconds = timed([&] { tuned_call(w, {.arm = "native"}); });
  return {{"seconds", seconds}, {"right", is_right_everywhere(w)}};
}

ordered_json live(const cli::workload& w, int calls) {
  mpi::start_tuning(MPI_COMM_WORLD);
  auto names = ordered_json::array(), seconds = ordered_json::array();
  for (int i = 0; i < calls; ++i) {
    seconds.push_back(timed([&] { tuned_call(w, {}); }));
    names.push_back(mpi::last_arm(MPI_COMM_WORLD));
  }
  return {{"arms", std::move(names)}, {"seconds", std::move(seconds)}};
}

int run(const std::vector<std::string>& a) {
  if (a.size() < 3) throw error("expected samples, arms, native or live, and a file");
  ordered_json result;
  if (a[0] == "samples") {
    result = samples(std::stoi(a[2]));
  } else {
    if (a.size() < 4) throw error("expected a collective and bytes");
    const auto op = find_collective(a[2]);
    if (!op) throw error("'" + a[2] + "': expected a collective");
    cli::workload w({.rank = rank, .num_ranks = num_ranks}, *op,
                    cli::whole_message_bytes(*op, std::stoll(a[3]), num_ranks), 0);
    if (a[0] == "arms") result = arms(w, std::stod(a.at(4)), {a.begin() + 5, a.end()});
    if (a[0] == "native") result = native(w);
    if (a[0] == "live") result = live(w, std::stoi(a.at(4)));
  }
  if (rank == 0) std::ofstream(a[1]) << result.dump() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  int code = 1;
  try {
    code = run({argv + 1, argv + argc});
  } catch (const std::exception& problem) {
    std::cerr << "simulated_machine: " << problem.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return code;
}
