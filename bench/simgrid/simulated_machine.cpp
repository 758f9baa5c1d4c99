// SPDX-License-Identifier: BSL-1.0
//
// What bench/regret runs under smpirun. Times are simulated seconds; JSON goes to the file OUT.
//
//     simulated_machine samples OUT
//         what `railpass sample` measures of the links
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
#include "lib/cli/sampler.hpp"
#include "lib/cli/workload.hpp"
#include "lib/files/files.hpp"
#include "lib/session/merge_messages.hpp"
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

/// The processes of MPI_COMM_WORLD. It is freed before MPI ends: a merge that is still under way
/// then would end in a callback of MPI_Finalize, where SMPI sends nothing any more.
class tuned_world {
 public:
  tuned_world() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    mpi::start_tuning(comm_);
  }
  ~tuned_world() { MPI_Comm_free(&comm_); }
  tuned_world(const tuned_world&) = delete;
  tuned_world& operator=(const tuned_world&) = delete;

  void call(const cli::workload& w, const call_options& options) const {
    railpass::call c = w.made_on(comm_);
    run_call(c, options);
  }
  std::string last_arm() const { return std::string(mpi::last_arm(comm_)); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

bool is_right_everywhere(const cli::workload& w) { return largest(w.is_right() ? 0 : 1) == 0; }

ordered_json samples(const cli::job& j) {
  constexpr double budget_s = 4;  // simulated
  sample_set s{.machine_id = {.num_hosts = j.num_nodes()},
               .sampled_at = "2026-01-01T00:00:00Z",
               .measured = cli::sample_links(j, "", budget_s, [](double, const std::string&) {})};
  // A message travels only once its receive is posted, which would count as work of the receiver;
  // that is the sender's in SMPI.
  for (link_sample& l : s.measured.links) l.receive_overhead_s = l.send_overhead_s;
  return ordered_json::parse(files::to_json(s));
}

/// What a merge adds to the calls over which it is spread, or to the one in which it is made.
double merge_s(const cli::job& j, bool at_once) {
  const select::tree_place place{j.rank, j.num_ranks};
  // Without contexts a call takes no time: only what is free is made at once.
  select::lockstep steps({.initial_merge_at_once_s = at_once ? 0 : 1.0}, place);
  merge_messages messages(MPI_COMM_WORLD, place);
  const std::int64_t others = at_once ? 1 : 0;  // the first one is spread
  double total_s = 0;
  while (steps.merges() <= others) {
    steps.begin_call();
    const bool counts = steps.merges() == others;
    const double seconds = timed([&] {
      bool mismatch = false;
      messages.make_due_steps(
          steps, nullptr, [](MPI_Request& r) { return MPI_Wait(&r, MPI_STATUS_IGNORE); }, mismatch);
    });
    if (counts) total_s += seconds;
  }
  return total_s;
}

/// The quickest of three calls: merges, which the policy of no context asks for here, and building
/// communicators fall into few of them.
double call_s(const tuned_world& world, const cli::workload& w, const std::string& arm) {
  double seconds = timed([&] { world.call(w, {.arm = arm}); });
  for (int i = 1; i < 3; ++i)
    seconds = std::min(seconds, timed([&] { world.call(w, {.arm = arm}); }));
  return seconds;
}

ordered_json arms(const cli::job& j, cli::workload& w, double budget_s,
                  const std::vector<std::string>& names) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = ordered_json::array();
  const tuned_world world;
  for (const std::string& name : names) {
    const double so_far_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (largest(so_far_s) > budget_s) break;
    w.prepare();
    const double seconds = call_s(world, w, name);
    const bool right = is_right_everywhere(w);
    if (world.last_arm() != name) continue;  // not eligible
    result.push_back({{"arm", name}, {"seconds", seconds}, {"right", right}});
  }
  return {{"merge_s", merge_s(j, false)},
          {"merge_at_once_s", merge_s(j, true)},
          {"arms", std::move(result)}};
}

ordered_json native(cli::workload& w) {
  w.prepare();
  const double seconds = call_s(tuned_world(), w, "native");
  return {{"seconds", seconds}, {"right", is_right_everywhere(w)}};
}

ordered_json live(const cli::workload& w, int calls) {
  const tuned_world world;
  auto names = ordered_json::array(), seconds = ordered_json::array();
  for (int i = 0; i < calls; ++i) {
    seconds.push_back(timed([&] { world.call(w, {}); }));
    names.push_back(world.last_arm());
  }
  return {{"arms", std::move(names)}, {"seconds", std::move(seconds)}};
}

int run(const cli::job& j, const std::vector<std::string>& a) {
  if (a.size() < 2) throw error("expected samples, arms, native or live, and a file");
  ordered_json result;
  if (a[0] == "samples") {
    result = samples(j);
  } else {
    if (a.size() < 4) throw error("expected a collective and bytes");
    const auto op = find_collective(a[2]);
    if (!op) throw error("'" + a[2] + "': expected a collective");
    cli::workload w(j, *op, cli::whole_message_bytes(*op, std::stoll(a[3]), j.num_ranks), 0);
    if (a[0] == "arms") result = arms(j, w, std::stod(a.at(4)), {a.begin() + 5, a.end()});
    if (a[0] == "native") result = native(w);
    if (a[0] == "live") result = live(w, std::stoi(a.at(4)));
  }
  if (j.rank == 0) std::ofstream(a[1]) << result.dump() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return cli::run_job([&](const cli::job& j) { return run(j, {argv + 1, argv + argc}); });
  } catch (const std::exception& problem) {
    std::cerr << "simulated_machine: " << problem.what() << '\n';
    return 1;
  }
}
