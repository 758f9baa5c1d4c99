// SPDX-License-Identifier: BSL-1.0
//
// Halo exchange for arrays that are cut into blocks, one per rank, with copies of the neighbours'
// elements (halo, ghost cells) around each block. The ways to exchange halos are versions of one
// function set; docs/reference/halo.md lists them.
#pragma once

#include "railpass/array_view.hpp"
#include "railpass/cartesian.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace railpass {

/// The number of halo elements at each side: one for all dimensions, or one per dimension.
/// Dimensions of width 0 are not exchanged.
template <int D>
class halo_width {
 public:
  template <std::integral N>
  constexpr halo_width(N in_all) {
    for (int k = 0; k < D; ++k) in_[k] = std::int64_t(in_all);
  }
  template <std::integral... N>
  requires(D > 1 && sizeof...(N) == D) constexpr halo_width(N... n) : in_(n...) {}

  constexpr std::int64_t operator[](int k) const { return in_[k]; }

 private:
  extents<D> in_;
};

struct halo_options {
  std::size_t struct_bytes = sizeof(halo_options);  ///< see options.hpp
  bool corners = false;                             ///< also neighbours across edges and corners
  std::string name =
      "halo";            ///< of the function set; exchanges of one name and shape share statistics
  std::string policy{};  ///< empty: the communicator's (RAILPASS_POLICY)
};

namespace internal::halo {
class engine;
}

namespace mpi {

/// The arguments of halo_exchange<D> without its templates.
struct halo_arguments {
  MPI_Comm comm = MPI_COMM_NULL;
  process_grid grid{};
  std::vector<std::int64_t> widths{};  ///< in each dimension, at either side
  std::vector<array_layout> fields{};
  halo_options options{};
};

/// The untemplated part of halo_exchange<D>, which documents the members.
class halo {
 public:
  explicit halo(const halo_arguments& arguments);
  halo(halo&&) noexcept;
  halo& operator=(halo&&) noexcept;
  ~halo();

  void exchange();
  void begin();
  void end();
  std::string winner() const;
  std::string last() const;

  internal::halo::engine& implementation() { return *engine_; }

 private:
  std::unique_ptr<internal::halo::engine> engine_;
};

}  // namespace mpi

/// Exchanges the halos of one or more fields, many times. Constructor, calls and destructor are
/// collective over the grid's communicator, which must live as long as calls are made.
///
/// The exchange is a function set (railpass/function_set.hpp) with attributes pattern, primitive
/// and layout: railpass finds the fastest version while the program runs.
/// RAILPASS_USE=halo:sendrecv_by_pairs_derived pins one version. Exchanges in two parts (begin,
/// end) have statistics of their own.
///
/// A field is an array in the caller's memory: this rank's block and, around it, `width` elements
/// of the neighbours in each dimension. An exchange copies the outermost `width` layers of the
/// block to each neighbour across a face; with option `corners` also across edges and corners.
/// Elements beyond a side of the domain that is not periodic stay unchanged, as do the corners
/// without that option. Blocks of different ranks may differ in size if their faces fit together.
/// All fields go in one message to each neighbour.
///
/// Messages and windows use a communicator of railpass, so they never match the caller's messages.
/// A failed MPI call goes to the error handler that the grid's communicator had at construction. If
/// the handler returns, the call throws railpass::error, and the object can only be destroyed.
template <int D>
class halo_exchange {
 public:
  /// Exchanges one field, stored row by row without gaps.
  /// @param data the first element of an array that is 2 * `width` larger than the block in each
  ///   dimension
  /// @param interior the block's elements in each dimension
  /// @throws railpass::error on every rank if the ranks' arguments are invalid or do not fit
  ///   together
  template <class T>
  halo_exchange(const cartesian<D>& grid, T* data, extents<D> interior, halo_width<D> width,
                halo_options options = {})
      : halo_exchange(grid, {array_view<D>(data, around(interior, width))}, width,
                      std::move(options)) {}
  /// Exchanges several fields of any layout and type, for example {u, v}.
  /// @param fields views with the halo elements; shapes may differ between fields
  halo_exchange(const cartesian<D>& grid, std::initializer_list<array_view<D>> fields,
                halo_width<D> width, halo_options options = {})
      : halo_(arguments(grid, {fields.begin(), fields.end()}, width, std::move(options))) {}
  halo_exchange(const cartesian<D>& grid, const std::vector<array_view<D>>& fields,
                halo_width<D> width, halo_options options = {})
      : halo_(arguments(grid, fields, width, std::move(options))) {}

  /// Exchanges the halos; returns when the neighbours' elements have arrived.
  void operator()() { halo_.exchange(); }
  /// Exchanges in two parts, for computation in between. The computation may read the block, but
  /// must not write its outermost layers or access halo elements. begin() may wait for
  /// neighbours to start.
  void begin() { halo_.begin(); }
  void end() { halo_.end(); }

  /// Returns the version that calls like the last one use, once the choice has converged; empty
  /// until then. The same on all ranks. Local.
  std::string winner() const { return halo_.winner(); }
  /// Returns the version of the last call, for example isend_irecv_at_once_packed; empty before the
  /// first. Local.
  std::string last() const { return halo_.last(); }

  mpi::halo& plain() { return halo_; }

 private:
  static extents<D> around(extents<D> interior, const halo_width<D>& width) {
    for (int k = 0; k < D; ++k) interior[k] += 2 * width[k];
    return interior;
  }
  static mpi::halo_arguments arguments(const cartesian<D>& grid,
                                       const std::vector<array_view<D>>& fields,
                                       const halo_width<D>& width, halo_options options) {
    mpi::halo_arguments all{.comm = grid.comm(), .grid = grid.grid()};
    for (int k = 0; k < D; ++k) all.widths.push_back(width[k]);
    for (const array_view<D>& field : fields) all.fields.push_back(field.layout());
    all.options = std::move(options);
    return all;
  }

  mpi::halo halo_;
};

}  // namespace railpass
