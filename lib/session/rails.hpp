// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace railpass {

/// The keyval under which a communicator has its rails; see railpass/rails.hpp. Returns an MPI
/// error code.
int create_rails_key(int* key);

}  // namespace railpass
