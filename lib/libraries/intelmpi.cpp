// SPDX-License-Identifier: BSL-1.0
//
// Intel MPI's own algorithms, which have numbers. Tried with 2021.19.
#include "lib/libraries/library.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace railpass::internal::libraries {
namespace {

struct line {
  collective op;
  std::string_view name;
};

constexpr std::array lines{
    line{collective::broadcast, "BCAST"},
    line{collective::all_reduce, "ALLREDUCE"},
    line{collective::reduce, "REDUCE"},
    line{collective::reduce_scatter, "REDUCE_SCATTER"},
    line{collective::reduce_scatter_block, "REDUCE_SCATTER_BLOCK"},
    line{collective::all_gather, "ALLGATHER"},
    line{collective::all_gatherv, "ALLGATHERV"},
    line{collective::all_to_all, "ALLTOALL"},
    line{collective::all_to_allv, "ALLTOALLV"},
    line{collective::all_to_allw, "ALLTOALLW"},
    line{collective::barrier, "BARRIER"},
    line{collective::gather, "GATHER"},
    line{collective::gatherv, "GATHERV"},
    line{collective::scatter, "SCATTER"},
    line{collective::scatterv, "SCATTERV"},
    line{collective::scan, "SCAN"},
    line{collective::exscan, "EXSCAN"},
};

std::string variable_of(const std::string& prefix, collective op) {
  return prefix + std::string(std::ranges::find(lines, op, &line::op)->name);
}

// The description says "range: 0-22".
std::vector<own_algorithm> algorithms(collective op, const algorithm_variable& variable,
                                      std::string_view) {
  constexpr std::string_view key = "range: 0-";
  const std::string_view text = variable.description;
  const std::size_t at = text.find(key);
  std::vector<own_algorithm> found;
  if (at == text.npos) return found;
  int last = -1;
  std::from_chars(text.data() + at + key.size(), text.data() + text.size(), last);
  for (int number = 0; number <= last; ++number)
    found.push_back({std::string(railpass::name_of(op)), std::to_string(number), number});
  return found;
}

}  // namespace

const mpi_library intelmpi_library{
    .name = "intelmpi",
    .full = "Intel MPI",
    .is = [](std::string_view mark) { return mark.starts_with("Intel(R) MPI"); },
    .environment = {},
    .read = variables_read::at_start,
    .communicator_info = {},
    .algorithm_variable_of = [](collective op) { return variable_of("MPIR_CVAR_USE_", op); },
    .segment_variable_of = [](collective) { return std::string(); },
    .setting_of = [](collective op) { return variable_of("I_MPI_ADJUST_", op); },
    .reads_file = false,
    .algorithms = algorithms,
    // I_MPI_ADJUST_ALLREDUCE=7:800-8000 gave an all_reduce of any size algorithm 7, and
    // 7:800-8000;8:8001-80000 gave it 7 up to 8000 bytes and 8 above, also on other numbers of
    // ranks if the ranges name one.
    .no_rules =
        "railpass writes no rules for Intel MPI, because a value of I_MPI_ADJUST for some "
        "sizes changes the algorithms of all other sizes, too. Set the number of an "
        "algorithm by hand, such as I_MPI_ADJUST_BCAST=3 for native:3",
    .why_not = nullptr,
    .write = nullptr};

}  // namespace railpass::internal::libraries
