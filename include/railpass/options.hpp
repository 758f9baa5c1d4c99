// SPDX-License-Identifier: BSL-1.0
//
// Named options of a call. They must be equal on all ranks of the communicator, as the root must.
//
// A struct of options, here and in other headers, says in struct_bytes how long the program knows
// it to be. Later versions of railpass add members at its end and read only those that the program
// knows, so a program need not be compiled again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace railpass {

/// What one call asks for. The strings are borrowed for the duration of the call.
struct call_options {
  std::size_t struct_bytes = sizeof(call_options);
  std::string_view arm;             ///< pins an algorithm or arm; empty: the policy chooses
  std::int64_t segment_bytes = -1;  ///< of the pinned algorithm; -1: as the arm says
  std::string_view policy;          ///< another policy than the communicator's; it learns apart
};

/// An option is anything that can be applied to call_options.
struct use {
  std::string_view arm;  ///< "binomial", "chain+fan_out=4+segment_bytes=8KiB", "native"
  constexpr explicit use(std::string_view a) : arm(a) {}
  constexpr void apply(call_options& o) const { o.arm = arm; }
};
struct segment_bytes {
  std::int64_t value;  ///< bytes; 0: not segmented
  constexpr explicit segment_bytes(std::int64_t bytes) : value(bytes) {}
  constexpr void apply(call_options& o) const { o.segment_bytes = value; }
};
struct policy {
  std::string_view name;
  constexpr explicit policy(std::string_view n) : name(n) {}
  constexpr void apply(call_options& o) const { o.policy = name; }
};

template <class T>
concept call_option = requires(const T& option, call_options& o) {
  option.apply(o);
};

template <call_option... Options>
constexpr call_options collect(const Options&... options) {
  call_options result;
  (options.apply(result), ...);
  return result;
}

}  // namespace railpass
