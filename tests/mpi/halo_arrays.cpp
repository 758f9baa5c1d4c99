// SPDX-License-Identifier: BSL-1.0
//
// Arrays of others' types in a halo exchange: each holds the global coordinates of its elements,
// and after the exchange also those of the neighbours'.
#include "railpass/halo_exchange.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <Eigen/Core>
#include <boost/multi_array.hpp>

#include <unsupported/Eigen/CXX11/Tensor>

#if __has_include(<mdspan>)
#include <mdspan>
#endif

#include <array>
#include <complex>
#include <type_traits>
#include <vector>

using namespace railpass;

namespace {

// A periodic domain of 4 x 5 elements per rank, cut in the first dimension, with a width of 2
// and 1.
struct domain {
  static constexpr int nx = 4, ny = 5, wx = 2, wy = 1, sx = nx + 2 * wx, sy = ny + 2 * wy;
  communicator world = communicator::duplicate_of_world();
  cartesian<2> grid{world, {world.size(), 1}, periodic};

  int value(int i, int k) const {
    const int all = nx * world.size();
    return 100 * ((world.rank() * nx + i - wx + all) % all) + (k - wy + ny) % ny;
  }
  bool is_own(int i, int k) const { return i >= wx && i < wx + nx && k >= wy && k < wy + ny; }
  template <class At>
  void fill(const At& at) const {
    for (int i = 0; i < sx; ++i)
      for (int k = 0; k < sy; ++k) at(i, k) = is_own(i, k) ? value(i, k) : -1;
  }
  template <class At>
  void check(const At& at) const {
    for (int i = 0; i < sx; ++i)
      for (int k = 0; k < sy; ++k) {
        CAPTURE(i, k);
        CHECK(at(i, k) == std::remove_cvref_t<decltype(at(i, k))>(value(i, k)));
      }
  }
  template <class View, class At>
  void exchange(View&& view, const At& at) const {
    fill(at);
    halo_exchange<2> halo(grid, {std::forward<View>(view)}, {wx, wy}, {.corners = true});
    halo();
    check(at);
  }
};

// What std::mdspan offers, for libraries without it.
struct like_mdspan {
  int* data;
  static constexpr std::size_t rank() { return 2; }
  int* data_handle() const { return data; }
  std::size_t extent(std::size_t k) const { return k == 0 ? domain::sx : domain::sy; }
  std::size_t stride(std::size_t k) const { return k == 0 ? 1 : domain::sx + 3; }
};

struct mine {
  std::vector<short> values = std::vector<short>(domain::sx * domain::sy * 2);
  short& at(int i, int k) { return values[std::size_t(2 * (k * domain::sx + i))]; }
};

}  // namespace

template <>
struct railpass::array_traits<mine> {
  static constexpr int rank = 2;
  static short* data(mine& a) { return a.values.data(); }
  static std::int64_t extent(const mine&, int k) { return k == 0 ? domain::sx : domain::sy; }
  static std::int64_t stride(const mine&, int k) { return k == 0 ? 2 : 2 * domain::sx; }
};

TEST_CASE("Boost.MultiArray: arrays of any order and base, and views") {
  const domain d;
  boost::multi_array<int, 2> rows(boost::extents[d.sx][d.sy]);
  d.exchange(rows, [&](int i, int k) -> int& { return rows[i][k]; });
  boost::multi_array<double, 2> columns(boost::extents[d.sx][d.sy], boost::fortran_storage_order());
  columns.reindex(std::array{-2, 3});
  d.exchange(columns, [&](int i, int k) -> double& { return columns[i - 2][k + 3]; });
  // Every second row of a larger array, backwards.
  using range = boost::multi_array_types::index_range;
  boost::multi_array<int, 2> large(boost::extents[2 * d.sx][d.sy + 1]);
  auto view = large[boost::indices[range(2 * d.sx - 1, 0, -2)][range(1, d.sy + 1)]];
  REQUIRE(int(view.shape()[0]) == d.sx);
  d.exchange(view, [&](int i, int k) -> int& { return view[i][k]; });
}

TEST_CASE("Eigen: tensors, matrices and maps of both orders") {
  const domain d;
  Eigen::Tensor<float, 2> tensor(d.sx, d.sy);
  d.exchange(tensor, [&](int i, int k) -> float& { return tensor(i, k); });
  Eigen::Tensor<std::complex<double>, 2, Eigen::RowMajor> complex(d.sx, d.sy);
  d.exchange(complex, [&](int i, int k) -> std::complex<double>& { return complex(i, k); });
  Eigen::ArrayXXd matrix(d.sx, d.sy);
  d.exchange(matrix, [&](int i, int k) -> double& { return matrix(i, k); });
  std::vector<double> memory(std::size_t(3 * d.sx * d.sy));
  Eigen::Map<Eigen::MatrixXd, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>> map(
      memory.data(), d.sx, d.sy, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(3 * d.sx, 2));
  d.exchange(map, [&](int i, int k) -> double& { return map(i, k); });
}

TEST_CASE("std::mdspan, strides by hand, and types that say themselves where their elements are") {
  const domain d;
  std::vector<int> memory(std::size_t((d.sx + 3) * d.sy));
  const auto at = [&](int i, int k) -> int& { return memory[std::size_t(i + (d.sx + 3) * k)]; };
  d.exchange(like_mdspan{memory.data()}, at);
  d.exchange(array_view<2>(memory.data(), {d.sx, d.sy}, {1, d.sx + 3}), at);
#ifdef __cpp_lib_mdspan
  d.exchange(std::mdspan<int, std::dextents<int, 2>, std::layout_left>(memory.data(), d.sx, d.sy),
             [&](int i, int k) -> int& { return memory[std::size_t(i + d.sx * k)]; });
#endif
  mine own;
  d.exchange(own, [&](int i, int k) -> short& { return own.at(i, k); });
}

TEST_CASE("fields of different types go together") {
  const domain d;
  boost::multi_array<int, 2> u(boost::extents[d.sx][d.sy]);
  Eigen::Tensor<double, 2> v(d.sx, d.sy);
  std::vector<short> w(std::size_t(d.sx * d.sy));
  const auto at_u = [&](int i, int k) -> int& { return u[i][k]; };
  const auto at_v = [&](int i, int k) -> double& { return v(i, k); };
  const auto at_w = [&](int i, int k) -> short& { return w[std::size_t(i * d.sy + k)]; };
  halo_exchange<2> halo(d.grid, {u, v, array_view<2>(w.data(), {d.sx, d.sy})}, {d.wx, d.wy},
                        {.corners = true});
  for (int round = 0; round < 3; ++round) {
    d.fill(at_u);
    d.fill(at_v);
    d.fill(at_w);
    halo();
    d.check(at_u);
    d.check(at_v);
    d.check(at_w);
  }
}
