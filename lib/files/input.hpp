// SPDX-License-Identifier: BSL-1.0
//
// The only reader of files that other programs may have made. A test (tree.layers) checks that no
// other code in lib/ opens a file for reading.
#pragma once

#include "lib/base/descriptor.hpp"
#include "railpass/base/error.hpp"

#include <cstdint>
#include <string>

namespace railpass::internal::files {

/// No file of railpass is longer.
inline constexpr std::uint64_t largest_input_bytes = std::uint64_t{256} << 20;

/// No regular file, or a longer one: it will not be another time, unlike a file that cannot be
/// read.
class refused_error : public error {
 public:
  using error::error;
};

/// Opens a file to read it, and never waits for a writer as a pipe would have it. Throws
/// refused_error, or error, with the name.
file_descriptor open_input(const std::string& path, std::uint64_t most_bytes = largest_input_bytes);

/// All of the file. Throws error as open_input() does, and if reading takes more than a minute.
std::string read_text(const std::string& path, std::uint64_t most_bytes = largest_input_bytes);

}  // namespace railpass::internal::files
