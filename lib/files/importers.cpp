// SPDX-License-Identifier: BSL-1.0
//
// Tables as other benchmarks print them.
#include "lib/files/files.hpp"
#include "lib/files/line_reader.hpp"

namespace railpass::internal::files {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t'; }

// The words of a line; a word ends at `gap` blanks in a row.
std::vector<std::string_view> words(std::string_view line, std::size_t gap = 1) {
  std::vector<std::string_view> result;
  std::size_t i = 0;
  while (i < line.size()) {
    while (i < line.size() && is_space(line[i])) ++i;
    std::size_t end = i, blanks = 0, j = i;
    for (; j < line.size() && blanks < gap; ++j) {
      blanks = is_space(line[j]) ? blanks + 1 : 0;
      if (blanks == 0) end = j + 1;
    }
    if (end > i) result.push_back(line.substr(i, end - i));
    i = j;
  }
  return result;
}

// The column whose name is the first of `names` that exists; -1: none.
int column(const std::vector<std::string_view>& header,
           std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (std::size_t i = 0; i < header.size(); ++i)
      if (header[i] == name) return int(i);
  return -1;
}

collective_time imported_time(std::string_view collective, const import_facts& facts, int num_ranks,
                              std::int64_t bytes, double seconds) {
  return {.collective = std::string(collective),
          .arm = facts.arm,
          .num_ranks = num_ranks,
          .ranks_per_node = facts.ranks_per_node,
          .bytes = bytes,
          .median_s = seconds};
}

}  // namespace

measurements parse_osu(std::string_view text, const std::string& name, const import_facts& facts) {
  enum class test { none, latency, bandwidth, broadcast, all_reduce } kind = test::none;
  measurements result;
  std::vector<std::string_view> header;
  int value_column = -1;
  bool any_row = false;
  line_reader in(text, name);
  while (in.next()) {
    const std::string_view line = in.line();
    if (const std::size_t title = line.find("OSU MPI");
        line.starts_with('#') && title != std::string_view::npos) {
      const std::size_t end = line.find(" Test", title);
      const std::size_t begin = line.find(' ', title + 4);  // after MPI or MPI-CUDA
      if (end == std::string_view::npos || begin >= end)
        in.fail("expected '# OSU MPI ... Test', the title of an OSU micro-benchmark");
      const std::string_view what = line.substr(begin + 1, end - begin - 1);
      kind = what == "Latency"             ? test::latency
             : what == "Bandwidth"         ? test::bandwidth
             : what == "Broadcast Latency" ? test::broadcast
             : what == "Allreduce Latency" ? test::all_reduce
                                           : test::none;
      if (kind == test::none)
        in.fail("the test '" + std::string(what.substr(0, 60)) +
                "' is of no use here; expected Latency, Bandwidth, Broadcast Latency or "
                "Allreduce Latency");
      if (kind != test::latency && kind != test::bandwidth && facts.num_ranks < 1)
        in.fail("this output does not say how many ranks took part: give their number");
      header.clear();
    } else if (line.starts_with("# Size")) {
      header = words(line, 2);
      value_column = kind == test::bandwidth ? column(header, {"Bandwidth (MB/s)"})
                                             : column(header, {"Max Latency(us)", "Avg Latency(us)",
                                                               "Latency (us)", "Latency(us)"});
      if (value_column < 1) in.fail("expected a column with the latency or the bandwidth");
    } else if (const auto row = words(line); !row.empty() && row[0][0] != '#') {
      if (kind == test::none || header.empty())
        in.fail("expected a title and a '# Size' line before the first row");
      if (row.size() != header.size())
        in.fail("expected " + std::to_string(header.size()) + " columns, found " +
                std::to_string(row.size()));
      const std::int64_t bytes = in.bytes(row[0]);
      const double value = in.number(row[std::size_t(value_column)]);
      any_row = true;
      if (value == 0) {
        if (bytes > 0) in.fail("expected a number > 0, found 0");
        continue;  // nothing to send took no time that the clock could see
      }
      switch (kind) {
        case test::latency:
          result.links.push_back({.link = facts.link, .bytes = bytes, .one_way_s = value * 1e-6});
          break;
        case test::bandwidth:
          result.streams.push_back(
              {.link = facts.link, .bytes = bytes, .busy_s = double(bytes) / (value * 1e6)});
          break;
        default:
          result.collectives.push_back(
              imported_time(kind == test::broadcast ? "broadcast" : "all_reduce", facts,
                            facts.num_ranks, bytes, value * 1e-6));
      }
    }
  }
  if (!any_row) throw error(name + ": expected the output of an OSU micro-benchmark, found no row");
  return result;
}

measurements parse_imb(std::string_view text, const std::string& name, const import_facts& facts) {
  enum class test { none, ping_pong, broadcast, all_reduce } kind = test::none;
  measurements result;
  std::vector<std::string_view> header;
  int time_column = -1, num_ranks = 0;
  bool any_row = false;
  line_reader in(text, name);
  while (in.next()) {
    const auto row = words(in.line());
    if (row.empty()) continue;
    if (row.size() >= 3 && row[0] == "#" && row[1] == "Benchmarking") {
      kind = row[2] == "PingPong"    ? test::ping_pong
             : row[2] == "Bcast"     ? test::broadcast
             : row[2] == "Allreduce" ? test::all_reduce
                                     : test::none;
      header.clear();
      num_ranks = 0;
    } else if (row.size() >= 4 && row[0] == "#" && row[1] == "#processes" && row[2] == "=") {
      const std::int64_t n = in.bytes(row[3]);
      if (n < 1 || n > largest_count) in.fail("expected a number of processes");
      num_ranks = int(n);
    } else if (row[0] == "#bytes") {
      header = row;
      time_column = column(header, {"t_max[usec]", "t[usec]"});
      if (kind != test::none && time_column < 0)
        in.fail("expected a column t_max[usec] or t[usec]");
    } else if (row[0][0] != '#' && kind != test::none) {
      if (in.line().find("time-out") != std::string_view::npos ||
          in.line().find("out-of-mem") != std::string_view::npos)
        continue;
      if (header.empty() || num_ranks == 0)
        in.fail("expected '# #processes = N' and a '#bytes' line before the first row");
      if (row.size() != header.size())
        in.fail("expected " + std::to_string(header.size()) + " columns, found " +
                std::to_string(row.size()));
      const std::int64_t bytes = in.bytes(row[0]);
      const double seconds = in.number(row[std::size_t(time_column)]) * 1e-6;
      any_row = true;
      if (seconds == 0) {
        if (bytes > 0) in.fail("expected a number > 0, found 0");
        continue;
      }
      if (kind == test::ping_pong)
        result.links.push_back({.link = facts.link, .bytes = bytes, .one_way_s = seconds});
      else
        result.collectives.push_back(
            imported_time(kind == test::broadcast ? "broadcast" : "all_reduce", facts, num_ranks,
                          bytes, seconds));
    }
  }
  if (!any_row)
    throw error(name + ": expected a PingPong, Bcast or Allreduce table of IMB-MPI1, found no row");
  return result;
}

measurements parse_netpipe(std::string_view text, const std::string& name,
                           const import_facts& facts) {
  measurements result;
  line_reader in(text, name);
  while (in.next()) {
    const auto row = words(in.line());
    // "  3:   4 bytes  2513 times -->  1.02 Mbps in  29.73 usec" on the terminal; bytes, Mbps and
    // seconds in the file.
    const bool terminal = row.size() >= 11 && row[2] == "bytes" && row[5] == "-->";
    const bool file = row.size() == 3 && row[0].find_first_not_of("0123456789") == row[0].npos;
    if (!terminal && !file) continue;
    const std::int64_t bytes = in.bytes(row[terminal ? 1 : 0]);
    const double seconds = terminal ? in.number(row[9]) * 1e-6 : in.number(row[2]);
    if (seconds == 0) in.fail("expected a time > 0, found 0");
    result.links.push_back({.link = facts.link, .bytes = bytes, .one_way_s = seconds});
  }
  if (result.links.empty()) throw error(name + ": expected the output of NetPIPE, found no row");
  return result;
}

}  // namespace railpass::internal::files
