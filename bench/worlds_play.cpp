// SPDX-License-Identifier: BSL-1.0
//
// Plays a policy in the worlds of some seeds and judges it: bench/worlds runs it.
//
//     worlds_play POLICY FIRST LAST STEP [NOISES]
//         one line of JSON per seed FIRST, FIRST + STEP, ... up to LAST: see bench/worlds
//     worlds_play beliefs POLICY FIRST LAST STEP
//         the same in worlds whose beliefs are wrong (tests/support/belief_worlds.hpp), for each
//         family and seed
//     worlds_play POLICY SEED
//         how one world goes: its arms, and what is in use when that changes, in the first noise
#include "railpass/base/settings.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policies/knowledge_gradient.hpp"
#include "support/belief_player.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace {

using namespace railpass;
using nlohmann::ordered_json;

test::policy_maker maker_of(const std::string& name) {
  if (name == "unguarded")
    return [](select::policy_input input) {
      return std::make_unique<select::knowledge_gradient>(std::move(input));
    };
  const std::string policy = name == "default" ? settings{}.policy : name;
  (void)select::require_policy(policy);
  return [policy](select::policy_input input) {
    return select::make_policy(policy, std::move(input));
  };
}

ordered_json judged(std::uint64_t seed, const std::string& policy, int noises) {
  const auto w = test::make_world(seed);
  const test::verdict v = test::play(w, maker_of(policy), noises);
  return {{"seed", seed},
          {"family", w.family},
          {"policy", policy},
          {"calls", w.calls},
          {"excess", v.excess},
          {"allowed", v.allowed},
          {"settled_within", v.settled_within},
          {"settled_allowed", v.settled_allowed},
          {"believed_ok", v.believed_ok},
          {"attentive", v.attentive},
          {"gain", v.gain}};
}

ordered_json judged_beliefs(std::size_t family, std::uint64_t seed, const std::string& policy) {
  const test::belief_world w(family, seed);
  const test::belief_verdict v = test::play_beliefs(w, maker_of(policy), seed);
  return {{"seed", seed},   {"family", w.family}, {"policy", policy},  {"ratios", v.ratios},
          {"late", v.late}, {"counts", v.counts}, {"stuck", v.stuck()}};
}

void explain(std::uint64_t seed, const std::string& policy) {
  const auto w = test::make_world(seed);
  std::cout << w.family << ", " << w.calls << " calls, native " << w.native_s << " s, "
            << w.num_ranks << " ranks, a merge " << w.merge_s / w.native_s << " or "
            << w.merge_at_once_s / w.native_s << " calls, noise " << w.largest_noise
            << (w.has_traps ? ", traps" : "") << '\n';
  for (std::size_t a = 0; a < std::min<std::size_t>(w.priors.size(), 40); ++a)
    std::cout << "  arm " << a << ": " << w.mean_s(int(a), 0) / w.native_s << ", at the end "
              << w.mean_s(int(a), w.calls - 1) / w.native_s << ", predicted "
              << std::exp(w.priors[a].log_seconds) / w.native_s << " +- " << w.priors[a].spread
              << '\n';
  int before = -1;
  double lost = 0;
  std::int64_t merges = 0;
  const auto log = [&](std::int64_t call, const select::timed_call& c, const select::lockstep& s) {
    const double now = w.mean_s(c.arm, call), native = w.mean_s(0, call);
    lost += (now - 1.03 * native) / w.native_s;
    if (s.merges() != merges) lost += double(s.merges() - merges) * w.merge_s / w.native_s;
    const int in_use = s.incumbent(c.context);
    if (in_use != before || c.arm != in_use)
      std::cout << call << ": " << in_use
                << (c.arm != in_use ? " tries " + std::to_string(c.arm) : "") << " ("
                << now / native << "), lost " << lost << ", merges " << s.merges() << '\n';
    before = in_use;
    merges = s.merges();
  };
  const test::verdict v = test::play(w, maker_of(policy), 1, log);
  std::cout << "excess " << v.excess << " of " << v.allowed << ", settled within "
            << v.settled_within << ", gain " << v.gain << '\n';
}

int run(const std::vector<std::string>& a) {
  if (a.size() == 2) {
    explain(std::stoull(a[1]), a[0]);
    return 0;
  }
  if (a.size() == 5 && a[0] == "beliefs") {
    for (std::uint64_t seed = std::stoull(a[2]); seed <= std::stoull(a[3]);
         seed += std::stoull(a[4]))
      for (std::size_t family = 0; family < test::belief_families.size(); ++family)
        std::cout << judged_beliefs(family, seed, a[1]).dump() << std::endl;
    return 0;
  }
  if (a.size() < 4) throw error("expected POLICY FIRST LAST STEP [NOISES] or POLICY SEED");
  for (std::uint64_t seed = std::stoull(a[1]); seed <= std::stoull(a[2]); seed += std::stoull(a[3]))
    std::cout << judged(seed, a[0], a.size() > 4 ? std::stoi(a[4]) : 20).dump() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& problem) {
    std::cerr << "worlds_play: " << problem.what() << '\n';
    return 1;
  }
}
