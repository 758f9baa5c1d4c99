// SPDX-License-Identifier: BSL-1.0
//
// The arms of each collective by number, and the arms that settings or a call's options name.
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

/// Shared by all sessions. Never destroyed, because programs call collectives in atexit handlers.
const std::array<std::vector<arm>, num_collectives>& known_arms();

/// The arm for the option `reproducible`: the same algorithm for the same size on every machine and
/// in every run. By default, the first arm that keeps rank order.
const arm& reproducible_arm(const call& c);

class arm_table {
 public:
  // How calls of one collective are handled.
  struct handling {
    const arm* arms = nullptr;    // by number
    const arm* pinned = nullptr;  // named by the setting `use`
    bool tuned = false;
    select::waiting waits = select::waiting::for_some;
  };

  /// Throws error if `use` names no arm. `owner` must outlive the table.
  arm_table(const settings& values, process& owner);
  arm_table(const arm_table&) = delete;
  arm_table& operator=(const arm_table&) = delete;

  const handling& operator[](collective op) const { return handlings_[std::size_t(op)]; }

  struct asked_arm {
    arm chosen;
    std::uint64_t number = 0;  ///< unique, and never 0
  };
  /// The arm that the options `use` and `segment_bytes` name. If there is no such arm: native, and
  /// a record. Valid until some hundreds of other arms have been asked for.
  const asked_arm& asked_by(const call_options& options, collective op);

 private:
  static constexpr std::size_t max_asked = 1024;

  // The options that select an arm.
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
  // The answers own the texts of their questions.
  std::map<question, std::unique_ptr<answer>> asked_, asked_before_;
  std::uint64_t num_asked_ = 0;
};

}  // namespace railpass::internal
