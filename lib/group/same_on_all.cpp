// SPDX-License-Identifier: BSL-1.0
#include "lib/group/same_on_all.hpp"

#include "railpass/base/error.hpp"
#include "railpass/base/hash.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace railpass::internal {

namespace {

void check(int code) {
  if (code != MPI_SUCCESS) throw error("MPI fails with error " + std::to_string(code));
}

std::string from(int root, MPI_Comm comm, std::string text) {
  auto size = std::int64_t(text.size());
  check(PMPI_Bcast(&size, 1, MPI_INT64_T, root, comm));
  text.resize(std::size_t(size));
  check(PMPI_Bcast(text.data(), int(size), MPI_CHAR, root, comm));
  return text;
}

// The lowest rank on which `holds` is true; -1 if it is false on all ranks.
int lowest_rank(MPI_Comm comm, bool holds) {
  int rank = 0, num_ranks = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &num_ranks);
  int lowest = holds ? rank : num_ranks;
  check(PMPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, comm));
  return lowest < num_ranks ? lowest : -1;
}

// The first line in which this rank differs from rank 0, as one says it; empty if it does not.
std::string difference(MPI_Comm comm, const std::vector<std::string>& lines) {
  std::string mine;
  for (const std::string& line : lines) mine += line + '\n';
  const std::string theirs = from(0, comm, mine);
  std::string_view rest = theirs;
  const auto next = [&]() -> std::string_view {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(rest.empty() ? 0 : line.size() + 1);
    return line;
  };
  const auto shown = [](std::string_view line) {
    return line.empty() ? std::string("nothing") : "'" + std::string(line) + "'";
  };
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  for (std::size_t i = 0; i < lines.size() || !rest.empty(); ++i) {
    const std::string_view own = i < lines.size() ? std::string_view(lines[i]) : "", other = next();
    if (own != other)
      return "rank 0 has " + shown(other) + " where rank " + std::to_string(rank) + " has " +
             shown(own);
  }
  return {};
}

}  // namespace

void require_same(MPI_Comm comm, const std::string& subject, const std::vector<std::string>& lines,
                  const std::string& problem) {
  int num_ranks = 1;
  PMPI_Comm_size(comm, &num_ranks);
  if (num_ranks == 1) {
    if (!problem.empty()) throw error(subject + ": " + problem);
    return;
  }
  text_hash of_lines;
  for (const std::string& line : lines) of_lines.add(line);
  const std::uint64_t hash = of_lines.value();
  std::array<std::uint64_t, 3> all{hash, ~hash, problem.empty() ? ~std::uint64_t{0} : 0};
  check(PMPI_Allreduce(MPI_IN_PLACE, all.data(), int(all.size()), MPI_UINT64_T, MPI_BAND, comm));
  if (all[2] == 0) {
    const int who = lowest_rank(comm, !problem.empty());
    throw error(subject + ": " + from(who, comm, problem) + " (on rank " + std::to_string(who) +
                ")");
  }
  if (all[0] == ~all[1]) return;
  const std::string differs = difference(comm, lines);
  const int who = lowest_rank(comm, !differs.empty());
  throw error(subject + ": the ranks differ: " + (who < 0 ? "" : from(who, comm, differs)));
}

}  // namespace railpass::internal
