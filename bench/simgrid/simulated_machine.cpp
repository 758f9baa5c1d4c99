// SPDX-License-Identifier: BSL-1.0
//
// The program that bench/regret runs under smpirun. Times are simulated seconds; JSON goes to the
// file OUT.
//
//     simulated_machine samples OUT
//         what `railpass sample` measures of the links
//     simulated_machine arms OUT COLLECTIVE BYTES BUDGET_S ARM...
//         a call of each arm; arms that come after BUDGET_S of real time are left out
//     simulated_machine native OUT COLLECTIVE BYTES
//         the MPI library's own (--cfg=smpi/coll-selector), its result compared with what it must
//         be
//     simulated_machine live OUT COLLECTIVE BYTES CALLS [FROM TO]
//         calls that railpass tunes by its settings; the arm and time of each, and whether all
//         results were right
//     simulated_machine late OUT COLLECTIVE BYTES CALLS ARM...
//         calls to which ranks come late; what they took, and what select/lockstep/skew.hpp makes
//         of them
//
// Before each timed call all ranks sleep until one agreed moment; it ends when the last rank does.
// The first argument may be --slow=HOST,BANDWIDTH: links are slower (see slow_links.hpp),
// with `live` from call FROM until before call TO. The next ones may be --empty=SHARE of the blocks
// of an all_to_allv or all_to_allw, and --calls=N, of which the quickest counts (3 if not said).
#include "collectives/registry.hpp"
#include "lib/files/files.hpp"
#include "lib/group/base.hpp"
#include "lib/group/merge_messages.hpp"
#include "lib/measure/job.hpp"
#include "lib/measure/links.hpp"
#include "lib/measure/workload.hpp"
#include "railpass/mpi.hpp"
#include "railpass/select/lockstep/skew.hpp"
#include "railpass/select/policy/random.hpp"
#include "slow_links.hpp"

#include <nlohmann/json.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using nlohmann::ordered_json;
using namespace railpass;
using namespace railpass::internal;

/// A late beginning would count as a slow call, so it throws. Exceptions other than `error` end all
/// ranks.
void sleep_until(double moment_s) {
  const double left_s = moment_s - MPI_Wtime();
  if (left_s <= 0) throw std::logic_error("the moment agreed on has passed");
  timespec t{};
  t.tv_sec = time_t(left_s);
  t.tv_nsec = long((left_s - double(t.tv_sec)) * 1e9);
  nanosleep(&t, nullptr);
}

// Two trees: on a thousand ranks a fifth of the messages of recursive doubling.
double largest(double mine) {
  double all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Bcast(&all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
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

  void call(const measure::workload& w, const call_options& options) const {
    railpass::internal::call c = w.made_on(comm_);
    run_call(c, options);
  }
  std::string last_arm() const { return std::string(mpi::last_arm(comm_)); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

bool is_right_everywhere(const measure::workload& w) { return largest(w.is_right() ? 0 : 1) == 0; }

ordered_json samples(const measure::job& j) {
  constexpr double budget_s = 4;  // simulated
  sample_set s{
      .machine_id = {.num_hosts = j.num_nodes()},
      .sampled_at = "2026-01-01T00:00:00Z",
      .measured = measure::sample_links(j, "", budget_s, [](double, const std::string&) {})};
  // A message travels only once its receive is posted, which would count as work of the receiver;
  // that is the sender's in SMPI.
  for (link_sample& l : s.measured.links) l.receive_overhead_s = l.send_overhead_s;
  // Copies and reductions cost nothing there; without samples they would cost what is usual.
  constexpr double nothing_s = 1e-12;
  s.measured.copies = s.measured.reductions = {{8, nothing_s}, {1 << 20, nothing_s}};
  return ordered_json::parse(files::to_json(s));
}

/// A merge, spread over calls or made in one: what it adds to them, and what the leader is told,
/// the most time that any rank spent on it.
ordered_json merge(const measure::job& j, bool at_once) {
  // Without contexts a call takes no time: only what is free is made at once.
  select::lockstep steps({}, j.rank, j.num_ranks);
  steps.expect({.at_once_s = at_once ? 0 : 1.0});
  merge_messages messages(j.rank, j.num_ranks);
  bases& all = bases::of_process();
  base_mapping mapping;
  if (all.make(MPI_COMM_WORLD, bases::prepare(j.num_ranks, 0), mapping) != MPI_SUCCESS)
    throw error("no communicator for merges could be made");
  const auto lane = std::make_shared<base_lane>();
  all.take(*mapping.of, 0);
  lane->become(std::move(mapping), 0, 0);
  messages.connect(lane);
  const std::int64_t others = at_once ? 1 : 0;  // the first one is spread
  double total_s = 0, mine_s = 0;
  while (steps.merges() <= others) {
    steps.begin_call();
    const bool counts = steps.merges() == others;
    double inside_s = 0;
    const double seconds = timed([&] {
      const double began_s = MPI_Wtime();
      bool mismatch = false;
      messages.make_due_steps(
          steps, nullptr, [](MPI_Request& r, MPI_Status& s) { return MPI_Wait(&r, &s); }, mismatch);
      inside_s = MPI_Wtime() - began_s;
    });
    if (!counts) continue;
    total_s += seconds;
    mine_s += inside_s;
  }
  return {{"adds_s", total_s}, {"charged_s", largest(mine_s)}};
}

/// The time that a context's first plan adds to its first call.
double first_plan_s() {
  select::plan_message message{};
  return timed(
      [&] { PMPI_Bcast(message.data(), int(message.size()), MPI_INT32_T, 0, MPI_COMM_WORLD); });
}

/// Merges that no context asks for are ever further apart, a step in each of 2 h calls. The first
/// one begins at call 2. Each later one begins at three times the call at which the last one ended.
/// After two such merges, the next merge comes after all timed calls.
void pass_first_merges(const measure::job& j, const tuned_world& world) {
  const int calls = 7 + 8 * select::tree_position{j.rank, j.num_ranks}.height();
  measure::workload w(j, collective::broadcast, 8, 0);
  w.prepare();
  for (int i = 0; i < calls; ++i) world.call(w, {.arm = "native"});
}

/// The time of the quickest call. The first call builds schedules and communicators.
double call_s(const tuned_world& world, const measure::workload& w, const std::string& arm,
              int calls) {
  double seconds = timed([&] { world.call(w, {.arm = arm}); });
  for (int i = 1; i < calls; ++i)
    seconds = std::min(seconds, timed([&] { world.call(w, {.arm = arm}); }));
  return seconds;
}

ordered_json arms(const measure::job& j, measure::workload& w, int calls, double budget_s,
                  const std::vector<std::string>& names) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = ordered_json::array();
  const tuned_world world;
  pass_first_merges(j, world);
  for (const std::string& name : names) {
    const double so_far_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (largest(so_far_s) > budget_s) break;
    w.prepare();
    const double seconds = call_s(world, w, name, calls);
    const bool right = is_right_everywhere(w);
    if (world.last_arm() != name) continue;  // not eligible
    result.push_back({{"arm", name}, {"seconds", seconds}, {"right", right}});
  }
  return {{"merge", merge(j, false)},
          {"merge_at_once", merge(j, true)},
          {"first_plan_s", first_plan_s()},
          {"arms", std::move(result)}};
}

ordered_json native(const measure::job& j, measure::workload& w, int calls) {
  const tuned_world world;
  pass_first_merges(j, world);
  w.prepare();
  const double seconds = call_s(world, w, "native", calls);
  return {{"seconds", seconds}, {"right", is_right_everywhere(w)}};
}

struct slow_calls {
  const slow_links* links;  // null but on one rank
  int from = 0, to = 0;

  /// While no message is under way: on a torus SimGrid ends in a deadlock otherwise.
  void change_before(int call) const {
    if (call != from && call != to) return;
    const double quiet_s = largest(MPI_Wtime()) + 1e-3;
    sleep_until(quiet_s);
    if (links && call == from) links->slow_down();
    if (links && call == to) links->recover();
    sleep_until(quiet_s + 1e-3);
  }
};

ordered_json live(measure::workload& w, int calls, const std::optional<slow_calls>& slow) {
  const tuned_world world;
  auto names = ordered_json::array(), seconds = ordered_json::array();
  bool right = true;
  for (int i = 0; i < calls; ++i) {
    if (slow) slow->change_before(i);
    w.prepare();
    seconds.push_back(timed([&] { world.call(w, {}); }));
    names.push_back(world.last_arm());
    right = right && w.is_right();
  }
  return {{"arms", std::move(names)},
          {"seconds", std::move(seconds)},
          {"right", largest(right ? 0 : 1) == 0}};
}

/// Calls of one arm to which each rank comes late by up to `late_s`.
ordered_json late_calls(const measure::job& j, const tuned_world& world, const measure::workload& w,
                        collective op, const std::string& arm, double late_s, int calls) {
  select::random_stream random(std::uint64_t(j.rank) + 1);
  auto seconds = ordered_json::array(), skews = ordered_json::array(),
       came_apart = ordered_json::array(), since_last = ordered_json::array();
  std::optional<double> ended_s;
  double before_s = 0;
  select::usual_lateness usual;
  for (int i = 0; i < calls; ++i) {
    sleep_until(largest(MPI_Wtime()) + 1e-3 + late_s * random.uniform());
    const double began_s = MPI_Wtime();
    world.call(w, {.arm = arm});
    const double end_s = MPI_Wtime(), inside_s = end_s - began_s,
                 gap_s = ended_s ? began_s - *ended_s : 0;
    std::array most{inside_s, -inside_s, gap_s, -gap_s, began_s, -began_s, end_s};
    MPI_Allreduce(MPI_IN_PLACE, most.data(), int(most.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (ended_s) {
      const select::call_times t{.longest_s = most[0],
                                 .shortest_s = -most[1],
                                 .longest_gap_s = most[2],
                                 .shortest_gap_s = -most[3]};
      usual.learn(t, before_s);
      before_s = select::duration_s(select::waiting_in(op), t, true, usual.finishing_s(before_s));
      seconds.push_back(before_s);
      skews.push_back(*select::skew_s(t));
      came_apart.push_back(most[4] + most[5]);
      since_last.push_back(most[6] - most[4]);
    }
    ended_s = end_s;
  }
  return {{"arm", arm},
          {"late_s", late_s},
          {"seconds", std::move(seconds)},
          {"skew_s", std::move(skews)},
          {"came_apart_s", std::move(came_apart)},
          {"since_last_came_s", std::move(since_last)}};
}

ordered_json late(const measure::job& j, const measure::workload& w, collective op, int calls,
                  const std::vector<std::string>& names) {
  // In calls of the fastest arm: how late ranks come does not depend on what is called.
  constexpr std::array lateness{0.0, 0.1, 0.3, 1.0, 3.0, 10.0};
  const tuned_world world;
  std::vector<std::pair<std::string, double>> arms;
  double fastest_s = std::numeric_limits<double>::infinity();
  for (const std::string& name : names) {
    const double true_s = call_s(world, w, name, 3);
    if (world.last_arm() != name) continue;  // not eligible
    arms.emplace_back(name, true_s);
    fastest_s = std::min(fastest_s, true_s);
  }
  auto result = ordered_json::array();
  for (const auto& [name, true_s] : arms)
    for (std::size_t i = 0; i < lateness.size(); ++i) {
      result.push_back(late_calls(j, world, w, op, name, lateness[i] * fastest_s, calls));
      result.back()["true_s"] = true_s;
      result.back()["lateness"] = lateness[i];
    }
  return result;
}

int run(const measure::job& j, std::vector<std::string> a) {
  // SMPI's first collectives ask all ranks who shares a host, for longer than timed() waits.
  largest(0);
  // Takes the first argument if it begins with `name`, and returns the rest of it.
  const auto taken = [&a](std::string_view name) -> std::optional<std::string> {
    if (a.empty() || !a[0].starts_with(name)) return std::nullopt;
    const std::string value = a[0].substr(name.size());
    a.erase(a.begin());
    return value;
  };
  std::optional<slow_links> links;
  if (const auto slow = taken("--slow="); slow && j.rank == 0) links.emplace(*slow);
  const double empty = std::stod(taken("--empty=").value_or("0"));
  const int calls = std::stoi(taken("--calls=").value_or("3"));
  if (a.size() < 2) throw error("expected samples, arms, native, live or late, and a file");
  const std::string& verb = a[0];
  // With `live` later.
  if (links && verb != "live") links->slow_down();
  ordered_json result;
  if (verb == "samples") {
    result = samples(j);
  } else {
    if (a.size() < 4) throw error("expected a collective and bytes");
    const auto op = find_collective(a[2]);
    if (!op) throw error("'" + a[2] + "': expected a collective");
    measure::workload w(j, *op, measure::whole_message_bytes(*op, std::stoll(a[3]), j.num_ranks), 0,
                        empty);
    if (verb == "arms") result = arms(j, w, calls, std::stod(a.at(4)), {a.begin() + 5, a.end()});
    if (verb == "native") result = native(j, w, calls);
    if (verb == "late") result = late(j, w, *op, std::stoi(a.at(4)), {a.begin() + 5, a.end()});
    if (verb == "live") {
      std::optional<slow_calls> changing;
      if (a.size() > 5)
        changing = {links ? &*links : nullptr, std::stoi(a.at(5)), std::stoi(a.at(6))};
      result = live(w, std::stoi(a.at(4)), changing);
    }
  }
  if (j.rank == 0) std::ofstream(a[1]) << result.dump() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  const measure::job j = measure::job_of_world();
  int status = 1;
  try {
    status = run(j, {argv + 1, argv + argc});
  } catch (const error& problem) {  // of all ranks
    if (j.rank == 0) std::cerr << "simulated_machine: " << problem.what() << std::endl;
  } catch (const std::exception& problem) {
    std::cerr << "simulated_machine: rank " << j.rank << ": " << problem.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
