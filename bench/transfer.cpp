// SPDX-License-Identifier: BSL-1.0
//
// Times messages between ranks, over railpass' rails or over MPI, as it is told while it runs:
//
//   mpirun -n 2 rails_transfer HOW FILE
//
// HOW is rails or mpi; or shared or apart: over rails, on four communicators in turn that share
// rails, or have their own.
//
// Every rank reads its commands from a file or FIFO of its own, FILE.0, FILE.1, ..., so that one
// that is told nothing blocks and takes no time from others (bench/rails runs many at once).
//
//   stream PATTERN BYTES COUNT WINDOW    COUNT messages, WINDOW of them under way
//   ping_pong BYTES COUNT MESSAGES PARTS COUNT round trips between the first pair of `pairs`, each
//                                        way BYTES in MESSAGES messages, one behind the other, each
//                                        of PARTS parts of memory (over MPI: one)
//   broadcast BYTES COUNT                COUNT broadcasts from rank 0, arms as railpass chooses
//   rates                                what the first sender's rails are thought to carry
//   opened                               what opening rails for the last communicator took
//
// Patterns: pairs (rank r to r + n/2), to_first (all to rank 0), ring (r to r + 1). Rank 0 prints
// one line of JSON per command; times are the receivers', the slowest one's.
#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/mpi.hpp"
#include "railpass/rails.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

using namespace railpass;

namespace {

using parts = std::vector<mpi::message_part>;

parts whole(std::vector<char>& memory) { return {{memory.data(), memory.size()}}; }

struct under_way {
  mpi::message message;
  MPI_Request request = MPI_REQUEST_NULL;
};

class carrier {
 public:
  explicit carrier(const std::string& how) : over_rails_(how != "mpi"), comms_{MPI_COMM_WORLD} {
    if (how == "shared" || how == "apart") comms_.resize(4);
    const char* const named = std::getenv("RAILPASS_RAILS");
    std::string names = named ? named : "";
    for (std::size_t k = 0; k < comms_.size(); ++k) {
      if (k > 0) MPI_Comm_dup(MPI_COMM_WORLD, &comms_[k]);
      const double began_s = steady_clock_s();
      // What is named otherwise is not shared.
      if (over_rails_) mpi::open_rails(comms_[k], {.rails = names, .strategy = {}});
      opened_s_ = steady_clock_s() - began_s;
      if (how == "apart") names += ",";
    }
  }
  void close() {
    for (MPI_Comm& comm : comms_) {
      if (over_rails_) mpi::close_rails(comm);
      if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    }
  }

  bool over_rails() const { return over_rails_; }
  /// What opening rails for the last communicator took here.
  double opened_s() const { return opened_s_; }

  /// The `nth` message.
  under_way send(const parts& from, int to, int nth) const {
    under_way u;
    if (over_rails_)
      u.message = mpi::isend(from, to, 0, of(nth));
    else
      MPI_Isend(from[0].data, int(from[0].bytes), MPI_CHAR, to, 0, of(nth), &u.request);
    return u;
  }
  under_way receive(const parts& to, int from, int nth) const {
    under_way u;
    if (over_rails_)
      u.message = mpi::irecv(to, from, 0, of(nth));
    else
      MPI_Irecv(to[0].data, int(to[0].bytes), MPI_CHAR, from, 0, of(nth), &u.request);
    return u;
  }
  void wait(under_way& u) const {
    if (over_rails_)
      u.message.wait();
    else
      MPI_Wait(&u.request, MPI_STATUS_IGNORE);
  }
  void wait_all(std::vector<under_way>& some) const {
    for (under_way& u : some) wait(u);
    some.clear();
  }

 private:
  MPI_Comm of(int nth) const { return comms_[std::size_t(nth) % comms_.size()]; }

  bool over_rails_;
  std::vector<MPI_Comm> comms_;
  double opened_s_ = 0;
};

struct partners {
  int to = -1;
  std::vector<int> from;
};

partners partners_of(const std::string& pattern, int rank, int n) {
  partners p;
  if (pattern == "pairs") {
    if (rank < n / 2) p.to = rank + n / 2;
    if (rank >= n / 2 && rank - n / 2 < n / 2) p.from = {rank - n / 2};
  } else if (pattern == "to_first") {
    if (rank > 0) p.to = 0;
    for (int r = 1; rank == 0 && r < n; ++r) p.from.push_back(r);
  } else if (pattern == "ring") {
    p.to = (rank + 1) % n;
    p.from = {(rank + n - 1) % n};
  } else {
    throw error("pattern '" + pattern + "': expected pairs, to_first or ring");
  }
  return p;
}

char content(std::size_t at) { return char(at * 2654435761u >> 11); }

void stream(const carrier& c, const std::string& pattern, std::size_t bytes, int count, int window,
            int rank, int n) {
  const partners p = partners_of(pattern, rank, n);
  std::vector<char> mine(p.to >= 0 ? bytes : 0);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = content(i);
  std::vector<std::vector<char>> theirs(p.from.size(), std::vector<char>(bytes));
  std::vector<double> ends_s;
  MPI_Barrier(MPI_COMM_WORLD);
  const double began_s = steady_clock_s();
  std::deque<std::vector<under_way>> some;
  const auto wait_for_first = [&] {
    c.wait_all(some.front());
    some.pop_front();
    ends_s.push_back(steady_clock_s());
  };
  for (int k = 0; k < count; ++k) {
    if (int(some.size()) == window) wait_for_first();
    some.emplace_back();
    for (std::size_t i = 0; i < p.from.size(); ++i)
      some.back().push_back(c.receive(whole(theirs[i]), p.from[i], k));
    if (p.to >= 0) some.back().push_back(c.send(whole(mine), p.to, k));
  }
  while (!some.empty()) wait_for_first();
  for (const std::vector<char>& t : theirs)
    for (std::size_t i = 0; i < t.size(); ++i)
      if (t[i] != content(i)) throw error("byte " + std::to_string(i) + " arrived wrong");
  double took_s = p.from.empty() ? 0 : ends_s.back() - began_s, slowest_s = 0;
  MPI_Reduce(&took_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  // The last receiver's ends, for who wants to see how the stream went.
  const int last = n - 1;
  if (rank == last && last != 0) MPI_Send(ends_s.data(), count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  if (last != 0)
    MPI_Recv(ends_s.data(), count, MPI_DOUBLE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::printf("{\"seconds\": %.9g, \"ends_s\": [", slowest_s);
  for (int k = 0; k < count; ++k) std::printf("%s%.6f", k ? ", " : "", ends_s[std::size_t(k)]);
  std::printf("]}\n");
}

void ping_pong(const carrier& c, std::size_t bytes, int count, int messages, int num_parts,
               int rank, int n) {
  if (num_parts > 1 && !c.over_rails()) throw error("over MPI a message is one part");
  // Parts are as far from each other as they are long.
  const auto pieces = std::size_t(messages) * std::size_t(num_parts);
  std::vector<char> memory(2 * bytes, 1);
  std::vector<parts> each{std::size_t(messages)};
  for (std::size_t k = 0; k < pieces; ++k) {
    const std::size_t begin = bytes * k / pieces, end = bytes * (k + 1) / pieces;
    each[k / std::size_t(num_parts)].push_back({memory.data() + 2 * begin, end - begin});
  }
  const int other = rank == 0 ? n / 2 : 0;
  std::vector<under_way> some;
  MPI_Barrier(MPI_COMM_WORLD);
  const double began_s = steady_clock_s();
  if (rank == 0 || rank == n / 2)
    for (int k = 0; k < 2 * count; ++k) {
      for (const parts& m : each)
        some.push_back((k % 2 == 0) == (rank == 0) ? c.send(m, other, k) : c.receive(m, other, k));
      c.wait_all(some);
    }
  if (rank == 0) std::printf("{\"seconds\": %.9g}\n", (steady_clock_s() - began_s) / (2 * count));
  MPI_Barrier(MPI_COMM_WORLD);
}

// Says the median time and the usual arm of the last half of the calls. Throws error if the ranks
// do not all take the same arms.
void broadcast(std::size_t bytes, int count, int rank) {
  std::vector<char> memory(bytes, char(rank));
  std::string arms;
  std::vector<double> times_s;
  std::map<std::string, int> late;
  for (int k = 0; k < count; ++k) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began_s = steady_clock_s();
    mpi::broadcast(memory.data(), int(bytes), MPI_CHAR, 0, MPI_COMM_WORLD);
    double took_s = steady_clock_s() - began_s;
    MPI_Allreduce(MPI_IN_PLACE, &took_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const std::string arm = mpi::last_arm(MPI_COMM_WORLD);
    arms += arm + ' ';
    if (k < count / 2) continue;
    times_s.push_back(took_s);
    ++late[arm];
  }
  long bounds[2] = {long(std::hash<std::string>{}(arms) >> 1), 0};
  bounds[1] = -bounds[0];
  MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  if (bounds[0] != -bounds[1]) throw error("not all ranks took the same arms");
  if (rank != 0) return;
  const auto usual =
      std::ranges::max_element(late, {}, [](const auto& known) { return known.second; });
  std::printf("{\"seconds\": %.9g, \"arm\": \"%s\", \"of_calls\": %.3f}\n", median(times_s),
              usual->first.c_str(), double(usual->second) / double(times_s.size()));
}

void rates(int rank, int n) {
  if (rank != 0) return;
  std::printf("{\"rails\": [");
  const char* comma = "";
  for (const mpi::rail_status& r : mpi::rails_to(n / 2, MPI_COMM_WORLD)) {
    std::printf("%s{\"name\": \"%s\", \"mbit_s\": %.1f, \"changes\": %d, \"bytes\": %lld}", comma,
                r.name.c_str(), r.bytes_per_s * 8e-6, r.changes, (long long)r.sent_bytes);
    comma = ", ";
  }
  std::printf("]}\n");
}

void obey(const carrier& c, std::istream& words, int rank, int n) {
  std::string verb, pattern = "pairs", bytes_text;
  words >> verb;
  if (verb == "rates") return rates(rank, n);
  if (verb == "opened") {
    if (rank == 0) std::printf("{\"seconds\": %.9g}\n", c.opened_s());
    return;
  }
  int count = 0, window = 1, messages = 1, num_parts = 1;
  if (verb == "stream") words >> pattern;
  words >> bytes_text >> count;
  if (verb == "stream") words >> window;
  if (verb == "ping_pong") words >> messages >> num_parts;
  const std::optional<std::int64_t> bytes = parse_bytes(bytes_text);
  if (!words || !bytes || *bytes > 1 << 30 || count < 1 || window < 1 || messages < 1 ||
      messages > 1024 || num_parts < 1 || num_parts > 1024)
    throw error(
        "a command was '" + verb +
        "': expected stream PATTERN BYTES COUNT WINDOW, ping_pong BYTES COUNT MESSAGES PARTS, "
        "broadcast BYTES COUNT, rates or opened");
  if (verb == "stream")
    stream(c, pattern, std::size_t(*bytes), count, window, rank, n);
  else if (verb == "broadcast")
    broadcast(std::size_t(*bytes), count, rank);
  else
    ping_pong(c, std::size_t(*bytes), count, messages, num_parts, rank, n);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, n = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const std::string how = argc == 3 ? argv[1] : "";
  if (n < 2 || (how != "rails" && how != "mpi" && how != "shared" && how != "apart")) {
    if (rank == 0)
      std::fprintf(stderr, "mpirun -n RANKS rails_transfer rails|mpi|shared|apart FILE\n");
    MPI_Finalize();
    return 2;
  }
  try {
    const std::string path = std::string(argv[2]) + "." + std::to_string(rank);
    std::ifstream commands(path);
    if (!commands) throw error(path + ": cannot be read");
    carrier c(how);
    for (std::string line; std::getline(commands, line);) {
      std::istringstream words(line);
      obey(c, words, rank, n);
      std::fflush(stdout);
    }
    c.close();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rails_transfer: rank %d: %s\n", rank, e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
