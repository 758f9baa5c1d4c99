// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string_view>

namespace railpass::internal {

/// Failures of a call that only railpass can cause. MPI_Error_string and MPI_Error_class know them:
/// they are error codes of one class of their own, but for `unlike`, which is MPI_ERR_TRUNCATE.
enum class own_error : std::uint8_t {
  rank_failed,  ///< another rank has failed in a call of the communicator, or has left it
  internal,     ///< what railpass made for the call has failed
  unlike        ///< the ranks do not make the same call
};

/// Its error code; MPI_ERR_OTHER if MPI makes none. Local, from MPI_Init to MPI_Finalize; any
/// thread may ask.
int code_of(own_error e);
/// What MPI_Error_string says of such a code; empty of all others.
std::string_view text_of(int code);

}  // namespace railpass::internal
