// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/shared_rails.hpp"

#include <utility>

namespace railpass::internal {

std::vector<select::rail_statistics> statistics_of(open_transport& rails) {
  return rails.with([&](transport::transport& t) {
    std::vector<select::rail_statistics> result;
    std::int64_t all_bytes = 0;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      const transport::rail_report known = t.report(int(r));
      select::rail_statistics s{.rails = rails.rails(),
                                .rail = t.rails()[r]->name(),
                                .sent_bytes = known.sent_bytes,
                                .bytes_per_s = known.bytes_per_s,
                                .changes = known.changes,
                                .prediction_error = known.prediction_error,
                                .backlog_s = known.backlog_s};
      all_bytes += s.sent_bytes;
      result.push_back(std::move(s));
    }
    for (select::rail_statistics& s : result)
      if (all_bytes > 0) s.share = double(s.sent_bytes) / double(all_bytes);
    return result;
  });
}

}  // namespace railpass::internal
