// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/parallel.hpp"

#include "lib/cli/arguments.hpp"
#include "lib/cli/environment.hpp"
#include "lib/files/files.hpp"
#include "lib/rails/agreement.hpp"
#include "lib/rails/registry.hpp"
#include "railpass/base/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string_view>
#include <time.h>

namespace railpass::cli {

namespace {
constexpr const char* rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                          "SLURM_PROCID"};
}

bool under_launcher() {
  return std::any_of(std::begin(rank_variables), std::end(rank_variables),
                     [](const char* variable) { return std::getenv(variable) != nullptr; });
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

fingerprint machine_marks(int num_hosts) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  fingerprint here = files::this_machine(num_hosts, version);
  here.rails = rails_mark(read_environment(environ).values.rails);
  return here;
}

int job::most_ranks_per_node() const {
  int most = 0;
  for (int node = 0; node < num_nodes(); ++node)
    most = std::max(most, int(std::count(node_of_rank.begin(), node_of_rank.end(), node)));
  return most;
}

void job::on_rank_0(const std::function<void()>& work) const {
  std::string problem;
  enum : int { well, misused, broken } outcome = well;
  if (rank == 0) try {
      work();
      std::cout.flush();
    } catch (const usage_error& wrong) {
      outcome = misused;
      problem = wrong.what();
    } catch (const std::exception& wrong) {
      outcome = broken;
      problem = wrong.what();
    }
  const int agreed_outcome = agreed(int(outcome));
  if (agreed_outcome == misused) throw usage_error(problem);
  if (agreed_outcome == broken) throw error(problem);
}

namespace {

job describe_job() {
  job j;
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.num_ranks);
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::vector<char> names(std::size_t(j.num_ranks) * MPI_MAX_PROCESSOR_NAME);
  MPI_Allgather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names.data(), MPI_MAX_PROCESSOR_NAME,
                MPI_CHAR, MPI_COMM_WORLD);
  std::map<std::string_view, int> node_of_name;
  for (int r = 0; r < j.num_ranks; ++r) {
    const char* const here = &names[std::size_t(r) * MPI_MAX_PROCESSOR_NAME];
    const auto [place, is_new] = node_of_name.emplace(here, j.num_nodes());
    if (is_new) j.hosts.emplace_back(here);
    j.node_of_rank.push_back(place->second);
  }
  return j;
}

}  // namespace

int run_job(const std::function<int(const job&)>& body) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  const job j = describe_job();
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

void quiet_barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  wait_asleep(request);
}

double agreed(double value, int from) {
  MPI_Bcast(&value, 1, MPI_DOUBLE, from, MPI_COMM_WORLD);
  return value;
}

int agreed(int value, int from) {
  MPI_Bcast(&value, 1, MPI_INT, from, MPI_COMM_WORLD);
  return value;
}

void broadcast_text(std::string& text) {
  text.resize(std::size_t(agreed(int(text.size()))));
  MPI_Bcast(text.data(), int(text.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
}

std::vector<std::string> gather_texts(const job& j, const std::string& mine) {
  const int length = int(mine.size());
  std::vector<int> lengths(std::size_t(j.num_ranks)), begins(std::size_t(j.num_ranks));
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  int total = 0;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    begins[r] = total;
    total += lengths[r];
  }
  std::string all(std::size_t(total), ' ');
  MPI_Gatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(), MPI_CHAR, 0,
              MPI_COMM_WORLD);
  std::vector<std::string> texts;
  if (j.rank == 0)
    for (std::size_t r = 0; r < lengths.size(); ++r)
      texts.push_back(all.substr(std::size_t(begins[r]), std::size_t(lengths[r])));
  return texts;
}

}  // namespace railpass::cli
