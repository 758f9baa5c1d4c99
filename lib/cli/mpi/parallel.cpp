// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/mpi/parallel.hpp"

#include "lib/cli/arguments.hpp"
#include "lib/cli/launched.hpp"

#include <mpi.h>

#include <exception>
#include <iostream>
#include <string>

namespace railpass::internal::cli {

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
