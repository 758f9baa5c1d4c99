// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/trace_file.hpp"

#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>

namespace railpass::internal {

namespace {
constexpr std::size_t part_bytes = std::size_t{64} << 10;
constexpr double longest_wait_s = 1;
}  // namespace

std::string trace_line::text() const {
  std::string text = fixed(started_s, 9);
  for (const std::string& column :
       {printable(communicator), std::to_string(call), std::string(operation),
        std::to_string(bytes), arm, fixed(probability, 6), std::string(timed ? "1" : "0"),
        fixed(seconds, 9)}) {
    text += ',';
    text += column;
  }
  return text;
}

std::string trace_file::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  path_ = path;
  file_ = file_descriptor(uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); }));
  if (!file_.is_open()) return give_up();
  is_open_.store(true, std::memory_order_relaxed);
  return {};
}

std::string trace_file::add(std::string_view line, double now_s) {
  const std::lock_guard lock(mutex_);
  if (!file_.is_open()) return {};
  waiting_ += line;
  waiting_ += '\n';
  if (waiting_.size() < part_bytes && now_s < written_at_s_ + longest_wait_s) return {};
  written_at_s_ = now_s;
  return write();
}

std::string trace_file::close() {
  const std::lock_guard lock(mutex_);
  if (!file_.is_open()) return {};
  std::string problem = write();
  is_open_.store(false, std::memory_order_relaxed);
  return file_.close() ? problem : give_up();
}

std::string trace_file::write() {
  const bool written = write_all(file_.get(), waiting_);
  waiting_.clear();
  return written ? std::string() : give_up();
}

std::string trace_file::give_up() {
  std::string problem =
      "RAILPASS_TRACE: '" + path_ + "' cannot be written; tracing ends: " + std::strerror(errno);
  is_open_.store(false, std::memory_order_relaxed);
  file_.close();
  return problem;
}

}  // namespace railpass::internal
