// SPDX-License-Identifier: BSL-1.0
//
// Terminals: which one shows the output of this process, lines that fit there, a progress bar.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace railpass::internal::report {

constexpr std::size_t terminal_columns = 80;

/// The terminal that shows what this process writes to this descriptor, 1 or 2; empty: none does.
/// Under mpirun a rank's output goes to the launcher, be it through a pipe or a terminal of its
/// own, so the terminal is the one that the launcher itself writes to.
std::string find_terminal(int descriptor);

/// The text in lines of at most `columns` columns, broken between words. Lines that begin with a
/// blank are commands and stay as they are; all other lines are joined and broken again.
std::string filled(std::string_view text, std::size_t columns);

/// A progress bar on standard error of this process or of its launcher, if it is a terminal.
/// For one rank of a job.
class progress_bar {
 public:
  progress_bar(std::string title, bool enabled);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  void show(double fraction, const std::string& doing);
  /// Clears the line; the next show() draws it again.
  void hide();

 private:
  std::string title_;
  std::string terminal_;  // empty: no terminal
  double last_s_ = 0;
};

}  // namespace railpass::internal::report
