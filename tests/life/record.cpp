// SPDX-License-Identifier: BSL-1.0
#include "record.hpp"

#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace life {
namespace {

record unseen{};
record* current = &unseen;
std::mutex saying;

}  // namespace

record& own_record() { return *current; }

void open_record(const std::string& file_name) {
  const int file = open(file_name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(record)) != 0)
    throw std::runtime_error(file_name + ": cannot be made: " + std::strerror(errno));
  void* const memory = mmap(nullptr, sizeof(record), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    throw std::runtime_error(file_name + ": cannot be mapped: " + std::strerror(errno));
  current = static_cast<record*>(memory);
  current->pid = getpid();
  current->rank = -1;  // not known before MPI is initialized
}

void doing(int thread, const std::string& text) {
  char* const line = current->doing[thread];
  const std::size_t length = text.copy(line, sizeof current->doing[0] - 1);
  line[length] = 0;
}

void differs(int thread, const std::string& what) {
  ++current->differences;
  const std::lock_guard lock(saying);
  const std::string line =
      "thread " + std::to_string(thread) + ": " + current->doing[thread] + ": " + what + "\n";
  const std::size_t used = std::strlen(current->said);
  if (used + line.size() < sizeof current->said)
    std::memcpy(current->said + used, line.c_str(), line.size() + 1);
}

}  // namespace life
