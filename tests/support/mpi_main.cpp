// SPDX-License-Identifier: BSL-1.0
//
// The main of all MPI tests. Rank 0 reports as usual; the other ranks report only what failed, with
// [rank/size] in front. All ranks end with the worst result of any of them, and a test case that
// hangs ends the job with its name instead of in silence.
#ifndef RAILPASS_CATCH2_V3
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
#endif

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

namespace {

using std::chrono::steady_clock;

int rank = 0;
int num_ranks = 1;

void report(const std::string& text) {
  // one write per record, so that those of several ranks do not mix
  const std::string record =
      "[" + std::to_string(rank) + "/" + std::to_string(num_ranks) + "] " + text + "\n";
  std::fwrite(record.data(), 1, record.size(), stderr);
  std::fflush(stderr);
}

/// Ends the process when one test case takes longer than the bound: TEST_BOUND_S, 300 s.
class watchdog {
 public:
  watchdog() : thread_([this] { watch(); }) {}
  ~watchdog() {
    {
      const std::lock_guard guard(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void entered(const std::string& test_case) {
    const std::lock_guard guard(mutex_);
    test_case_ = test_case;
    since_ = steady_clock::now();
  }

 private:
  void watch() {
    const char* setting = std::getenv("TEST_BOUND_S");
    const std::chrono::duration<double> bound(setting ? std::atof(setting) : 300.0);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return done_; }))
      if (steady_clock::now() - since_ > bound) {
        report("'" + test_case_ + "' did not end within " + std::to_string(int(bound.count())) +
               " s; ending the job");
        std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the others report too
        std::_Exit(124);
      }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::string test_case_ = "start-up";
  steady_clock::time_point since_ = steady_clock::now();
  std::thread thread_;  // last: it uses the others
};

watchdog* the_watchdog = nullptr;

std::string describe(const Catch::AssertionStats& stats, const std::string& test_case) {
  const auto& result = stats.assertionResult;
  std::ostringstream text;
  text << result.getSourceInfo().file << ":" << result.getSourceInfo().line << ": '" << test_case
       << "' failed: " << result.getExpressionInMacro();
  if (result.hasExpandedExpression()) text << ", with: " << result.getExpandedExpression();
  if (result.hasMessage()) text << ", " << std::string(result.getMessage());
  for (const auto& info : stats.infoMessages) text << "; " << info.message;
  return text.str();
}

#ifdef RAILPASS_CATCH2_V3
using listener_base = Catch::EventListenerBase;
using assertion_ended = void;
#else
using listener_base = Catch::TestEventListenerBase;
using assertion_ended = bool;
#endif

struct listener : listener_base {
  using listener_base::listener_base;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    test_case_ = info.name;
    the_watchdog->entered(test_case_);
  }

  assertion_ended assertionEnded(const Catch::AssertionStats& stats) override {
    if (rank != 0 && !stats.assertionResult.isOk()) report(describe(stats, test_case_));
    return assertion_ended(true);
  }

  std::string test_case_;
};

}  // namespace

CATCH_REGISTER_LISTENER(listener)

int main(int argc, char** argv) {
  // TEST_THREADS=single: as a program that knows nothing of threads.
  const char* const threads = std::getenv("TEST_THREADS");
  const bool single = threads && std::string(threads) == "single";
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);

  Catch::Session session;
  int result = session.applyCommandLine(argc, argv);
  if (result == 0) {
    unsigned seed = session.configData().rngSeed;
    MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    session.configData().rngSeed = seed;
    std::streambuf* const standard_output = std::cout.rdbuf();
    if (rank != 0) std::cout.rdbuf(nullptr);
    {
      watchdog dog;
      the_watchdog = &dog;
      result = session.run();
      dog.entered("the end of all ranks");
      MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    std::cout.rdbuf(standard_output);
  }
  MPI_Finalize();
  return result < 255 ? result : 255;
}
