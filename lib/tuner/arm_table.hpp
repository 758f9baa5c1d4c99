// SPDX-License-Identifier: BSL-1.0
//
// The arms of each collective by their numbers, and which of them settings or a call's options ask
// for.
#pragma once

#include "collectives/registry.hpp"
#include "lib/call/call.hpp"
#include "railpass/options.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace railpass {
struct settings;
}

namespace railpass::internal {

class process;

/// Of all sessions; never destroyed, as all that calls need: programs make some in atexit handlers.
const std::array<std::vector<arm>, num_collectives>& known_arms();

/// `reproducible`: the same algorithm for the same size on every machine and in every run. Where
/// nothing else is said, the first one that keeps rank order.
const arm& reproducible_arm(const call& c);

/// Whether the setting `collectives` names it.
bool is_named(std::string_view collectives, std::string_view name);

/// What the setting `use` asks for of a function set; empty: nothing.
std::string pinned_version(std::string_view use, std::string_view set);
/// The names before the colons of that setting that are no collective's.
std::vector<std::string> names_of_sets(std::string_view use);

class arm_table {
 public:
  // Of a collective.
  struct handling {
    const arm* arms = nullptr;    // by their numbers
    const arm* pinned = nullptr;  // by the setting `use`
    bool tuned = false;
    select::waiting waits = select::waiting::for_some;
  };

  /// What names no collective is recorded. Throws error if `use` names no arm. `owner` must outlive
  /// the table.
  arm_table(const settings& values, process& owner);
  arm_table(const arm_table&) = delete;
  arm_table& operator=(const arm_table&) = delete;

  const handling& operator[](collective op) const { return handlings_[std::size_t(op)]; }

  struct asked_arm {
    arm chosen;
    std::uint64_t number = 0;  ///< no other one's, nor 0
  };
  /// What the options `use` and `segment_bytes` ask for; native, and a record, if there is no such
  /// arm. Valid until some hundreds of others have been asked for.
  const asked_arm& asked_by(const call_options& options, collective op);

 private:
  static constexpr std::size_t max_asked = 1024;

  // What the options say.
  struct question {
    collective op;
    std::string_view text;
    std::int64_t segment_bytes;
    auto operator<=>(const question&) const = default;
  };
  struct answer {
    std::string text;
    asked_arm asked;
  };

  std::array<handling, num_collectives> handlings_{};
  process& process_;
  std::deque<arm> pinned_by_setting_;
  // The questions' texts are the answers'.
  std::map<question, std::unique_ptr<answer>> asked_, asked_before_;
  std::uint64_t num_asked_ = 0;
};

}  // namespace railpass::internal
