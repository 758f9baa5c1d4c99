// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/job.hpp"

#include "lib/group/caches.hpp"
#include "lib/measure/marks.hpp"
#include "lib/rails/agreement.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

namespace railpass::internal::measure {

job job_of_world() {
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
    const auto [known, is_new] = node_of_name.emplace(here, j.num_nodes());
    if (is_new) j.hosts.emplace_back(here);
    j.node_of_rank.push_back(known->second);
  }
  const std::int64_t cores = own_affinity().packed();
  std::vector<std::int64_t> cores_of_rank(std::size_t(j.num_ranks));
  MPI_Allgather(&cores, 1, MPI_INT64_T, cores_of_rank.data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
  const std::vector<std::int64_t> nodes(j.node_of_rank.begin(), j.node_of_rank.end());
  j.cache_of_rank = find_caches(nodes, cores_of_rank);
  return j;
}

fingerprint machine_marks(int num_hosts) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  return marks_with(version, num_hosts);
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

}  // namespace railpass::internal::measure
