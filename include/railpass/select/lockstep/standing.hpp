// SPDX-License-Identifier: BSL-1.0
//
// How a rank stands with the other ranks of a communicator, a function set or a region, from its
// first call to its end. One table has all changes; docs/explanation/design.md draws it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace railpass::select {

enum class standing : std::uint8_t {
  undecided,  ///< the ranks have not agreed whether they tune; calls are native
  tuned,      ///< the ranks choose arms together
  stopping,   ///< after a failure, until the ranks agree from which call on they are native
  apart,      ///< some rank makes no further call with the other ranks: calls fail
  native,     ///< calls are native from the same call on all ranks, for good
  ended       ///< it has ended on this rank; calls are native
};

enum class turn : std::uint8_t {
  agreement,  ///< all ranks tune
  refusal,    ///< a rank cannot or need not tune, or the ranks' calls or devices forbid tuning
  failure,    ///< this rank's part of a call has failed, or another rank has told of its failure
  fallback,   ///< after a failure, the ranks have agreed from which call on they are native
  departure,  ///< some rank makes no further call with the other ranks
  end         ///< the communicator or MPI ends
};

/// The standing after a turn. A turn that changes nothing leaves the standing as it is.
constexpr standing after(standing now, turn what) {
  using enum standing;
  // Rows: now; columns: agreement, refusal, failure, fallback, departure, end.
  constexpr standing table[6][6] = {
      {tuned, native, undecided, undecided, undecided, ended},  // undecided
      {tuned, native, stopping, tuned, apart, ended},           // tuned
      {stopping, stopping, stopping, native, apart, ended},     // stopping
      {apart, apart, apart, apart, apart, ended},               // apart
      {native, native, native, native, apart, ended},           // native
      {ended, ended, ended, ended, ended, ended},               // ended
  };
  return table[std::size_t(now)][std::size_t(what)];
}

/// Whether calls go to the MPI library without being counted or looked at.
constexpr bool is_native(standing now) { return now >= standing::native; }

}  // namespace railpass::select
