// SPDX-License-Identifier: BSL-1.0
//
// Calls of the system that fail, one at a time: stands before them in a test program that is linked
// with -Wl,--wrap=NAME for each of them. Included by one file of a program.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace failing_calls {

constexpr int transfers_less = -1;  ///< in place of an errno: one byte only

/// Which call fails, and how.
struct plan {
  std::string call;
  int how = 0;          ///< errno, or transfers_less
  int which = 0;        ///< the first one is 1; 0: none
  int seen = 0;         ///< calls of this name so far
  bool failed = false;  ///< it was met
};
inline plan now;
inline std::atomic<int> last_creation_flags = 0;  ///< of an open() that may create a file

inline bool fails(const char* call) {
  if (now.call != call || ++now.seen != now.which) return false;
  now.failed = true;
  errno = now.how;
  return true;
}

}  // namespace failing_calls

extern "C" {
int __real_open(const char*, int, ...);
::ssize_t __real_read(int, void*, std::size_t);
::ssize_t __real_write(int, const void*, std::size_t);
int __real_fsync(int);
int __real_fdatasync(int);
int __real_ftruncate(int, ::off_t);
int __real_flock(int, int);
int __real_rename(const char*, const char*);
int __real_link(const char*, const char*);
int __real_close(int);

int __wrap_open(const char* path, int flags, ...) {
  ::mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, ::mode_t);
    va_end(arguments);
    failing_calls::last_creation_flags = flags;
  }
  return failing_calls::fails("open") ? -1 : __real_open(path, flags, mode);
}
::ssize_t __wrap_read(int file, void* to, std::size_t size) {
  if (!failing_calls::fails("read")) return __real_read(file, to, size);
  return failing_calls::now.how == failing_calls::transfers_less ? __real_read(file, to, 1) : -1;
}
::ssize_t __wrap_write(int file, const void* from, std::size_t size) {
  if (!failing_calls::fails("write")) return __real_write(file, from, size);
  return failing_calls::now.how == failing_calls::transfers_less ? __real_write(file, from, 1) : -1;
}
int __wrap_fsync(int file) { return failing_calls::fails("fsync") ? -1 : __real_fsync(file); }
int __wrap_fdatasync(int file) {
  return failing_calls::fails("fdatasync") ? -1 : __real_fdatasync(file);
}
int __wrap_ftruncate(int file, ::off_t size) {
  return failing_calls::fails("ftruncate") ? -1 : __real_ftruncate(file, size);
}
int __wrap_flock(int file, int what) {
  return failing_calls::fails("flock") ? -1 : __real_flock(file, what);
}
int __wrap_rename(const char* from, const char* to) {
  return failing_calls::fails("rename") ? -1 : __real_rename(from, to);
}
int __wrap_link(const char* from, const char* to) {
  return failing_calls::fails("link") ? -1 : __real_link(from, to);
}
int __wrap_close(int file) {  // closes in any case, as Linux does
  const int result = __real_close(file);
  return failing_calls::fails("close") ? -1 : result;
}
}
