// SPDX-License-Identifier: BSL-1.0
#include "lib/call/own_errors.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace railpass::internal {

namespace {

constexpr std::array texts{
    "railpass: another rank has failed in a call of this communicator",
    "railpass: an internal part of this call has failed",
    "railpass: the ranks did not make the same call",
};

// Not of one of MPI's classes: MPICH then takes the texts of its own codes. What MPI has a code for
// is that.
std::array<int, texts.size()> make_codes() {
  std::array<int, texts.size()> codes;
  codes.fill(MPI_ERR_OTHER);
  codes[std::size_t(own_error::unlike)] = MPI_ERR_TRUNCATE;
  int own_class = 0;
  if (PMPI_Add_error_class(&own_class) != MPI_SUCCESS) return codes;
  PMPI_Add_error_string(own_class, "railpass: a collective failed outside of the MPI library");
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (int code = 0;
        codes[i] == MPI_ERR_OTHER && PMPI_Add_error_code(own_class, &code) == MPI_SUCCESS) {
      PMPI_Add_error_string(code, texts[i]);
      codes[i] = code;
    }
  return codes;
}

const std::array<int, texts.size()>& codes() {
  static const std::array all = make_codes();
  return all;
}

}  // namespace

int code_of(own_error e) { return codes()[std::size_t(e)]; }

std::string_view text_of(int code) {
  if (code == MPI_SUCCESS || code == MPI_ERR_OTHER) return {};
  const auto own = std::ranges::find(codes(), code);
  return own == codes().end() ? std::string_view() : texts[std::size_t(own - codes().begin())];
}

}  // namespace railpass::internal
