// SPDX-License-Identifier: BSL-1.0
//
// Arrays that are cut into blocks, one per rank, whose sides are the neighbours' (halo, ghost
// cells). All ways to exchange these are versions of one operation; docs/reference/halo.md lists
// them.
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

/// How many elements at each side are the neighbours': as many in all dimensions, or for each one.
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
  bool corners = false;                             ///< neighbours across edges and corners, too
  std::string name =
      "halo";            ///< of the function set; exchanges of one name and shape learn together
  std::string policy{};  ///< empty: the communicator's (RAILPASS_POLICY)
};

namespace internal::halo {
class engine;
}

namespace mpi {

/// halo_exchange<D> without its templates.
struct halo_arguments {
  MPI_Comm comm = MPI_COMM_NULL;
  process_grid grid{};
  std::vector<std::int64_t> widths{};  ///< in each dimension, at either side
  std::vector<array_layout> fields{};
  halo_options options{};
};

/// See halo_exchange<D>, whose members these are.
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

/// The exchange of the sides of one or more fields, to be called again and again. It is a function
/// set (railpass/function_set.hpp) of attributes pattern, primitive and layout: the fastest version
/// is found while the program runs, and RAILPASS_USE=halo:sendrecv_by_pairs_derived pins one.
/// Exchanges in two parts learn apart from those in one.
///
/// A field is an array in the caller's memory: this rank's block, and around it `width` elements of
/// the neighbours in each dimension. An exchange copies the outermost `width` layers of the block
/// to each neighbour across a face, and with option `corners` across edges and corners. It leaves
/// alone elements beyond sides of the domain that are not periodic, and the corners without that
/// option. Blocks of different ranks may differ, as long as faces fit together. All fields go in
/// one message to each neighbour.
///
/// Constructor, calls and destructor are collective over the grid's communicator, which must live
/// as long as calls are made. Messages and windows use a communicator of their own, so they meet
/// none of the caller's. A failed MPI call goes to the error handler that the grid's communicator
/// has at construction; if that returns, railpass::error says what failed, and the object can only
/// be destroyed.
template <int D>
class halo_exchange {
 public:
  /// One field, row by row without gaps: a block of `interior` elements inside an array that is 2 *
  /// width larger in each dimension; `data` is the array's first element. Throws error, on all
  /// ranks alike, if the ranks' arguments are wrong or do not fit together.
  template <class T>
  halo_exchange(const cartesian<D>& grid, T* data, extents<D> interior, halo_width<D> width,
                halo_options options = {})
      : halo_exchange(grid, {array_view<D>(data, around(interior, width))}, width,
                      std::move(options)) {}
  /// Fields of any layout and type, for example {u, v}: their shapes are with the neighbours'
  /// elements, and may differ from each other.
  halo_exchange(const cartesian<D>& grid, std::initializer_list<array_view<D>> fields,
                halo_width<D> width, halo_options options = {})
      : halo_(arguments(grid, {fields.begin(), fields.end()}, width, std::move(options))) {}
  halo_exchange(const cartesian<D>& grid, const std::vector<array_view<D>>& fields,
                halo_width<D> width, halo_options options = {})
      : halo_(arguments(grid, fields, width, std::move(options))) {}

  /// Exchanges, and returns when the neighbours' elements are here.
  void operator()() { halo_.exchange(); }
  /// The same in two calls, for computation in between, which may read the block, but neither write
  /// its outermost layers nor look at the neighbours' elements. May wait for neighbours to begin.
  void begin() { halo_.begin(); }
  void end() { halo_.end(); }

  /// The name of the version that calls like the last one take, once that has settled; empty until
  /// then. The same on all ranks. Local.
  std::string winner() const { return halo_.winner(); }
  /// The version of the last call, as isend_irecv_at_once_packed; empty before the first. Local.
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
