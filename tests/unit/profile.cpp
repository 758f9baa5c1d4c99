// SPDX-License-Identifier: BSL-1.0
//
// The JSON files: whatever is written is read back equal, whatever else is read is refused with a
// sentence.
#include "lib/files/files.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_directory.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;

namespace {

const fingerprint here{.num_hosts = 8,
                       .cores_per_host = 2,
                       .cpu_model = "Example CPU \"quoted\" @ 2 GHz",
                       .mpi_library = "Open MPI v4.1.4"};

profile example_profile() {
  profile p;
  p.machine_id = here;
  p.sampled_at = "2026-11-21T04:00:00Z";
  p.machine.same_node.pieces = {{0, 3.1e-7, 1e-7, 2e-7, 1.5e-7, 1e-10},
                                {4096, 1.0 / 3.0, 1e-7, 2e-7, 0, 1e-11, 3e-11, 2e-12, 1e-12}};
  p.machine.across_nodes = hockney_link(12e-6, 4e-8);
  p.machine.across_nodes.exchange.pieces = {{0, 12e-6, 5e-8}, {65536, -1e-4, 7e-8}};
  p.machine.across_nodes.flow.pieces = {{0, 15e-6, 6e-8}};
  p.machine.across_nodes.crowd.pieces = {{0, 16e-6, 7e-8}};
  p.machine.reduce = {.alpha_s = 1e-7, .s_per_byte = 2e-10};
  p.machine.shared = {.seen_s = 1.5e-7,
                      .near_seen_s = 3e-8,
                      .copy = {.alpha_s = 1e-8, .s_per_byte = 1e-10},
                      .single_copy = {.alpha_s = 9e-7, .s_per_byte = 2e-10},
                      .measured = true};
  p.corrections = {{"broadcast",
                    "binomial",
                    1.17,
                    {{{10, 3, 0, 1, 13}, -0.25}, {{12, 3, 0, 1, 13}, 1.0 / 3.0, 0.4, 0, 2e-5}}}};
  p.measured = {{"broadcast", "native", 8, 1, 65536, 19.1e-3}};
  return p;
}

sample_set example_samples() {
  sample_set s{.machine_id = here, .sampled_at = "", .measured = {}};
  s.measured.links = {{.link = link_class::same_node, .bytes = 8, .one_way_s = 4e-7},
                      {.link = link_class::across_nodes,
                       .bytes = 1 << 20,
                       .one_way_s = 44e-3,
                       .spread_s = 1e-4,
                       .rendezvous_s = 45e-3,
                       .send_overhead_s = 1e-6,
                       .receive_overhead_s = 0,
                       .exchange_s = 80e-3,
                       .flow_s = 41e-3,
                       .crowd_s = 43e-3}};
  s.measured.streams = {{link_class::across_nodes, 8, 2e-6}};
  s.measured.eager_limits_bytes = {{link_class::across_nodes, 65536}};
  s.measured.copies = {{0, 0}, {4096, 3e-7}};
  s.measured.reductions = {{4096, 9e-7}};
  s.measured.handovers = {{8, 3e-7}, {8192, 2e-6}};
  s.measured.near_handovers = {{8, 1e-7}};
  s.measured.single_copies = {{65536, 9e-6}};
  return s;
}

bench_results example_bench() {
  bench_results b{.machine_id = here,
                  .measured_at = "2026-11-21T04:00:00Z",
                  .num_ranks = 8,
                  .ranks_per_node = 1,
                  .ranks_per_cache = 4,
                  .notes = {{"network", "200 Mbit"}},
                  .results = {},
                  .learning = {{.collective = "broadcast",
                                .bytes = 65536,
                                .first_call = 101,
                                .calls = 900,
                                .total_s = 0.5,
                                .native_total_s = 0.6,
                                .ratio_to_native = 0.83,
                                .native_low = 0.82,
                                .native_high = 0.84,
                                .best_arm = "pipeline",
                                .best_total_s = 0.4,
                                .ratio_to_best = 1.24,
                                .worst_call_s = 0.02,
                                .best_median_s = 0.004,
                                .best_worst_call_s = 0.007}},
                  .own_algorithms = {{.collective = "broadcast", .name = "chain", .number = 2}}};
  b.results = {{.collective = "broadcast",
                .bytes = 65536,
                .arm = "native",
                .median_s = 0.0191,
                .p90_s = 0.02,
                .runs = 40,
                .ratio_to_native = 1},
               {.collective = "all_reduce",
                .bytes = std::int64_t{1} << 40,
                .arm = "ring",
                .median_s = 1,
                .p90_s = 2,
                .runs = 1,
                .ratio_to_best = 1.0,
                .best_low = 0.9,
                .best_high = 1.1,
                .launch_medians_s = {1, 0.5, 2},
                .launch_ratios = {0.9, 0.8, 1.1}}};
  return b;
}

select::statistics_dump example_statistics() {
  select::statistics_dump d{.machine_id = here,
                            .written_at = "2026-11-21T04:00:00Z",
                            .merges = 31,
                            .merge_cost_s = 1e-3,
                            .contexts = {},
                            .rails = {{.rails = "eth0,eth1",
                                       .rail = "eth0 (10.1.0.1)",
                                       .sent_bytes = 1 << 30,
                                       .share = 0.8,
                                       .bytes_per_s = 5e7,
                                       .changes = 2,
                                       .prediction_error = 0.03,
                                       .backlog_s = 2e-3},
                                      {.rails = "eth0,eth1", .rail = "eth1"}}};
  select::context_statistics c{.communicator = "MPI_COMM_WORLD",
                               .collective = "broadcast",
                               .num_ranks = 8,
                               .ranks_per_node = 1,
                               .from_bytes = 65536,
                               .to_bytes = 131071,
                               .first_bytes = 100000,
                               .mean_bytes = 98765.5,
                               .operation = "none",
                               .policy = "learned",
                               .current_arm = "binomial",
                               .reason = "fastest of 3 arms measured",
                               .calls = 100,
                               .time_s = 0.3,
                               .exploration_cost_s = 0.01,
                               .checked_calls = 7,
                               .checks_s = 2e-3,
                               .skew_s = 1e-3,
                               .skew_p90_s = 4e-3,
                               .core_given_share = 0.75,
                               .cost_share = 0.5,
                               .overlapped_share = 0.25,
                               .own_s = 2e-7,
                               .arms = {}};
  c.arms = {{.arm = "native",
             .calls = 40,
             .times = {.samples = 20, .mean_s = 5e-3, .spread = 0.1},
             .time_s = 0.2,
             .probability = 0.25},
            {.arm = "binomial",
             .calls = 60,
             .times = {.samples = 30,
                       .mean_s = 2e-3,
                       .spread = 0.05,
                       .quantiles = {1.8e-3, 1.9e-3, 2.4e-3}},
             .time_s = 0.1,
             .prior = select::time_estimate{1e-3, 0.3},
             .posterior = select::time_estimate{2e-3, 0.02},
             .probability = 0.75,
             .exploration_cost_s = -1e-3,
             .pairs = select::pair_record{.pairs = 15, .wins = 14, .gain = 0.3, .deviation = 0.02}},
            {.arm = "linear",
             .calls = 1,
             .times = {.samples = 1, .mean_s = 3e-3, .spread = 0},
             .time_s = 3e-3,
             .pairs = select::pair_record{.pairs = 1, .wins = 0, .gain = -0.2}}};
  d.contexts = {c};
  c.rails = "eth0,eth1";
  c.baseline = "isend_irecv_at_once_packed";
  d.contexts.push_back(c);
  return d;
}

// Every format as (text, parser that writes again what it read).
struct format_case {
  std::string name;
  std::string text;
  std::function<std::string(std::string_view)> again;
};
std::vector<format_case> all_formats() {
  using namespace files;
  // What an earlier railpass wrote.
  const auto kept = [](const std::string& kind) {
    return read_text(RAILPASS_FUZZ_CORPUS "/" + kind + "/example.json");
  };
  return {
      {"profile", to_json(example_profile()),
       [](std::string_view t) { return to_json(parse_profile(t, "f")); }},
      {"samples", to_json(example_samples()),
       [](std::string_view t) { return to_json(parse_samples(t, "f")); }},
      {"bench", to_json(example_bench()),
       [](std::string_view t) { return to_json(parse_bench(t, "f")); }},
      {"statistics", to_json(example_statistics()),
       [](std::string_view t) { return to_json(parse_statistics(t, "f")); }},
      {"kept profile", kept("profile"),
       [](std::string_view t) { return to_json(parse_profile(t, "f")); }},
      {"kept samples", kept("samples"),
       [](std::string_view t) { return to_json(parse_samples(t, "f")); }},
      {"kept rails", kept("rails"),
       [](std::string_view t) { return to_json(parse_rails(t, "f")); }},
      {"kept knowledge", kept("knowledge"),
       [](std::string_view t) { return to_json(parse_knowledge(t, "f")); }},
  };
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    return e.what();
  }
  return "no error";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("what is written is read back equal, to the last bit but of what predictions add up") {
  for (const format_case& f : all_formats()) {
    CAPTURE(f.name);
    CHECK(f.again(f.text) == f.text);
  }
  const profile p = files::parse_profile(files::to_json(example_profile()), "f");
  CHECK(p.machine_id == here);
  CHECK(p.machine.same_node.pieces[1].latency_s == 1.0 / 3.0);
  CHECK(p.machine.same_node.sending_s(5000) == 1e-7 + 5000 * 2e-12);
  CHECK(p.machine.same_node.receiving_s(5000) == 2e-7 + 5000 * 1e-12);
  CHECK(std::isinf(p.machine.across_nodes.eager_limit_bytes));
  CHECK(p.machine.across_nodes.exchange_s(1 << 20) == -1e-4 + (1 << 20) * 7e-8);
  CHECK(p.machine.across_nodes.flow_s(1000) == 15e-6 + 1000 * 6e-8);
  CHECK(p.machine.across_nodes.crowd_s(1000) == 16e-6 + 1000 * 7e-8);
  CHECK(p.machine.same_node.flow_s(1000) == 0);
  CHECK(p.machine.across_nodes.shift_s(4096) == p.machine.across_nodes.one_way_s(4096));
  CHECK(p.machine.shared.measured);
  CHECK(p.machine.shared.seen_s == 1.5e-7);
  CHECK(p.machine.shared.near_seen_s == 3e-8);
  CHECK(p.machine.shared.copy.s_per_byte == 1e-10);
  CHECK(p.machine.shared.single_copy.alpha_s == 9e-7);
  CHECK(p.correction("broadcast", "binomial")->factor == 1.17);
  CHECK(p.correction("broadcast", "binomial")->points.at(0).features.segments == 1);
  CHECK(p.correction("broadcast", "binomial")->points.at(0).weight == -0.25);
  CHECK(p.correction("broadcast", "binomial")->points.at(0).noise == 0);
  CHECK(p.correction("broadcast", "binomial")->points.at(1).noise == 0.4);
  CHECK(p.correction("broadcast", "binomial")->points.at(1).weight == 0.333333);
  CHECK(p.correction("broadcast", "binomial")->points.at(1).seconds == 2e-5);
  CHECK(p.correction("all_reduce", "binomial") == nullptr);
  CHECK(p.measured[0].median_s == 19.1e-3);
  const sample_set s = files::parse_samples(files::to_json(example_samples()), "f");
  CHECK_FALSE(s.measured.links[0].send_overhead_s);
  CHECK(s.measured.links[1].receive_overhead_s == 0.0);
  CHECK(s.measured.streams[0].busy_s == 2e-6);
  CHECK(s.measured.links[1].rendezvous_s == 45e-3);
  CHECK(s.measured.links[1].exchange_s == 80e-3);
  CHECK_FALSE(s.measured.links[1].shift_s);
  CHECK(s.measured.links[1].flow_s == 41e-3);
  CHECK(s.measured.links[1].crowd_s == 43e-3);
  CHECK(s.measured.eager_limits_bytes.at(link_class::across_nodes) == 65536);
  CHECK(s.measured.handovers.at(1).seconds == 2e-6);
  CHECK(s.measured.near_handovers.at(0).seconds == 1e-7);
  CHECK(s.measured.single_copies.at(0).bytes == 65536);
  const bench_results b = files::parse_bench(files::to_json(example_bench()), "f");
  CHECK(b.ranks_per_cache == 4);
  CHECK(b.results[1].bytes == std::int64_t{1} << 40);
  CHECK_FALSE(b.results[1].ratio_to_native);
  CHECK_FALSE(b.results[0].best_low);
  CHECK(b.results[1].best_high == 1.1);
  CHECK(b.results[0].launch_medians_s.empty());
  CHECK(b.results[1].launch_ratios == std::vector<double>{0.9, 0.8, 1.1});
  const auto d = files::parse_statistics(files::to_json(example_statistics()), "f");
  CHECK(d.contexts[0].arms[1].posterior->mean_s == 2e-3);
  CHECK_FALSE(d.contexts[0].arms[0].prior);
  CHECK(d.contexts[0].arms[0].times.quantiles == select::time_quantiles{});
  CHECK(d.contexts[0].arms[1].times.quantiles == select::time_quantiles{1.8e-3, 1.9e-3, 2.4e-3});
  CHECK(d.contexts[0].skew_p90_s == 4e-3);
  CHECK(d.contexts[0].core_given_share == 0.75);
  CHECK(d.contexts[0].cost_share == 0.5);
  CHECK(d.contexts[0].checked_calls == 7);
  CHECK(d.contexts[0].checks_s == 2e-3);
  CHECK(d.contexts[0].overlapped_share == 0.25);
  CHECK(d.contexts[0].mean_bytes == 98765.5);
  CHECK(d.contexts[0].own_s == 2e-7);
  CHECK_FALSE(d.contexts[0].arms[0].pairs);
  CHECK(d.contexts[0].arms[1].pairs->wins == 14);
  CHECK(d.contexts[0].arms[1].pairs->deviation == 0.02);
  CHECK(d.contexts[0].arms[2].pairs->gain == -0.2);
  CHECK_FALSE(d.contexts[0].arms[2].pairs->deviation);
}

TEST_CASE("what an earlier railpass measured has nothing of shared memory") {
  sample_set s = example_samples();
  s.measured.handovers.clear();
  s.measured.near_handovers.clear();
  s.measured.single_copies.clear();
  const std::string text = files::to_json(s);
  CHECK(text.find("handovers") == std::string::npos);
  CHECK(files::parse_samples(text, "f").measured.handovers.empty());
  profile p = example_profile();
  p.machine.shared = {};
  CHECK_FALSE(files::parse_profile(files::to_json(p), "f").machine.shared.measured);
}

TEST_CASE("no slower means by no more than 2 %, 100 ns or three standard errors") {
  CHECK(no_slower(0.99, 1.019, 1e-3));
  CHECK_FALSE(no_slower(1.015, 1.021, 1e-3));
  CHECK(no_slower(1.05, 1.09, 1e-6));  // 100 ns of a microsecond are 10 %
  CHECK_FALSE(no_slower(1.05, 1.11, 1e-6));
  CHECK(no_slower(0.5, 1.3, 1e-3));        // nobody knows
  CHECK_FALSE(no_slower(1.1, 1.3, 1e-3));  // somewhat slower, however little is known
}

TEST_CASE("a file that ends too early is refused wherever it ends") {
  for (const format_case& f : all_formats()) {
    const std::size_t last = f.text.rfind('}');
    for (std::size_t length = 0; length <= last; ++length) {
      CAPTURE(f.name, length);
      CHECK_THROWS_AS(f.again(std::string_view(f.text).substr(0, length)), error);
    }
  }
}

TEST_CASE("a damaged file is refused or read as something sound, and nothing else happens") {
  for (const format_case& f : all_formats())
    for (unsigned seed = 0; seed < 3000; ++seed) {
      CAPTURE(f.name, seed);
      std::mt19937_64 random(seed);
      std::string text = f.text;
      for (unsigned i = 0, n = 1 + unsigned(random() % 3); i < n; ++i) {
        const std::size_t at = random() % text.size();
        switch (random() % 4) {
          case 0:
            text[at] = char(random());
            break;
          case 1:
            text.erase(at, 1 + random() % 20);
            break;
          case 2:
            text.insert(at, 1, "-0e.,\"[]{}9:"[random() % 12]);
            break;
          default:
            text.insert(at, text.substr(random() % text.size(), random() % 30));
        }
      }
      try {
        const std::string read = f.again(text);
        CHECK(f.again(read) == read);
      } catch (const error& e) {
        CHECK(std::string(e.what()).rfind("f:", 0) == 0);
      }
    }
}

TEST_CASE("errors name the file, the place and what was expected") {
  const std::string text = files::to_json(example_profile());
  const auto message = [](const std::string& changed) {
    return message_of([&] { files::parse_profile(changed, "p.json"); });
  };
  CHECK(message(replaced(text, "\"latency_s\": 0.3333333333333333", "\"latency_s\": -1")) ==
        "p.json: machine.same_node.pieces[1].latency_s: expected a number >= 0, found -1");
  CHECK(message(replaced(text, "\"factor\": 1.17", "\"factor\": 0")) ==
        "p.json: corrections[0].factor: expected a number > 0, found 0");
  CHECK(message(replaced(text, "\"factor\": 1.17", "\"factor\": \"fast\"")) ==
        "p.json: corrections[0].factor: expected a number, found \"fast\"");
  CHECK(message(replaced(text, "\"factor\": 1.17", "\"factor\": NaN")).rfind("p.json: line ", 0) ==
        0);
  CHECK(message(replaced(text, "\"factor\": 1.17", "\"factor\": 1e999"))
            .find("a number is too large") != std::string::npos);
  CHECK(message(replaced(text, "\"bytes\": 65536", "\"bytes\": 99999999999999999999"))
            .find("measured[0].bytes: expected an integer from 0 to") != std::string::npos);
  CHECK(message(replaced(text, "\"bytes\": 65536", "\"bytes\": -1")).find("found -1") !=
        std::string::npos);
  CHECK(message(replaced(text, "\"bytes\": 65536", "\"bytes\": 1.5")).find("found 1.5") !=
        std::string::npos);
  CHECK(message(replaced(text, "\"from_bytes\": 4096", "\"from_bytes\": 0"))
            .find("growing from_bytes") != std::string::npos);
  const std::string point = R"("10 3 0 1 13 0 0 0 -0.25 0 0 0")";
  CHECK(message(replaced(text, point, "7")) ==
        "p.json: corrections[0].points[0]: expected a text, found 7");
  for (const char* const other :
       {R"("10 3 0 1 13 0 0 0 -0.25 0 0")", R"("10 3 0 1 13 0 0 0 -0.25 0 0 0 0")", R"("")",
        R"("10 3 0 1 13 0 0 0 -0.25 0 0 fast")", R"("10  3 0 1 13 0 0 0 -0.25 0 0 0")",
        R"("10,3,0,1,13,0,0,0,-0.25,0,0,0")"})
    CHECK(message(replaced(text, point, other)) ==
          std::string("p.json: corrections[0].points[0]: expected 12 numbers, found ") + other);
  for (const char* const other :
       {R"("-10 3 0 1 13 0 0 0 -0.25 0 0 0")", R"("10 3 0 1 13 0 0 0 -1e7 0 0 0")",
        R"("10 3 0 1 13 0 0 0 nan 0 0 0")", R"("10 3 0 1 13 0 0 0 0 0 inf 0")",
        R"("10 3 0 1 13 0 0 0 0 0 0 -1e-5")"})
    CHECK(message(replaced(text, point, other))
              .starts_with("p.json: corrections[0].points[0]: expected numbers up to 1000000"));
  CHECK(message(replaced(text, "\"factor\"", "\"faktor\"")) ==
        "p.json: corrections[0]: there is no field 'faktor' in this format");
  CHECK(message(replaced(text, "\"version\": 5", "\"version\": 6")) ==
        "p.json: its version 6 is newer than this railpass reads (5)");
  CHECK(message(replaced(text, "\"version\": 5", "\"version\": 4")) ==
        "p.json: the version of this profile is no longer supported: expected version 5; run "
        "`railpass fit` again on the original samples and bench results");
  CHECK(message(files::to_json(example_bench())) ==
        "p.json: expected a file of format 'railpass profile', found format 'railpass bench'");
  constexpr std::string_view not_ours =
      "p.json: not a railpass file (expected a JSON object with the field 'format')";
  CHECK(message("[1, 2]") == not_ours);
  CHECK(message("{}") == not_ours);
  CHECK(message("{\n  \"format\": oops\n}").rfind("p.json: line 2, column 13", 0) == 0);
  CHECK(message("").find("cut short") != std::string::npos);
}

TEST_CASE("deep nesting exhausts nothing") {
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += "{\"a\":";
  CHECK_THROWS_AS(files::parse_profile(deep, "f"), error);
  deep += '1' + std::string(200000, '}');
  CHECK_THROWS_AS(files::parse_profile(deep, "f"), error);
}

TEST_CASE("numbers that a reader would refuse are not written") {
  profile p = example_profile();
  p.corrections[0].factor = std::nan("");
  CHECK_THROWS_AS(files::to_json(p), error);
  bench_results b = example_bench();
  b.results[0].ratio_to_native = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(files::to_json(b), error);
}

TEST_CASE("a profile of another machine is refused with the difference") {
  const scratch_directory directory;
  const std::string path = directory.file("profile.json");
  files::write_text(path, files::to_json(example_profile()));
  CHECK(files::read_profile(path, here).machine_id == here);
  fingerprint other = here;
  other.num_hosts = 100;
  CHECK_NOTHROW(files::read_profile(path, other));
  other.mpi_library = "MPICH 4.0.2";
  CHECK(message_of([&] { files::read_profile(path, other); }) ==
        path +
            ": this profile is for another machine: made on a machine with the MPI library "
            "'Open MPI v4.1.4', this machine has 'MPICH 4.0.2'");
  other = here;
  other.rails = "eth0,eth1";
  CHECK(message_of([&] { files::read_profile(path, other); }) ==
        path +
            ": this profile is for another machine: measured over the MPI library's "
            "messages, collectives here use rails 'eth0,eth1'");
  profile over_rails = example_profile();
  over_rails.machine_id.rails = "eth0,eth1";
  const std::string other_path = directory.file("rails.json");
  files::write_text(other_path, files::to_json(over_rails));
  CHECK(files::read_profile(other_path, other).machine_id == other);
  CHECK_THROWS_AS(files::read_profile(other_path, here), error);
  other = here;
  other.cpu_model = "Other";
  CHECK_THROWS_AS(files::read_profile(path, other), error);
  profile single = example_profile();
  single.machine_id.num_hosts = 1;
  files::write_text(path, files::to_json(single));
  CHECK_THROWS_AS(files::read_profile(path, here), error);
}

TEST_CASE("files that are not there or cannot be read or written are said so") {
  const scratch_directory directory;
  const std::string missing = directory.file("none.json");
  CHECK(message_of([&] { files::read_profile(missing); }) ==
        missing + ": cannot be opened for reading: No such file or directory");
  CHECK(message_of([&] { files::read_text(directory.path().string()); }).find("cannot be read") !=
        std::string::npos);
  CHECK(message_of([&] {
          files::write_text(directory.file("no/such/place"), "x");
        }).find("cannot be created: No such file or directory") != std::string::npos);
}

TEST_CASE("writing replaces the file in one step and leaves nothing beside it") {
  const scratch_directory directory;
  const std::string path = directory.file("f.json");
  files::write_text(path, "old");
  std::ifstream reader(path);  // holds the old file open
  files::write_text(path, "new");
  std::string seen;
  reader >> seen;
  CHECK(seen == "old");
  CHECK(files::read_text(path) == "new");
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path()))
    ++entries;
  CHECK(entries == 1);
  files::write_text("/dev/null", "gone");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("this machine is recognised again") {
  const fingerprint f = files::this_machine(1, std::string_view("MPICH 4.0.2\nmore\0", 17));
  CHECK(f.mpi_library == "MPICH 4.0.2");
  CHECK(f.cores_per_host >= 1);
  CHECK(mismatch(f, files::this_machine(1, "MPICH 4.0.2")).empty());
  CHECK(files::utc_now().size() == 20);
}

TEST_CASE("the mark of an MPI library has no names of users and hosts") {
  const auto mark = [](std::string_view text) { return files::this_machine(1, text).mpi_library; };
  CHECK(mark("Open MPI v5.0.3, package: Open MPI jo@login7.site.org Distribution, ident: 5.0.3") ==
        "Open MPI v5.0.3, package: Open MPI Distribution, ident: 5.0.3");
  CHECK(mark("made by jo@login7") == "made by ");
  CHECK(mark("@") == "");
  const fingerprint of_railpass_0_1{.mpi_library = "Open MPI v5.0.3, package: Open MPI jo@host X"};
  CHECK(mismatch(of_railpass_0_1, files::this_machine(1, of_railpass_0_1.mpi_library))
            .find("MPI library") == std::string::npos);
}

TEST_CASE("JSON nested without end is refused with its place") {
  for (const std::string opening : {"[", "{\"a\":", "[{\"a\":"}) {
    std::string nested;
    for (int i = 0; i < 1000000; ++i) nested += opening;
    for (const format_case& f : all_formats()) {
      CAPTURE(f.name, opening);
      CHECK_THAT(message_of([&] { f.again("{\n\"format\": " + nested); }),
                 ContainsSubstring("f: line 2, column ") && ContainsSubstring("nested at most 64"));
    }
  }
  // Brackets in a text are none.
  CHECK_THAT(message_of([] {
               files::parse_profile("{\"format\": \"" + std::string(1000, '[') + "\\\"[[\"}", "f");
             }),
             ContainsSubstring("expected a file of format"));
}
