// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/log.hpp"

#include "lib/base/descriptor.hpp"
#include "railpass/base/log.hpp"
#include "railpass/base/printable.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <unistd.h>

namespace railpass::internal {

namespace {

// Outside the process object because a program may set its handler before MPI is initialised. A
// handler may make calls that have something to record.
struct sink {
  std::recursive_mutex mutex;
  log_handler handler = nullptr;
  void* user_data = nullptr;
};
sink& the_sink() {
  static sink s;
  return s;
}

}  // namespace

void write_record(const std::string& destination, const std::string& text, bool for_user) {
  const std::string shown = printable(text);
  sink& s = the_sink();
  const std::lock_guard lock(s.mutex);
  if (s.handler) return s.handler(shown.c_str(), s.user_data);
  const bool to_file = !destination.empty() && destination != "stderr";
  if (for_user || destination == "stderr") std::fprintf(stderr, "railpass: %s\n", shown.c_str());
  if (to_file) {
    const file_descriptor file(uninterrupted([&] {
      return ::open(destination.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }));
    if (file.is_open())
      write_all(file.get(), "railpass[" + std::to_string(getpid()) + "]: " + shown + '\n');
  }
}

}  // namespace railpass::internal

void railpass::set_log_handler(log_handler handler, void* user_data) {
  internal::sink& s = internal::the_sink();
  const std::lock_guard lock(s.mutex);
  s.handler = handler;
  s.user_data = user_data;
}
