// SPDX-License-Identifier: BSL-1.0
//
// Named options of one call. The options must be equal on all ranks of the communicator, like the
// root.
//
// Every struct of options has a member struct_bytes: the struct's size when the program was
// compiled. Later versions of railpass append members and read only the first struct_bytes bytes,
// so programs need not be compiled again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace railpass {

/// Options of one call. The strings are borrowed for the duration of the call.
struct call_options {
  std::size_t struct_bytes = sizeof(call_options);
  std::string_view arm;             ///< the algorithm or arm to use; empty: the policy chooses
  std::int64_t segment_bytes = -1;  ///< of the algorithm in `arm`; -1: as `arm` says
  std::string_view policy;          ///< instead of the communicator's; has statistics of its own
};

/// An option is any type with a member apply(call_options&).
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
