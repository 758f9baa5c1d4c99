// SPDX-License-Identifier: BSL-1.0
//
// Measures the cost of learning in calls without waiting: a stream of broadcasts of 8 bytes.
// mpirun -n 8 overhead_merge [CALLS [REPETITIONS [begun]]]
//
// Three streams take turns in a changing order, each on a communicator of its own, all equally old:
//   * calls of the MPI library;
//   * calls through railpass, which starts to tune short calls after they have taken some time;
//   * calls of the MPI library with a merge every 16 calls, which gives the cost of a whole merge.
// Times are those of the slowest rank between two barriers. With "begun", railpass's decisions,
// timings and merges start with the first call, under the policy native.
#include "lib/group/base.hpp"
#include "lib/group/merge_messages.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/mpi.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace railpass;
using namespace railpass::internal;

constexpr int calls_per_merge = 16;

class stream {
 public:
  explicit stream(bool begun) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    if (!begun) return;
    mpi::configure(comm_, "policy", "native");
    mpi::start_tuning(comm_);
  }
  ~stream() { MPI_Comm_free(&comm_); }
  MPI_Comm comm() const { return comm_; }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  template <class Call>
  double seconds(int calls, Call&& one) const {
    PMPI_Barrier(comm_);
    const double begin_s = steady_clock_s();
    for (int i = 0; i < calls; ++i) one(comm_, i);
    PMPI_Barrier(comm_);
    double spent_s = steady_clock_s() - begin_s;
    PMPI_Allreduce(MPI_IN_PLACE, &spent_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return spent_s;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

void print(const char* name, const char* unit, const std::vector<double>& values) {
  std::printf("  %-46s median %9.3f %s, quartiles %9.3f .. %9.3f\n", name, median(values), unit,
              quantile(values, 0.25), quantile(values, 0.75));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? std::atoi(argv[1]) : 300'000;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 7;
  int rank = 0, num_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  const bool begun = argc == 4 && std::string_view(argv[3]) == "begun";
  if (calls < calls_per_merge || repetitions < 1 || (argc > 3 && !begun)) {
    if (rank == 0)
      std::fprintf(stderr, "usage: overhead_merge [CALLS, at least %d [REPETITIONS [begun]]]\n",
                   calls_per_merge);
    MPI_Finalize();
    return 2;
  }

  double value = 0;
  const auto native = [&](MPI_Comm comm, int) { PMPI_Bcast(&value, 1, MPI_DOUBLE, 0, comm); };
  const auto tuned = [&](MPI_Comm comm, int) { mpi::broadcast(&value, 1, MPI_DOUBLE, 0, comm); };

  const auto wait = [](MPI_Request& r, MPI_Status& s) { return PMPI_Wait(&r, &s); };
  bases& all = bases::of_process();
  if (bases::words_of_world words{}; num_ranks > 1) all.make_for_world(true, 0, words);
  std::vector<double> native_us, tuned_us, merging_us, tuned_ratio, merging_ratio, merge_us;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    // New communicators: the first merges of a stream are part of its time.
    const stream plain(false), learning(begun), merging(false);
    merge_messages messages(rank, num_ranks);
    if (base_mapping mapping = all.find(merging.comm()); mapping.of) {
      constexpr int last = base::num_lanes - 1;
      all.take(*mapping.of, last);
      const auto lane = std::make_shared<base_lane>();
      lane->become(std::move(mapping), last, 0);
      messages.connect(lane);
    }
    std::optional<select::lockstep> steps;  // a new one begins its first merge in its second call
    std::array<double, 3> s{};
    for (int turn = 0; turn < 3; ++turn) {
      const int which = (turn + repetition) % 3;
      if (which == 0) s[0] = plain.seconds(calls, native);
      if (which == 1) s[1] = learning.seconds(calls, tuned);
      if (which == 2)
        s[2] = merging.seconds(calls, [&](MPI_Comm comm, int i) {
          bool mismatch = false;
          const auto finish = [&] {  // of many ranks: one merge takes more calls than that
            while (steps->outstanding() != select::merge_step::none)
              if (steps->begin_call()) messages.make_due_steps(*steps, nullptr, wait, mismatch);
          };
          if (i % calls_per_merge == 0) {
            if (steps) finish();
            steps.emplace(select::lockstep_settings{}, rank, num_ranks);
          }
          if (steps->begin_call()) messages.make_due_steps(*steps, nullptr, wait, mismatch);
          native(comm, i);
          if (i + 1 == calls) finish();
        });
    }
    native_us.push_back(s[0] / calls * 1e6);
    tuned_us.push_back(s[1] / calls * 1e6);
    merging_us.push_back(s[2] / calls * 1e6);
    tuned_ratio.push_back(s[1] / s[0]);
    merging_ratio.push_back(s[2] / s[0]);
    merge_us.push_back((s[2] - s[0]) / (calls / calls_per_merge) * 1e6);
  }
  if (rank == 0) {
    const auto known = process::get()->statistics();
    const double merges = double(known.merges) / repetitions;
    std::printf("%d ranks, %d broadcasts of 8 bytes, %d repetitions%s\n", num_ranks, calls,
                repetitions, begun ? ", learning from the first call" : "");
    print("the MPI library's, a call", "us", native_us);
    print("through railpass, a call", "us", tuned_us);
    print("  ratio to the MPI library's, in pairs", "  ", tuned_ratio);
    print("a merge every 16 calls, a call", "us", merging_us);
    print("  ratio to the MPI library's, in pairs", "  ", merging_ratio);
    print("one such merge, end to end", "us", merge_us);
    std::printf(
        "  railpass made %.1f merges a stream, %.2f %% of its time, and took one to cost %.3f us\n",
        merges, 100 * merges * median(merge_us) / (median(tuned_us) * calls),
        known.merges > 0 ? known.merge_cost_s / double(known.merges) * 1e6 : 0.0);
  }
  MPI_Finalize();
}
