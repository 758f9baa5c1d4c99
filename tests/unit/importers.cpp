// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"

#include <filesystem>
#include <random>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;

namespace {

const std::string osu_latency = R"(
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                      54.50
2                      54.61
1048576              9197.02
)";

const std::string osu_latency_5 = R"(# OSU MPI Latency Test v5.6.3
# Size          Latency (us)
0                       0.30
8                       0.31
)";

const std::string osu_bandwidth = R"(# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       0.50
65536                2000.00
)";

const std::string osu_bcast = R"(
# OSU MPI Broadcast Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       0.87
65536                 120.50
)";

const std::string osu_allreduce_full = R"(
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_INT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       1.55              1.11              1.98        1000
1048576              2042.12           2001.00           2120.25         100
)";

const std::string osu_validated = R"(# OSU MPI Broadcast Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation
1                       0.87              Pass
)";

const std::string imb = R"(#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.9, MPI-1 part
#----------------------------------------------------------------
# Date                  : Sat Nov 21 04:00:00 2026
# Machine               : x86_64

# Calling sequence was:

# IMB-MPI1 PingPong Bcast Allreduce

# List of Benchmarks to run:

# PingPong
# Bcast
# Allreduce

#---------------------------------------------------
# Benchmarking PingPong 
# #processes = 2 
# ( 6 additional processes waiting in MPI_Barrier)
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         0.51         0.00
            1         1000         0.53         1.89
      4194304           10      4101.10      1022.73

#----------------------------------------------------------------
# Benchmarking Bcast 
# #processes = 4 
# ( 4 additional processes waiting in MPI_Barrier)
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.00         0.00         0.00
           64         1000         1.00         1.40         1.20

#----------------------------------------------------------------
# Benchmarking Bcast 
# #processes = 8 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
           64         1000         2.00         2.40         2.20
        65536          640       100.00       140.00       120.00
      4194304           time-out; Time limit (secs_per_sample * msg_sizes_list_len) is over;

#----------------------------------------------------------------
# Benchmarking Alltoall 
# #processes = 8 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
           64         1000         9.00         9.40         9.20

#----------------------------------------------------------------
# Benchmarking Allreduce 
# #processes = 8 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            4         1000         3.00         3.40         3.20


# All processes entering MPI_Finalize
)";

const files::import_facts eight{.num_ranks = 8, .ranks_per_node = 2};

std::string message_of(const std::string& text) {
  try {
    files::parse_osu(text, "o.txt", eight);
  } catch (const error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("OSU point-to-point tests become link samples") {
  const auto latency = files::parse_osu(osu_latency, "f", {.link = link_class::same_node});
  REQUIRE(latency.links.size() == 3);
  CHECK(latency.links[2].bytes == 1048576);
  CHECK(latency.links[2].one_way_s == Approx(9197.02e-6));
  CHECK(latency.links[2].link == link_class::same_node);
  CHECK(files::parse_osu(osu_latency_5, "f", {}).links[0].one_way_s == Approx(0.3e-6));
  const auto bandwidth = files::parse_osu(osu_bandwidth, "f", {});
  REQUIRE(bandwidth.streams.size() == 2);
  CHECK(bandwidth.streams[1].busy_s == Approx(65536 / 2000e6));
}

TEST_CASE("OSU collectives become times, the slowest rank's where it is printed") {
  const auto bcast = files::parse_osu(osu_bcast, "f", eight);
  REQUIRE(bcast.collectives.size() == 2);
  CHECK(bcast.collectives[1].collective == "broadcast");
  CHECK(bcast.collectives[1].arm == "native");
  CHECK(bcast.collectives[1].num_ranks == 8);
  CHECK(bcast.collectives[1].ranks_per_node == 2);
  CHECK(bcast.collectives[1].median_s == Approx(120.5e-6));
  const auto full = files::parse_osu(osu_allreduce_full, "f", eight);
  CHECK(full.collectives[1].collective == "all_reduce");
  CHECK(full.collectives[1].median_s == Approx(2120.25e-6));
  CHECK(files::parse_osu(osu_validated, "f", eight).collectives.size() == 1);
}

TEST_CASE("several OSU outputs in one file are all read") {
  const auto both = files::parse_osu(osu_latency + osu_bcast, "f", eight);
  CHECK(both.links.size() == 3);
  CHECK(both.collectives.size() == 2);
}

TEST_CASE("IMB tables become samples and times, with the number of processes they name") {
  const auto m = files::parse_imb(imb, "f", {});
  REQUIRE(m.links.size() == 3);
  CHECK(m.links[2].one_way_s == Approx(4101.10e-6));
  REQUIRE(m.collectives.size() == 4);  // without the empty message, time-out and Alltoall
  CHECK(m.collectives[0].num_ranks == 4);
  CHECK(m.collectives[0].median_s == Approx(1.4e-6));
  CHECK(m.collectives[2].num_ranks == 8);
  CHECK(m.collectives[2].median_s == Approx(140e-6));
  CHECK(m.collectives[3].collective == "all_reduce");
}

TEST_CASE("what is not such output is refused with the line") {
  CHECK(message_of("# OSU MPI Non-blocking Broadcast Latency Test v7.4\n")
            .find("o.txt: line 1: the test 'Non-blocking Broadcast Latency' is of no use") == 0);
  CHECK(message_of(osu_bcast + "128 oops\n") ==
        "o.txt: line 7: expected a finite number >= 0, found 'oops'");
  CHECK(message_of(osu_bcast + "128 -1.0\n").find("line 7") != std::string::npos);
  CHECK(message_of(osu_bcast + "128 inf\n").find("line 7") != std::string::npos);
  CHECK(message_of(osu_bcast + "128 nan\n").find("line 7") != std::string::npos);
  CHECK(message_of(osu_bcast + "128 0.00\n").find("expected a number > 0") != std::string::npos);
  CHECK(message_of(osu_bcast + "128 1 2\n").find("expected 2 columns, found 3") !=
        std::string::npos);
  CHECK(message_of(osu_bcast + "99999999999999999999 1\n").find("expected a size in bytes") !=
        std::string::npos);
  CHECK(message_of(osu_bcast + "128 1").find("cut short") != std::string::npos);
  CHECK(message_of("1 2\n").find("expected a title") != std::string::npos);
  CHECK(message_of("# OSU MPI Latency Test v7.4\n").find("found no row") != std::string::npos);
  CHECK_THROWS_AS(files::parse_osu(osu_bcast, "f", {}), error);  // how many ranks?
  CHECK_THROWS_AS(files::parse_imb("# nothing\n", "f", {}), error);
}

TEST_CASE("cut or damaged output is refused or read as something sound") {
  for (const std::string& text : {osu_latency, osu_allreduce_full, imb})
    for (unsigned seed = 0; seed < 3000; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random(seed);
      std::string damaged = text.substr(0, random() % text.size());
      for (unsigned i = 0; i < 3 && !damaged.empty(); ++i)
        damaged[random() % damaged.size()] = char(random());
      for (const auto parse : {files::parse_osu, files::parse_imb}) try {
          const measurements m = parse(damaged, "f", eight);
          for (const link_sample& s : m.links) CHECK((s.one_way_s > 0 && s.bytes >= 0));
          for (const collective_time& t : m.collectives) CHECK((t.median_s > 0 && t.bytes >= 0));
        } catch (const error& e) {
          CHECK(std::string(e.what()).rfind("f: ", 0) == 0);
        }
    }
}

TEST_CASE("measurements are read from files of any kind, told apart by their content") {
  std::string path = (std::filesystem::temp_directory_path() / "railpass.XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  REQUIRE(descriptor >= 0);
  ::close(descriptor);
  const auto read = [&](const std::string& text) {
    files::write_text(path, text);
    return files::read_measurements(path, eight);
  };
  CHECK(read(osu_bcast).collectives.size() == 2);
  CHECK(read(imb).links.size() == 3);

  sample_set samples;
  samples.measured.links = {{.bytes = 8, .one_way_s = 1e-6}};
  CHECK(read(files::to_json(samples)).links.size() == 1);

  bench_results bench;
  bench.num_ranks = 16;
  bench.results = {{"broadcast", 8, "native", 1e-6, 2e-6, 3},
                   {"broadcast", 8, "tuned", 1, 1, 3},
                   {"broadcast", 8, "native:chain:4096", 1, 1, 3}};
  const auto from_bench = read(files::to_json(bench));
  // Neither a mixture of arms nor an algorithm that only the MPI library has.
  REQUIRE(from_bench.collectives.size() == 1);
  CHECK(from_bench.collectives[0].num_ranks == 16);
  CHECK(from_bench.collectives[0].runs == 3);
  CHECK(from_bench.collectives[0].run_spread > 0.2);  // nothing is known of it

  // Three runs that happen to be alike say little of what runs vary by, forty say it.
  const auto row = [](std::int64_t runs, double spread_s) {
    return bench_result{.collective = "broadcast",
                        .bytes = 8,
                        .arm = "binomial",
                        .median_s = 1e-6,
                        .p90_s = 1e-6,
                        .runs = runs,
                        .spread_s = spread_s};
  };
  bench.results = {row(40, 1e-8), row(3, 0), row(3, 2e-7), row(50, 2e-8), row(60, 3e-8)};
  const auto spreads = read(files::to_json(bench)).collectives;
  REQUIRE(spreads.size() == 5);
  CHECK(spreads[1].run_spread == Approx(0.02));
  CHECK(spreads[2].run_spread == Approx(0.2));
  CHECK(spreads[4].run_spread == Approx(0.03));

  select::statistics_dump dump;
  dump.contexts = {
      {.communicator = "world",
       .collective = "all_reduce",
       .num_ranks = 4,
       .ranks_per_node = 1,
       .from_bytes = 64,
       .to_bytes = 127,
       .operation = "builtin",
       .arms = {{.arm = "native", .times = {.samples = 4, .mean_s = 9e-6}},
                {.arm = "ring", .times = {.samples = 16, .mean_s = 3e-6, .spread = 0.25}},
                {.arm = "never run"}}}};
  const auto from_dump = [&] { return read(files::to_json(dump)).collectives; };
  // Few calls of native are left out, since the first ones may be slow.
  REQUIRE(from_dump().size() == 1);
  CHECK(from_dump()[0].bytes == 64);
  CHECK(from_dump()[0].median_s == Approx(3e-6 * std::exp(-0.25 * 0.25 / 2)));
  CHECK(from_dump()[0].runs == 16);
  CHECK(from_dump()[0].run_spread == Approx(0.25));
  dump.contexts[0].arms[0].times.samples = 5;
  dump.contexts[0].arms[0].times.quantiles = {.low_s = 7e-6, .median_s = 8e-6, .high_s = 2e-5};
  REQUIRE(from_dump().size() == 2);
  CHECK(from_dump()[0].median_s == 8e-6);
  // The user's operation may be slow, and a mixture of sizes describes none.
  const select::context_statistics plain = dump.contexts[0];
  dump.contexts[0].operation = "user_commutative";
  CHECK(from_dump().empty());
  dump.contexts[0] = plain;
  dump.contexts[0].mean_bytes = 5e5;
  dump.contexts[0].to_bytes = 1 << 20;
  CHECK(from_dump().empty());

  // Calls of one launch are not independent.
  bench.results = {row(1200, 2e-8)};
  bench.results[0].launch_medians_s = {1e-6, 1.1e-6, 0.9e-6, 1e-6, 1.2e-6, 0.8e-6};
  CHECK(read(files::to_json(bench)).collectives[0].runs == 6);

  CHECK_THROWS_AS(read(files::to_json(profile{.machine = {.same_node = hockney_link(1, 1),
                                                          .across_nodes = hockney_link(1, 1)}})),
                  error);
  CHECK_THROWS_AS(read(""), error);
  CHECK_THROWS_AS(read("hello\n"), error);
  std::filesystem::remove(path);
}
