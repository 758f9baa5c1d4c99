// SPDX-License-Identifier: BSL-1.0
//
// life RECORDS SEED LIVES WITHOUT: programs drawn from the seeds SEED, SEED + 1, ... and then one
// end. It knows nothing of railpass. RECORDS is a folder for a file of each rank, WITHOUT a list of
// groups of operations or "". LIFE_ENDING names the end, LIFE_THREADS=multiple asks for threads:
// both are needed before main() where MPI is initialized by a global object. TEST_HOSTS places
// ranks on hosts. lives.py starts it.
#include "delays.hpp"
#include "life.hpp"
#include "record.hpp"
#include "support/named_hosts.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace life;

std::uint64_t first_seed = 0;
int provided = MPI_THREAD_SINGLE;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void initialize() {
  doing(0, "in MPI_Init");
  if (variable("LIFE_THREADS") == "multiple")
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(nullptr, nullptr);
}

void finalize() {
  doing(0, "in MPI_Finalize");
  MPI_Finalize();
  doing(0, "after MPI_Finalize");
  own_record().ended = 1;
}

void last_calls() {
  stream shared(mix(first_seed) ^ 1);
  const place world = place::of(MPI_COMM_WORLD);
  for (int i = 0; i < shared.below(4); ++i) {
    const call c = draw_call(shared, groups());
    doing(0, "at the end: " + c.describe(world));
    ++own_record().calls;
    if (const std::string wrong = make_call(c, world); !wrong.empty()) differs(0, wrong);
  }
}

void last_calls_and_finalize() {
  last_calls();
  finalize();
}

/// Initializes and finalizes MPI as environments of libraries do.
struct environment {
  environment() { initialize(); }
  ~environment() { last_calls_and_finalize(); }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
};

struct global_environment {
  environment* owned = variable("LIFE_ENDING") == "destructor" ? new environment : nullptr;
  ~global_environment() { delete owned; }
} global;

void live(std::uint64_t seed, const groups& on) {
  const int draw = 1 + static_cast<int>(mix(seed ^ 0xabcdef) % max_threads);
  const bool may = provided == MPI_THREAD_MULTIPLE && on.has(group::threads);
  const int num_threads = may ? draw : 1;
  std::vector<MPI_Comm> parents = {MPI_COMM_WORLD};
  for (int i = 1; i < num_threads; ++i) {
    parents.push_back(MPI_COMM_NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &parents.back());
  }
  std::vector<std::unique_ptr<program_thread>> threads;
  for (int i = 0; i < num_threads; ++i)
    threads.push_back(std::make_unique<program_thread>(seed, i, num_threads,
                                                       parents[static_cast<std::size_t>(i)], on));
  std::vector<std::thread> running;
  for (std::size_t i = 1; i < threads.size(); ++i)
    running.emplace_back([&threads, i] { threads[i]->run(); });
  threads[0]->run();
  for (std::thread& t : running) t.join();
  for (int i = 1; i < num_threads; ++i) MPI_Comm_free(&parents[static_cast<std::size_t>(i)]);
  ++own_record().lives;
}

void live_all(char** argv) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  own_record().rank = rank;
  make_elements();
  groups on;
  on.switch_off(argv[4]);
  delays_agreements = on.has(group::skew);
  for (int i = 0; i < std::atoi(argv[3]); ++i) live(first_seed + static_cast<std::uint64_t>(i), on);
  doing(0, "after all lives");
}

/// Whether this rank ends the program; the others wait until they are ended.
bool ends_alone() {
  const place world = place::of(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == static_cast<int>(first_seed % static_cast<std::uint64_t>(world.size))) {
    own_record().ended = 1;
    return true;
  }
  doing(0, "waits to be ended");
  MPI_Barrier(MPI_COMM_WORLD);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: life RECORDS SEED LIVES WITHOUT\n", stderr);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // with the launcher
  open_record(std::string(argv[1]) + "/" + std::to_string(getpid()));
  first_seed = std::strtoull(argv[2], nullptr, 10);
  const std::string_view ending = variable("LIFE_ENDING");
  if (ending == "caught") {
    try {
      const environment mpi;
      live_all(argv);
      throw std::runtime_error("ends the program");
    } catch (const std::runtime_error&) {
      return 0;
    }
  }
  if (ending != "destructor") initialize();
  if (ending == "atexit") std::atexit(last_calls_and_finalize);
  live_all(argv);
  if (ending == "finalize") finalize();
  if (ending == "abort" && ends_alone()) MPI_Abort(MPI_COMM_WORLD, 3);
  if (ending == "uncaught" && ends_alone()) throw std::runtime_error("nobody catches this");
  if (ending == "exit") {
    MPI_Barrier(MPI_COMM_WORLD);
    own_record().ended = 1;
  }
  return 0;
}
