// SPDX-License-Identifier: BSL-1.0
//
// The fields of comparisons.
#pragma once

#include "lib/files/comparison.hpp"
#include "lib/files/machine_fields.hpp"

namespace railpass::internal::files {

template <>
inline constexpr document_format format_for<comparison>{"railpass compare", 1,
                                                        "Result of railpass compare"};

inline void visit(auto& v, is<comparison> auto& c) {
  const auto times = [](auto& seconds) {
    return [&](auto& t) {
      t.derived("median_s", positive{}, [&] { return median(seconds); });
      t.derived({"spread", "of the runs, relative to the median"}, number{},
                [&] { return robust_spread(seconds) / median(seconds); });
      t({"seconds", "time of each run, in the order of the pairs"}, seconds,
        list<positive>{.may_be_empty = false});
    };
  };
  const auto bounds = [&] { return bounds_of_median(c.ratios()); };
  v(machine_id, c.machine_id);
  v("host", c.host);
  v({"compared_at", utc_example}, c.compared_at);
  v("railpass_version", c.railpass_version);
  v("command", c.command, list<text>{.may_be_empty = false});
  v.derived("repetitions", whole{.low = 1}, [&] { return c.without_s.size(); });
  v.group("without", times(c.without_s));
  v.group("with", times(c.with_s));
  v.group({"ratio", "time with railpass / time without railpass, over the pairs"}, [&](auto& r) {
    r.derived("median", positive{}, [&] { return median(c.ratios()); });
    r.derived("low", positive{}, [&] { return bounds().bounds.low; });
    r.derived("high", positive{}, [&] { return bounds().bounds.high; });
    r.derived("confidence", share{}, [&] { return bounds().confidence; });
  });
  v({"same_output", "whether all runs wrote the same standard output"}, c.same_output);
  v("same_output_but_numbers", c.same_output_but_numbers);
}
inline void check(const json_reader& r, const comparison& c) {
  if (c.with_s.size() != c.without_s.size())
    r.field("with").fail("expected as many runs as without");
}

}  // namespace railpass::internal::files
