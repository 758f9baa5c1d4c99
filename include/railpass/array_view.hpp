// SPDX-License-Identifier: BSL-1.0
//
// Describes where the elements of an array are in memory. Arrays of Boost.MultiArray (and views of
// them), Eigen (tensors, matrices, maps) and std::mdspan are recognised by their members, without
// their headers. For other arrays specialise railpass::array_traits.
#pragma once

#include "railpass/base/extents.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace railpass {

/// The memory layout of an array, without templates.
struct array_layout {
  void* data = nullptr;                       ///< the element whose indices are all 0
  std::vector<std::int64_t> extents{};        ///< elements in each dimension
  std::vector<std::int64_t> strides_bytes{};  ///< may be negative
  std::int64_t element_bytes = 0;             ///< of an element that is copied as in memory;
  MPI_Datatype element = MPI_DATATYPE_NULL;   ///< otherwise its datatype, committed

  bool plain() const { return element == MPI_DATATYPE_NULL; }
};

/// Properties of an array type, for array_view:
///     static constexpr int rank;                               // number of dimensions
///     static T* data(Array&);                                  // the first element
///     static std::int64_t extent(const Array&, int dimension);  // elements
///     static std::int64_t stride(const Array&, int dimension);  // elements, may be negative
template <class Array>
struct array_traits;

namespace detail {

template <class A>
concept like_mdspan = requires(A& a) {
  A::rank();
  a.data_handle();
  a.extent(0);
  a.stride(0);
};
template <class A>
concept like_multi_array = requires(A& a) {
  A::dimensionality;
  a.origin();
  a.index_bases();
  a.shape();
  a.strides();
};
template <class A>
concept like_eigen_tensor = requires(A& a) {
  A::NumIndices;
  int(A::Layout);
  a.data();
  a.dimension(0);
};
template <class A>
concept like_eigen_matrix = requires(A& a) {
  a.data();
  a.rows();
  a.cols();
  a.rowStride();
  a.colStride();
};

}  // namespace detail

template <detail::like_mdspan A>
struct array_traits<A> {
  static constexpr int rank = int(A::rank());
  static auto* data(A& a) { return a.data_handle(); }
  static std::int64_t extent(const A& a, int k) { return std::int64_t(a.extent(std::size_t(k))); }
  static std::int64_t stride(const A& a, int k) { return std::int64_t(a.stride(std::size_t(k))); }
};

template <detail::like_multi_array A>
struct array_traits<A> {
  static constexpr int rank = int(A::dimensionality);
  static auto* data(A& a) {
    auto* first = a.origin();  // the element whose indices are all 0, which may be outside
    for (int k = 0; k < rank; ++k) first += a.index_bases()[k] * a.strides()[k];
    return first;
  }
  static std::int64_t extent(const A& a, int k) { return std::int64_t(a.shape()[k]); }
  static std::int64_t stride(const A& a, int k) { return std::int64_t(a.strides()[k]); }
};

template <detail::like_eigen_tensor A>
struct array_traits<A> {
  static constexpr int rank = int(A::NumIndices);
  static auto* data(A& a) { return a.data(); }
  static std::int64_t extent(const A& a, int k) { return std::int64_t(a.dimension(k)); }
  static std::int64_t stride(const A& a, int k) {
    constexpr bool rows_first = int(A::Layout) == 1;  // Eigen::RowMajor
    std::int64_t elements = 1;
    for (int j = rows_first ? k + 1 : 0; j < (rows_first ? rank : k); ++j) elements *= extent(a, j);
    return elements;
  }
};

template <detail::like_eigen_matrix A>
struct array_traits<A> {
  static constexpr int rank = 2;
  static auto* data(A& a) { return a.data(); }
  static std::int64_t extent(const A& a, int k) {
    return std::int64_t(k == 0 ? a.rows() : a.cols());
  }
  static std::int64_t stride(const A& a, int k) {
    return std::int64_t(k == 0 ? a.rowStride() : a.colStride());
  }
};

/// A D-dimensional array in the caller's memory. Elements are copied as in memory; elements that
/// are not trivially copyable need an MPI datatype.
template <int D>
class array_view {
 public:
  /// An array of `shape` elements in row-major order.
  template <class T>
  array_view(T* data, extents<D> shape) : array_view(data, shape, row_by_row(shape)) {}
  /// @param strides in elements
  template <class T>
  array_view(T* data, extents<D> shape, extents<D> strides) {
    static_assert(std::is_trivially_copyable_v<T>, "say the element's MPI datatype");
    fill(data, shape, strides);
  }
  /// @param element committed for as long as objects made from the view exist
  template <class T>
  array_view(T* data, extents<D> shape, extents<D> strides, MPI_Datatype element) {
    fill(data, shape, strides);
    layout_.element = element;
  }
  /// An array of any type with array_traits.
  template <class Array>
  requires(array_traits<std::remove_cvref_t<Array>>::rank == D) array_view(Array&& array) {
    using traits = array_traits<std::remove_reference_t<Array>>;
    extents<D> shape, strides;
    for (int k = 0; k < D; ++k) {
      shape[k] = traits::extent(array, k);
      strides[k] = traits::stride(array, k);
    }
    *this = array_view(traits::data(array), shape, strides);
  }

  const array_layout& layout() const { return layout_; }

  static extents<D> row_by_row(const extents<D>& shape) {
    extents<D> strides;
    std::int64_t elements = 1;
    for (int k = D; k-- > 0; elements *= shape[k]) strides[k] = elements;
    return strides;
  }

 private:
  template <class T>
  void fill(T* data, const extents<D>& shape, const extents<D>& strides) {
    static_assert(!std::is_const_v<T>, "received data are written to the array");
    layout_.data = data;
    layout_.element_bytes = std::int64_t(sizeof(T));
    for (int k = 0; k < D; ++k) {
      layout_.extents.push_back(shape[k]);
      layout_.strides_bytes.push_back(strides[k] * std::int64_t(sizeof(T)));
    }
  }

  array_layout layout_;
};

}  // namespace railpass
