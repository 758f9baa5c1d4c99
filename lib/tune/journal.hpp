// SPDX-License-Identifier: BSL-1.0
//
// The file that keeps every launch, so that a tuning that was killed goes on where it was: one line
// of JSON when a launch begins and one when it has ended, each on disk before anything else
// happens. A last line that is cut short is dropped.
#pragma once

#include "lib/base/descriptor.hpp"
#include "lib/tune/measurements.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace railpass::internal::tune {

/// Why a combination was launched. Measurements for different purposes stay separate.
enum class purpose { warm_up, search, check };

struct journal_entry {
  purpose why = purpose::search;
  combination what;  ///< empty: the command's defaults
  outcome found;
};

class journal {
 public:
  /// Keeps nothing.
  journal() = default;
  /// Opens or creates the file, and locks it. `identity`: everything that the launches depend on,
  /// as a line of text. `goals`: number of values per launch. Throws error, and leaves the file
  /// unchanged, if it is another tuning's journal, is no journal or is in use.
  journal(std::string path, const std::string& identity, std::size_t goals);

  /// The launches that ended before the journal was opened, in their order.
  const std::vector<journal_entry>& earlier() const { return earlier_; }
  /// How many had begun.
  std::uint64_t earlier_runs() const { return earlier_runs_; }

  void began(purpose why, const combination& what);
  void ended(const journal_entry& entry);
  /// Removes the file: all is done.
  void remove();

 private:
  void append(const std::string& line);

  std::string path_;
  file_descriptor file_;
  std::vector<journal_entry> earlier_;
  std::uint64_t earlier_runs_ = 0;
};

}  // namespace railpass::internal::tune
