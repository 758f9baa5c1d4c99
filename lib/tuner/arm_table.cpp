// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/arm_table.hpp"

#include "lib/call/eligibility.hpp"
#include "lib/runtime/process.hpp"
#include "lib/runtime/setting_values.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/lockstep/followed_context.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace railpass::internal {

const std::array<std::vector<arm>, num_collectives>& known_arms() {
  static const auto& arms = *[] {
    auto* const result = new std::array<std::vector<arm>, num_collectives>;
    for (std::size_t i = 0; i < num_collectives; ++i) (*result)[i] = arms_of(collective(i));
    return result;
  }();
  return arms;
}

const arm& reproducible_arm(const call& c) {
  const std::span<const arm> arms = known_arms()[std::size_t(c.op)];
  if (c.op == collective::all_reduce) {
    static constexpr std::int64_t from_bytes = 64 << 10;
    const bool large = c.message_bytes >= from_bytes && is_commutative(c);
    const std::string_view name = large ? "reduce_scatter_allgather" : "recursive_doubling";
    return *std::ranges::find(arms, name, [](const arm& a) { return a.base->name; });
  }
  const auto keeps_order = [](const arm& a) {
    return !a.base->is_native() && !a.base->needs.commutative && !a.base->needs.power_of_two &&
           !a.base->needs.shared_memory && a.base->needs.max_nodes == 0;
  };
  const auto found = std::ranges::find_if(arms, keeps_order);
  return found == arms.end() ? arms.front() : *found;
}

arm_table::arm_table(const settings& values, process& owner) : process_(owner) {
  for (std::size_t i = 0; i < num_collectives; ++i) {
    handlings_[i].arms = known_arms()[i].data();
    handlings_[i].waits = select::waiting_in(collective(i));
    handlings_[i].tuned = is_named(values.collectives, name_of(collective(i)));
  }
  for (const std::string_view word : words_of(values.use)) {
    const std::size_t colon = word.find(':');
    const auto op = find_collective(word.substr(0, colon));
    if (colon == std::string_view::npos)
      throw error("RAILPASS_USE: '" + std::string(word) + "' is not collective:arm");
    if (!op) continue;  // a function set's
    handlings_[std::size_t(*op)].pinned =
        &pinned_by_setting_.emplace_back(parse_arm(*op, word.substr(colon + 1)));
  }
}

const arm_table::asked_arm& arm_table::asked_by(const call_options& options, collective op) {
  const auto known = asked_.find({op, options.arm, options.segment_bytes});
  if (known != asked_.end()) return known->second->asked;
  arm chosen = handlings_[std::size_t(op)].arms[select::native_arm];
  try {
    if (options.arm.empty())
      throw error("the option segment_bytes needs the option use, which names the algorithm");
    std::string text(options.arm);
    if (options.segment_bytes >= 0)
      text += "+segment_bytes=" + std::to_string(options.segment_bytes);
    chosen = parse_arm(op, text);
  } catch (const error& problem) {
    process_.record(std::string(problem.what()) + "; the MPI library's own collective is used");
  }
  // Keeps the older answers, because the last call's answer may still be in use.
  if (asked_.size() >= max_asked) asked_before_ = std::exchange(asked_, {});
  auto fresh = std::make_unique<answer>(
      answer{std::string(options.arm), {.chosen = chosen, .number = ++num_asked_}});
  const question as{op, fresh->text, options.segment_bytes};
  return asked_.emplace(as, std::move(fresh)).first->second->asked;
}

}  // namespace railpass::internal
