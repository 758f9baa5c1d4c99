// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/parallel.hpp"

#include "lib/base/launchers.hpp"
#include "lib/cli/arguments.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <time.h>

namespace railpass::internal::cli {

bool under_launcher() {
  return std::any_of(std::begin(rank_variables), std::end(rank_variables),
                     [](const char* variable) { return std::getenv(variable) != nullptr; });
}

bool is_rank() {
  return std::ranges::any_of(rank_variables, [](const std::string_view variable) {
    return variable != "SLURM_PROCID" && std::getenv(variable.data()) != nullptr;
  });
}

bool speaks_for_the_job() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized && !finalized) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
  }
  for (const char* variable : rank_variables)
    if (const char* rank = std::getenv(variable)) return std::atoi(rank) == 0;
  return true;
}

void let_rank_0_speak() {
  const timespec while_it_speaks{.tv_sec = 1, .tv_nsec = 0};
  nanosleep(&while_it_speaks, nullptr);
}

int run_job(const std::function<int(const measure::job&)>& body) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  const measure::job j = measure::job_of_world();
  int status = succeeded;
  std::exception_ptr problem;  // rank 0 passes it on to be printed
  try {
    status = body(j);
  } catch (const usage_error&) {
    status = wrong_use;
    if (j.rank == 0) problem = std::current_exception();
  } catch (const error&) {
    status = failed;
    if (j.rank == 0) problem = std::current_exception();
  } catch (const std::exception& broken) {
    std::cerr << "railpass: rank " << j.rank << ": " << broken.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, failed);
  }
  MPI_Finalize();
  if (problem) std::rethrow_exception(problem);
  if (status != succeeded && j.rank != 0) let_rank_0_speak();
  return status;
}

void on_rank_0(const measure::job& j, const std::function<void()>& work) {
  std::string problem;
  enum : int { well, misused, broken } outcome = well;
  if (j.rank == 0) try {
      work();
      std::cout.flush();
    } catch (const usage_error& wrong) {
      outcome = misused;
      problem = wrong.what();
    } catch (const std::exception& wrong) {
      outcome = broken;
      problem = wrong.what();
    }
  const int agreed_outcome = measure::agreed(int(outcome));
  if (agreed_outcome == misused) throw usage_error(problem);
  if (agreed_outcome == broken) throw error(problem);
}

}  // namespace railpass::internal::cli
