// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/command.hpp"

#include "railpass/base/clock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <poll.h>
#include <set>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" char** environ;

namespace railpass::tune {

namespace {

constexpr double grace_s = 2;     // between asking processes to end and ending them
constexpr double give_up_s = 10;  // a process in the kernel's hands may not even be killed
constexpr std::size_t kept_bytes = std::size_t{4} << 20;  // of the beginning and of the end

[[noreturn]] void fail(const std::string& what) { throw error(what + ": " + std::strerror(errno)); }

// The first and the last part of what may be endless.
class bounded_text {
 public:
  void append(const char* data, std::size_t size) {
    const std::size_t to_head = std::min(size, kept_bytes - head_.size());
    head_.append(data, to_head);
    tail_.append(data + to_head, size - to_head);
    if (tail_.size() > 2 * kept_bytes) tail_.erase(0, tail_.size() - kept_bytes);
  }
  std::string text() const {
    return head_ + (tail_.size() > kept_bytes ? tail_.substr(tail_.size() - kept_bytes) : tail_);
  }

 private:
  std::string head_, tail_;
};

// The reading end of a pipe to a command.
class output_pipe {
 public:
  output_pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) fail("no pipe for the command's output");
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  output_pipe(const output_pipe&) = delete;
  output_pipe& operator=(const output_pipe&) = delete;
  ~output_pipe() {
    close_writer();
    close_reader();
  }
  int reader() const { return ends_[0]; }  // -1 after the last byte
  int writer() const { return ends_[1]; }
  void close_writer() { close(ends_[1]); }
  void read() {
    std::array<char, 1 << 16> part;
    // A bounded amount at a time: the clock must be looked at, too.
    for (int i = 0; i < 64 && ends_[0] >= 0; ++i) {
      const ::ssize_t n = ::read(ends_[0], part.data(), part.size());
      if (n > 0) text_.append(part.data(), std::size_t(n));
      if (n < 0) return;
      if (n == 0) close_reader();
    }
  }
  std::string text() const { return text_.text(); }

 private:
  void close_reader() { close(ends_[0]); }
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
  bounded_text text_;
};

// Process -> its parent, of all there are now.
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

// What descends from this process, but not from its children in `others`; dead ones that nobody
// has waited for, too.
std::vector<pid_t> descendants(const std::set<pid_t>& others) {
  const auto parent = parents();
  std::vector<pid_t> found;
  for (const auto& [pid, first] : parent) {
    pid_t at = pid, above = first;
    for (int depth = 0; depth < 1000 && above > 1 && above != ::getpid(); ++depth) {
      at = above;
      const auto it = parent.find(at);
      above = it == parent.end() ? 0 : it->second;
    }
    if (above == ::getpid() && others.count(at) == 0) found.push_back(pid);
  }
  return found;
}

std::set<pid_t> children_now() {
  std::set<pid_t> found;
  for (const auto& [pid, parent] : parents())
    if (parent == ::getpid()) found.insert(pid);
  return found;
}

void pause_s(double seconds) { ::poll(nullptr, 0, int(seconds * 1e3)); }

// Ends everything that descends from us, politely first if asked. Says whether nothing is left.
bool end_descendants(const std::set<pid_t>& others, bool politely) {
  const double begin_s = steady_clock_s();
  bool asked = !politely;
  for (;;) {
    const double waited_s = steady_clock_s() - begin_s;
    std::vector<pid_t> left;
    for (const pid_t pid : descendants(others)) {
      // Orphans are our children now; those of others are waited for by their parents.
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
    action.sa_handler = note_signal;
    ::sigaction(number, &action, nullptr);
  }
  return &last_signal;
}

command_result run_command(const command_request& request, const volatile std::sig_atomic_t* stop) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::set<pid_t> others = children_now();
  output_pipe output, errors;

  // All that allocates happens before the fork.
  std::vector<std::string> variables;
  for (char** v = environ; *v; ++v) {
    const std::string_view assignment = *v;
    const std::string_view name = assignment.substr(0, assignment.find('='));
    if (std::none_of(request.environment.begin(), request.environment.end(),
                     [&](const auto& added) { return added.first == name; }))
      variables.emplace_back(assignment);
  }
  for (const auto& [name, value] : request.environment) variables.push_back(name + '=' + value);
  std::vector<char*> environment;
  for (std::string& v : variables) environment.push_back(v.data());
  environment.push_back(nullptr);
  std::string shell = "/bin/sh", option = "-c", line = request.line;
  std::array<char*, 4> arguments{shell.data(), option.data(), line.data(), nullptr};

  const pid_t ourselves = ::getpid();
  const double begin_s = steady_clock_s();
  const pid_t child = ::fork();
  if (child < 0) fail("the command cannot be started");
  if (child == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (::getppid() != ourselves || nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 ||
        ::dup2(output.writer(), STDOUT_FILENO) < 0 || ::dup2(errors.writer(), STDERR_FILENO) < 0)
      ::_exit(127);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) ::signal(number, SIG_DFL);
    ::execve(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
  }
  output.close_writer();
  errors.close_writer();
  const int handle = int(::syscall(SYS_pidfd_open, child, 0));

  int status = 0;
  ::rusage usage{};
  bool ended = false, timed_out = false, stopped = false;
  while (!ended && !timed_out && !stopped) {
    const double left_s = request.limit_s - (steady_clock_s() - begin_s);
    std::array<::pollfd, 3> watched{
        {{output.reader(), POLLIN, 0}, {errors.reader(), POLLIN, 0}, {handle, POLLIN, 0}}};
    const double tick_s = handle < 0 ? 0.01 : 0.2;
    ::poll(watched.data(), watched.size(), int(std::clamp(left_s, 0.0, tick_s) * 1e3) + 1);
    output.read();
    errors.read();
    ended = ::wait4(child, &status, WNOHANG, &usage) == child;
    stopped = !ended && stop && *stop;
    timed_out = !ended && !stopped && left_s <= 0;
  }
  command_result result;
  result.wall_s = steady_clock_s() - begin_s;
  if (handle >= 0) ::close(handle);
  const bool all_ended = end_descendants(others, !ended);
  output.read();
  errors.read();
  if (stopped) throw interrupted("interrupted");
  result.output = output.text();
  result.errors = errors.text();
  result.peak_memory_bytes = std::int64_t(usage.ru_maxrss) * 1024;

  // A shell says 128 and more for a signal that ended what it ran.
  const int signal_number = WIFSIGNALED(status) ? WTERMSIG(status)
                            : WEXITSTATUS(status) > 128 && WEXITSTATUS(status) < 128 + NSIG
                                ? WEXITSTATUS(status) - 128
                                : 0;
  char number[32];
  std::snprintf(number, sizeof number, "%g", request.limit_s);
  if (timed_out)
    result.failure = std::string("it did not end within ") + number + " s";
  else if (signal_number > 0)
    result.failure = "it was ended by signal " + std::to_string(signal_number) + " (" +
                     ::strsignal(signal_number) + ")";
  else if (WEXITSTATUS(status) != 0)
    result.failure = "it ended with status " + std::to_string(WEXITSTATUS(status));
  if (!all_ended)
    result.failure += std::string(result.failure.empty() ? "it" : ", and") +
                      " left processes that cannot be ended";
  if (!result.failure.empty())
    if (const std::string said = last_line(result.errors); !said.empty())
      result.failure += ": " + said;
  return result;
}

}  // namespace railpass::tune
