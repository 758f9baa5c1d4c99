// SPDX-License-Identifier: BSL-1.0
//
// Minima and maxima of ranks: no right result is called wrong, and every wrong one is.
#include "lib/buffers/extremes.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace railpass::internal;

namespace {

template <class T>
constexpr number_kind kind_of = std::is_floating_point_v<T> ? number_kind::floating
                                : std::is_signed_v<T>       ? number_kind::signed_integer
                                                            : number_kind::unsigned_integer;

template <class T>
std::vector<std::byte> compared(const extreme& e, const std::vector<T>& numbers) {
  return e.comparable(std::as_bytes(std::span(numbers)));
}

// As all ranks together judge the result.
template <class T>
bool is_right(const extreme& e, const std::vector<std::vector<T>>& inputs,
              const std::vector<T>& result) {
  std::vector<std::uint64_t> missed((result.size() + 63) / 64, ~std::uint64_t{0});
  std::uint64_t beyond = 0;
  for (const std::vector<T>& input : inputs) {
    const auto own = compared(e, input), common = compared(e, result);
    std::vector<std::uint64_t> marks(missed.size());
    beyond += e.beyond(own, common);
    e.mark_missed(own, common, marks);
    for (std::size_t i = 0; i < marks.size(); ++i) missed[i] &= marks[i];
  }
  return beyond == 0 && std::ranges::all_of(missed, [](std::uint64_t m) { return m == 0; });
}

template <class T>
T drawn(std::mt19937_64& random) {
  const std::vector<T> some{
      T(0), T(1), T(-1), T(7), std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
  return random() % 2 ? some[random() % some.size()] : T(random());
}

}  // namespace

TEMPLATE_TEST_CASE("a result is right exactly if it is the minimum or maximum of all inputs", "",
                   std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                   std::uint32_t, std::int64_t, std::uint64_t, float, double) {
  using T = TestType;
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (const bool is_largest : {false, true}) {
    const extreme e(is_largest, kind_of<T>, sizeof(T));
    REQUIRE(e.is_known());
    for (int round = 0; round < 300; ++round) {
      const std::size_t n = 1 + random() % 130, ranks = 1 + random() % 5;
      std::vector<std::vector<T>> inputs(ranks, std::vector<T>(n));
      for (auto& input : inputs)
        for (T& x : input) x = drawn<T>(random);
      std::vector<T> right = inputs[0];
      for (const auto& input : inputs)
        for (std::size_t i = 0; i < n; ++i)
          right[i] = is_largest ? std::max(right[i], input[i]) : std::min(right[i], input[i]);
      CHECK(is_right(e, inputs, right));
      std::vector<T> wrong = right;
      T& altered = wrong[random() % n];
      const T was = altered;
      altered = drawn<T>(random);
      CHECK(is_right(e, inputs, wrong) == (altered == was));
    }
  }
}

TEST_CASE("an operation that compares unsigned numbers as signed ones is found") {
  const extreme most(true, number_kind::unsigned_integer, 8);
  const std::vector<std::uint64_t> small{1, 5}, large{std::uint64_t{1} << 63, 7};
  const auto a = compared(most, small), b = compared(most, large);
  CHECK(most.wrong(a, b, compared(most, std::vector<std::uint64_t>{large})) == 0);
  CHECK(most.wrong(a, b, compared(most, std::vector<std::uint64_t>{1, 7})) == 1);
}

TEST_CASE("zeros of both signs and numbers below the normal ones are equal") {
  const extreme least(false, number_kind::floating, sizeof(double));
  const double tiny = std::numeric_limits<double>::denorm_min();
  CHECK(compared(least, std::vector{0.0, -0.0, tiny, -tiny}) ==
        compared(least, std::vector{0.0, 0.0, 0.0, 0.0}));
}

TEST_CASE("NaN in an input is noticed, and NaN as a result of numbers is wrong") {
  const extreme least(false, number_kind::floating, sizeof(float));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(least.has_nan(compared(least, std::vector{1.f, nan})));
  CHECK(!least.has_nan(compared(least, std::vector{1.f, std::numeric_limits<float>::infinity()})));
  CHECK(!is_right<float>(least, {{1, 2}, {3, 4}}, {1, nan}));
}

TEST_CASE("other numbers are unknown") {
  CHECK(!extreme().is_known());
  CHECK(!extreme(true, number_kind::signed_integer, 16).is_known());
  CHECK(!extreme(true, number_kind::floating, 16).is_known());
  CHECK(!extreme(true, number_kind::other, 4).is_known());
}
