// SPDX-License-Identifier: BSL-1.0
//
// Function sets and regions of a communicator, as users make them.
#include "lib/call/inside.hpp"
#include "lib/communicator/communicator_state.hpp"
#include "railpass/base/error.hpp"

#include <utility>

namespace railpass::internal {

communicator_state& state_of(MPI_Comm comm, const std::string& subject) {
  const std::string expected =
      ": expected an intra-communicator, between MPI_Init and MPI_Finalize";
  int is_inter = 1, code = MPI_SUCCESS;
  if (!process::get() || comm == MPI_COMM_NULL) throw error(subject + expected);
  communicator_state* const state = communicator_state::of(comm, code);
  if (state) PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter) throw error(subject + expected);
  return *state;
}

}  // namespace railpass::internal

namespace railpass {

using namespace internal;

namespace detail {

set_request::set_request(std::string name, MPI_Comm comm, std::vector<std::string> attributes,
                         const function_set_options& options) {
  const inside here;
  function_sets& all = state_of(comm, set_named(name)).sets();
  state_ =
      std::make_unique<request_state>(all, std::move(name), comm, std::move(attributes), options);
}

}  // namespace detail

region::region(std::string name, MPI_Comm comm) {
  const inside here;
  const std::string subject = "region '" + name + "'";
  state_ = state_of(comm, subject).sets().region_named(std::move(name), comm, subject);
}

}  // namespace railpass
