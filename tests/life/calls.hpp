// SPDX-License-Identifier: BSL-1.0
//
// All blocking collectives with arguments drawn at random, and what must come of them.
#pragma once

#include "elements.hpp"
#include "groups.hpp"
#include "random.hpp"

#include <mpi.h>

#include <cstdint>
#include <string>

namespace life {

enum class collective {
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  reduce_scatter_block,
  gather,
  gatherv,
  scatter,
  scatterv,
  all_gather,
  all_gatherv,
  all_to_all,
  all_to_allv,
  all_to_allw,
  scan,
  exscan,
  barrier,
  count
};

/// A communicator as one rank sees it.
struct place {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 0;

  static place of(MPI_Comm comm);
};

/// A call that all ranks of a communicator make.
struct call {
  collective which;
  const element* what;
  operation op;
  int length;  ///< elements of the whole, or of each block
  bool in_place;
  bool fresh;         ///< ranks describe their elements by datatypes made for this call
  bool null_types;    ///< MPI_DATATYPE_NULL where a rank's count is 0, if MPI takes that
  std::uint64_t key;  ///< all values, the root and all counts follow from it
  /// What is empty is one element of a datatype without data, where MPI libraries take that.
  bool nothing = false;

  std::string describe(const place& at) const;
};

/// Draws a call; what the groups leave out is replaced by something simpler.
call draw_call(stream& shared, const groups& on);

/// Makes it; says what is wrong with what came, or nothing.
std::string make_call(const call& c, const place& at);

/// A call whose arguments are wrong on all ranks, in a way that every MPI library finds before it
/// communicates. Returns its code and, in `description`, what it was. `variant` is any number.
int make_wrong_call(std::uint64_t variant, const place& at, std::string& description);

/// Whether what is wrong in that call is that the operation is not defined for the type.
bool is_wrong_operation(std::uint64_t variant);

}  // namespace life
