// SPDX-License-Identifier: BSL-1.0
//
// The folder of a characterisation. Each launch is a file of bench results whose notes contain the
// request, so that the same command goes on where an interrupted one was.
#pragma once

#include "lib/characterise/schedule.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal::characterise {

class folder {
 public:
  /// Makes the folder if it is not there. Throws error.
  explicit folder(std::string path);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + '/' + name; }
  bool has(const std::string& name) const;

  /// In the order in which they were added. Throws error that names the file.
  std::vector<launch_record> launches() const;
  void add(const launch_record& one) const;
  /// Takes the collectives out of the launches that failed, so that these launches keep their time
  /// alone. Throws error.
  void forgive_failures() const;

 private:
  /// Counted from 1.
  std::string file_of_launch(std::size_t number) const;
  void write(std::size_t number, const launch_record& one) const;

  std::string path_;
};

/// Joins the results of all successful launches on `num_ranks` ranks, as one bench over several
/// launches. Empty without such launches.
std::optional<bench_results> bench_of(std::span<const launch_record> launches, int num_ranks);

}  // namespace railpass::internal::characterise
