// SPDX-License-Identifier: BSL-1.0
#include "lib/report/terminal.hpp"

#include "railpass/base/clock.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace railpass::internal::report {
namespace {

// The file's only line that begins with `key`, without it.
std::string line_of(const std::string& file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return line.substr(key.size());
  return {};
}

}  // namespace

std::string find_terminal(int descriptor) {
  const std::string number = std::to_string(descriptor);
  std::string process = std::to_string(getppid());
  for (int generation = 0; generation < 3; ++generation) {
    const std::string folder = "/proc/" + process;
    const std::string name = line_of(folder + "/comm", "");
    const bool launcher =
        name.find("mpi") != std::string::npos || name.find("pmi") != std::string::npos ||
        name.find("orte") != std::string::npos || name.find("prte") != std::string::npos;
    if (!launcher) return generation == 0 && isatty(descriptor) == 1 ? "/dev/fd/" + number : "";
    std::error_code missing;
    std::string target = std::filesystem::read_symlink(folder + "/fd/" + number, missing).string();
    if (missing) return {};
    if (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty")) return target;
    process = line_of(folder + "/status", "PPid:\t");
  }
  return {};
}

std::string filled(std::string_view text, std::size_t columns) {
  std::istringstream lines{std::string(text)};
  std::string result;
  std::size_t length = 0;  // of the last line, while it may be added to
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with(' ')) {
      result += (length > 0 ? "\n" : "") + line + '\n';
      length = 0;
      continue;
    }
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const bool fits = length + 1 + word.size() <= columns;
      result += length == 0 ? "" : fits ? " " : "\n";
      length = length > 0 && fits ? length + 1 + word.size() : word.size();
      result += word;
    }
  }
  return result;
}

progress_bar::progress_bar(std::string title, bool enabled)
    : title_(std::move(title)), terminal_(enabled ? find_terminal(STDERR_FILENO) : std::string()) {}

progress_bar::~progress_bar() { hide(); }

void progress_bar::hide() {
  if (last_s_ > 0) std::ofstream(terminal_) << "\r\033[K" << std::flush;
}

void progress_bar::show(double fraction, const std::string& doing) {
  const double now_s = steady_clock_s();
  // Drawing must not disturb what is measured.
  if (terminal_.empty() || now_s - last_s_ < 0.1) return;
  last_s_ = now_s;
  constexpr int width = 30;
  const double part = std::clamp(fraction, 0.0, 1.0);
  std::string bar(std::size_t(width * part), '#');
  bar.resize(width, '.');
  std::ofstream(terminal_) << "\r\033[K" + title_ + " [" + bar + "] " + percent(part, 0) + "  " +
                                  doing
                           << std::flush;
}

}  // namespace railpass::internal::report
