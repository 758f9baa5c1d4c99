// SPDX-License-Identifier: BSL-1.0
//
// Which elements of an array neighbours exchange, element by element.
#include "lib/halo/strided.hpp"
#include "railpass/base/process_grid.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <random>

using namespace railpass;
using namespace railpass::internal;
using namespace railpass::internal::halo;

namespace {

struct random_array {
  array_layout layout;
  std::vector<std::byte> memory;
  std::vector<std::int64_t> widths;

  explicit random_array(std::mt19937& random) {
    const int d = 1 + int(random() % 4);
    layout.element_bytes = std::int64_t(1 + random() % 17);
    std::vector<int> order;
    for (int k = 0; k < d; ++k) {
      widths.push_back(std::int64_t(random() % 3));
      layout.extents.push_back(3 * widths.back() + 1 + std::int64_t(random() % 3));
      order.push_back(k);
    }
    std::shuffle(order.begin(), order.end(), random);
    layout.strides_bytes.resize(std::size_t(d));
    std::int64_t stride = layout.element_bytes + (random() % 2 ? 0 : 3), first = 0;
    for (const int k : order) {
      const std::size_t j = std::size_t(k);
      const bool backwards = random() % 4 == 0;
      layout.strides_bytes[j] = backwards ? -stride : stride;
      if (backwards) first += stride * (layout.extents[j] - 1);
      stride = stride * layout.extents[j] + (random() % 2 ? 0 : 2);
    }
    memory.resize(std::size_t(stride));
    for (std::byte& b : memory) b = std::byte(random());
    layout.data = memory.data() + first;
  }

  std::byte* at(const std::vector<std::int64_t>& index) {
    auto* element = static_cast<std::byte*>(layout.data);
    for (std::size_t k = 0; k < index.size(); ++k) element += index[k] * layout.strides_bytes[k];
    return element;
  }
};

// All elements that belong to a side, in the order of `order`, said of each index by itself.
std::vector<std::byte*> elements_of_side(random_array& a, const std::vector<int>& steps,
                                         const std::vector<int>& order, bool sent) {
  std::vector<std::byte*> found;
  std::vector<std::int64_t> index(a.widths.size(), 0);
  for (;;) {
    bool belongs = true;
    for (std::size_t k = 0; k < index.size(); ++k) {
      const std::int64_t w = a.widths[k], n = a.layout.extents[k];
      const bool own = index[k] >= w && index[k] < n - w;
      if (steps[k] == 0) belongs = belongs && own;
      if (steps[k] < 0) belongs = belongs && (sent ? own && index[k] < 2 * w : index[k] < w);
      if (steps[k] > 0)
        belongs = belongs && (sent ? own && index[k] >= n - 2 * w : index[k] >= n - w);
    }
    if (belongs) found.push_back(a.at(index));
    std::size_t j = order.size();
    while (j-- > 0) {
      const std::size_t k = std::size_t(order[j]);
      if (++index[k] < a.layout.extents[k]) break;
      index[k] = 0;
    }
    if (j == std::size_t(-1)) return found;
  }
}

std::vector<std::byte*> elements_of(const strided& s) {
  std::vector<std::byte*> found{s.first};
  for (std::size_t k = 0; k < s.counts.size(); ++k) {
    std::vector<std::byte*> more;
    for (std::byte* at : found)
      for (std::int64_t i = 0; i < s.counts[k]; ++i) more.push_back(at + i * s.strides_bytes[k]);
    found = more;
  }
  return found;
}

}  // namespace

TEST_CASE("sides are those elements, and copies of them complete") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 400; ++trial) {
    CAPTURE(trial);
    random_array a(random);
    const std::vector<int> order = memory_order(a.layout);
    for (std::size_t k = 1; k < order.size(); ++k)
      CHECK(std::abs(a.layout.strides_bytes[std::size_t(order[k - 1])]) >=
            std::abs(a.layout.strides_bytes[std::size_t(order[k])]));
    std::vector<bool> cut;
    for (const std::int64_t w : a.widths) cut.push_back(w > 0);
    for (const std::vector<int>& steps : steps_to_neighbours(cut, true)) {
      for (const bool sent : {true, false}) {
        const strided part = sent ? sent_part(a.layout, a.widths, steps, order)
                                  : received_part(a.layout, a.widths, steps, order);
        const std::vector<std::byte*> expected = elements_of_side(a, steps, order, sent);
        CHECK(elements_of(part) == expected);
        CHECK(part.elements() == std::int64_t(expected.size()));

        const std::size_t bytes = std::size_t(a.layout.element_bytes);
        const runs copies(part, a.layout.element_bytes);
        std::vector<std::byte> packed(expected.size() * bytes), by_hand;
        CHECK(copies.pack(packed.data()) == packed.data() + packed.size());
        for (const std::byte* e : expected) by_hand.insert(by_hand.end(), e, e + bytes);
        CHECK(packed == by_hand);

        for (std::byte& b : packed) b = std::byte(random());
        std::vector<std::byte> before = a.memory;
        CHECK(copies.unpack(packed.data()) == packed.data() + packed.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          std::copy_n(packed.data() + i * bytes, bytes,
                      before.data() + (expected[i] - a.memory.data()));
        CHECK(a.memory == before);
      }
    }
  }
}

TEST_CASE("what lies together is copied as one run") {
  std::vector<double> memory(6 * 8);
  const array_layout rows = array_view<2>(memory.data(), {6, 8}).layout();
  const std::vector<std::int64_t> widths{1, 0}, columns{0, 1};
  const std::vector<int> up{-1, 0}, left{0, -1}, order{0, 1};
  const runs row(sent_part(rows, widths, up, order), 8),
      column(sent_part(rows, columns, left, order), 8);
  CHECK(row.loops().empty());
  CHECK(row.run_bytes() == 64);
  CHECK(column.loops().size() == 1);
  CHECK(column.run_bytes() == 8);
}
