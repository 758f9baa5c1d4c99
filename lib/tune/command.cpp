// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/command.hpp"

#include "lib/base/descriptor.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/hash.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace railpass::internal::tune {

namespace {

constexpr double grace_s = 2;     // between asking processes to end and ending them
constexpr double give_up_s = 10;  // a process in the kernel's hands may not even be killed

[[noreturn]] void fail(const std::string& what) { throw error(what + ": " + std::strerror(errno)); }

// The first and the last part of a text that may be endless.
class bounded_text {
 public:
  explicit bounded_text(std::size_t most) : half_(most / 2) {}
  void append(const char* data, std::size_t size) {
    hash_ = fnv1a({data, size}, hash_);
    const std::size_t to_head = std::min(size, half_ - head_.size());
    head_.append(data, to_head);
    tail_.append(data + to_head, size - to_head);
    is_cut_ = is_cut_ || tail_.size() > half_;
    if (tail_.size() > 2 * half_) tail_.erase(0, tail_.size() - half_);
  }
  std::string text() const {
    return head_ + (tail_.size() > half_ ? tail_.substr(tail_.size() - half_) : tail_);
  }
  bool is_cut() const { return is_cut_; }
  std::uint64_t hash() const { return hash_; }

 private:
  std::size_t half_;
  std::string head_, tail_;
  bool is_cut_ = false;
  std::uint64_t hash_ = fnv1a("");
};

struct pipe_ends {
  pipe_ends() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("no pipe for the command");
    reader = file_descriptor(ends[0]);
    writer = file_descriptor(ends[1]);
  }
  file_descriptor reader, writer;
};

// The output of a pipe, as far as it is kept.
class output_pipe : public pipe_ends {
 public:
  explicit output_pipe(std::size_t most) : text_(most) {
    ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  }
  void read() {
    std::array<char, 1 << 16> part;
    // Reads a bounded amount, because the caller must look at the clock, too.
    for (int i = 0; i < 64 && reader.is_open(); ++i) {
      const ::ssize_t n = ::read(reader.get(), part.data(), part.size());
      if (n > 0) text_.append(part.data(), std::size_t(n));
      if (n < 0) return;
      if (n == 0) reader.close();  // after the last byte
    }
  }
  const bounded_text& text() const { return text_; }

 private:
  bounded_text text_;
};

// The parent of each present process.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> result;
  ::DIR* const folder = ::opendir("/proc");
  if (!folder) return result;
  while (const ::dirent* entry = ::readdir(folder)) {
    const pid_t pid = pid_t(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 0) continue;
    std::ifstream file("/proc/" + std::string(entry->d_name) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');  // the name may hold anything
    if (name_end == std::string::npos || name_end + 4 >= line.size()) continue;
    result[pid] = pid_t(std::strtol(line.c_str() + name_end + 4, nullptr, 10));
  }
  ::closedir(folder);
  return result;
}

// All descendants of this process, including dead processes that were never waited for.
std::vector<pid_t> descendants() {
  const auto parent = parents();
  std::vector<pid_t> found;
  for (const auto& [pid, first] : parent) {
    pid_t above = first;
    for (int depth = 0; depth < 1000 && above > 1 && above != ::getpid(); ++depth) {
      const auto it = parent.find(above);
      above = it == parent.end() ? 0 : it->second;
    }
    if (above == ::getpid()) found.push_back(pid);
  }
  return found;
}

void pause_s(double seconds) { ::poll(nullptr, 0, int(seconds * 1e3)); }

// Ends all descendants of this process, politely first if asked. Returns whether all have ended.
bool end_descendants(bool politely) {
  const double begin_s = steady_clock_s();
  bool asked = !politely;
  for (;;) {
    const double waited_s = steady_clock_s() - begin_s;
    std::vector<pid_t> left;
    for (const pid_t pid : descendants()) {
      // Orphans are children of this process now. Parents wait for other processes.
      if (::waitpid(pid, nullptr, WNOHANG) != pid) left.push_back(pid);
    }
    if (left.empty()) return true;
    if (waited_s > give_up_s) return false;
    if (!asked)
      for (const pid_t pid : left) ::kill(pid, SIGTERM);
    else if (!politely || waited_s > grace_s)
      for (const pid_t pid : left) ::kill(pid, SIGKILL);
    asked = true;
    pause_s(0.01);
  }
}

// Everything that allocates memory is made before the fork.
struct program {
  explicit program(const command_request& request) : line(request.line) {
    for (char** v = environ; *v; ++v) {
      const std::string_view assignment = *v;
      const std::string_view name = assignment.substr(0, assignment.find('='));
      if (std::none_of(request.environment.begin(), request.environment.end(),
                       [&](const auto& added) { return added.first == name; }))
        variables.emplace_back(assignment);
    }
    for (const auto& [name, value] : request.environment) variables.push_back(name + '=' + value);
    for (std::string& v : variables) environment.push_back(v.data());
    environment.push_back(nullptr);
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  std::string shell = "/bin/sh", option = "-c", line;
  std::array<char*, 4> arguments{shell.data(), option.data(), line.data(), nullptr};
  std::vector<std::string> variables;
  std::vector<char*> environment;
};

// The guard's report when no process of the command is left.
struct guard_report {
  int start_failure = 0;  // errno
  bool ended = false;     // by itself
  bool all_ended = true;
  int status = 0;
  double wall_s = 0;
  std::int64_t peak_memory_bytes = 0;
};

void close_all_but(std::initializer_list<int> kept) {
  std::vector<int> open;
  if (::DIR* const folder = ::opendir("/proc/self/fd")) {
    while (const ::dirent* entry = ::readdir(folder))
      if (entry->d_name[0] != '.') open.push_back(int(std::strtol(entry->d_name, nullptr, 10)));
    ::closedir(folder);
  }
  for (const int file : open)
    if (file > STDERR_FILENO && std::find(kept.begin(), kept.end(), file) == kept.end())
      ::close(file);
}

// Starts the program and waits until it ends, or until the other end of `alive` closes. Then ends
// all remaining processes. The program has standard output and standard error.
guard_report guard(const program& what, int alive) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "railpass-guard");  // killing railpass by name spares the guard
  // Signals are for the guarded program, whose end the guard sees.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(number, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  guard_report report;
  const pid_t ourselves = ::getpid();
  const double begin_s = steady_clock_s();
  const pid_t child = ::fork();
  if (child < 0) {
    report.start_failure = errno;
    return report;
  }
  if (child == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != ourselves) ::_exit(127);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) ::signal(number, SIG_DFL);
    ::execve(what.arguments[0], what.arguments.data(), what.environment.data());
    ::_exit(127);
  }
  const file_descriptor handle(int(::syscall(SYS_pidfd_open, child, 0)));
  ::rusage usage{};
  for (bool wanted = true; wanted && !report.ended;) {
    std::array<::pollfd, 2> watched{{{alive, POLLIN, 0}, {handle.get(), POLLIN, 0}}};
    ::poll(watched.data(), watched.size(), handle.is_open() ? -1 : 10);
    report.ended = ::wait4(child, &report.status, WNOHANG, &usage) == child;
    wanted = watched[0].revents == 0;
  }
  report.wall_s = steady_clock_s() - begin_s;
  report.peak_memory_bytes = std::int64_t(usage.ru_maxrss) * 1024;
  report.all_ended = end_descendants(!report.ended);
  return report;
}

std::string last_line(const std::string& text) {
  std::size_t end = text.find_last_not_of(" \t\r\n-*=");
  if (end == std::string::npos) return {};
  ++end;
  const std::size_t begin = text.rfind('\n', end - 1) + 1;  // npos + 1 is 0
  return text.substr(begin, std::min<std::size_t>(end - begin, 200));
}

volatile std::sig_atomic_t last_signal = 0;

void note_signal(int number) { last_signal = number; }

}  // namespace

const volatile std::sig_atomic_t* watch_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // by nohup, for example
    action = {};
    action.sa_handler = note_signal;
    ::sigaction(number, &action, nullptr);
  }
  return &last_signal;
}

command_result run_command(const command_request& request, const volatile std::sig_atomic_t* stop) {
  output_pipe output(request.kept_bytes), errors(request.kept_bytes);
  pipe_ends alive, reports;  // nothing is ever written to `alive`
  const program what(request);
  const double begin_s = steady_clock_s();
  const pid_t ourselves = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail("the command cannot be started");
  if (child == 0) {
    ::setsid();
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 ||
        ::dup2(output.writer.get(), STDOUT_FILENO) < 0 ||
        ::dup2(errors.writer.get(), STDERR_FILENO) < 0)
      ::_exit(127);
    // Above all, close our end of `alive`, and the journal, which is free once we are gone.
    close_all_but({alive.reader.get(), reports.writer.get()});
    const guard_report report = guard(what, alive.reader.get());
    std::error_code ignored;
    if (::getppid() != ourselves && !request.folder.empty())
      std::filesystem::remove_all(request.folder, ignored);
    const bool told = ::write(reports.writer.get(), &report, sizeof report) == sizeof report;
    ::_exit(told ? 0 : 127);
  }
  output.writer.close();
  errors.writer.close();
  reports.writer.close();
  alive.reader.close();

  guard_report report;
  bool reported = false, guarded = true, timed_out = false, stopped = false;
  while (guarded) {
    const bool ending = timed_out || stopped;
    const double left_s = request.limit_s - (steady_clock_s() - begin_s);
    std::array<::pollfd, 3> watched{{{output.reader.get(), POLLIN, 0},
                                     {errors.reader.get(), POLLIN, 0},
                                     {reports.reader.get(), POLLIN, 0}}};
    ::poll(watched.data(), watched.size(),
           int(ending ? 200 : std::clamp(left_s, 0.0, 0.2) * 1e3) + 1);
    output.read();
    errors.read();
    if (watched[2].revents != 0) {  // the guard has ended, or was killed
      reported = uninterrupted([&] {
                   return ::read(reports.reader.get(), &report, sizeof report);
                 }) == sizeof report;
      guarded = false;
    } else if (!ending) {
      stopped = stop && *stop;
      timed_out = !stopped && left_s <= 0;
      if (timed_out || stopped) alive.writer.close();
    }
  }
  uninterrupted([&] { return ::waitpid(child, nullptr, 0); });
  output.read();
  errors.read();
  if (stopped) throw interrupted("interrupted");
  if (report.start_failure != 0) {
    errno = report.start_failure;
    fail("the command cannot be started");
  }
  command_result result;
  result.wall_s = report.wall_s;
  result.output = output.text().text();
  result.output_is_cut = output.text().is_cut();
  result.output_hash = output.text().hash();
  result.errors = errors.text().text();
  result.peak_memory_bytes = report.peak_memory_bytes;

  // A shell returns 128 or more if a signal ended its program.
  const int status = report.status;
  const int signal_number = WIFSIGNALED(status) ? WTERMSIG(status)
                            : WEXITSTATUS(status) > 128 && WEXITSTATUS(status) < 128 + NSIG
                                ? WEXITSTATUS(status) - 128
                                : 0;
  char number[32];
  std::snprintf(number, sizeof number, "%g", request.limit_s);
  if (!reported)
    result.failure = "the process that guards the command was killed";
  else if (!report.ended)
    result.failure = std::string("did not end within ") + number + " s";
  else if (signal_number > 0)
    result.failure = "ended by signal " + std::to_string(signal_number) + " (" +
                     ::strsignal(signal_number) + ")";
  else if (WEXITSTATUS(status) != 0)
    result.failure = "ended with status " + std::to_string(WEXITSTATUS(status));
  if (!report.all_ended)
    result.failure +=
        std::string(result.failure.empty() ? "" : ", and ") + "left processes that cannot be ended";
  if (!result.failure.empty())
    if (const std::string said = last_line(result.errors); !said.empty())
      result.failure += ": " + said;
  return result;
}

}  // namespace railpass::internal::tune
