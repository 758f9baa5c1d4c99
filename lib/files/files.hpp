// SPDX-License-Identifier: BSL-1.0
//
// Files in and out. Every reader validates all of a file and throws railpass::error with a sentence
// naming the file, the field or line, and what was expected; nothing is half read. Every writer
// replaces the file in one step (a new file of a random name beside it, fsync, rename) or throws,
// leaves what was there and nothing else. Nothing here is collective: call it on one rank.
#pragma once

#include "lib/files/input.hpp"
#include "models/profile.hpp"
#include "models/samples.hpp"
#include "railpass/knowledge/collection.hpp"
#include "railpass/select/statistics/dump.hpp"
#include "railpass/transport/sampling.hpp"

#include <span>
#include <string>
#include <string_view>

namespace railpass::internal::files {

/// The marks of the machine this process runs on. `mpi_library`: what MPI_Get_library_version says.
fingerprint this_machine(int num_hosts, std::string_view mpi_library);

/// The current time as the files write it.
std::string utc_now();

/// Whether what is written is on the disk before its name is there, or the system may take its
/// time.
enum class durability { on_disk, in_time };

/// Replaces the file by `text`. What exists and is not a regular file (/dev/null, a pipe) is
/// written to instead.
void write_text(const std::string& path, std::string_view text,
                durability how = durability::on_disk);

// For each kind of file: the JSON text, the inverse (`name` stands for the file in errors), and
// both with a file. Reading a file of another kind, or of a newer version, is an error.

/// What a document says it is, such as "railpass samples"; empty: the text is no JSON object, or
/// does not say it.
std::string format_of(std::string_view text, const std::string& name);

std::string to_json(const profile& p);
profile parse_profile(std::string_view text, const std::string& name);
profile read_profile(const std::string& path);
/// Also refuses a profile that mismatch() says is not for this machine.
profile read_profile(const std::string& path, const fingerprint& here);

std::string to_json(const sample_set& s);
sample_set parse_samples(std::string_view text, const std::string& name);
sample_set read_samples(const std::string& path);

std::string to_json(const bench_results& b);
bench_results parse_bench(std::string_view text, const std::string& name);
bench_results read_bench(const std::string& path);

std::string to_json(const select::statistics_dump& d);
select::statistics_dump parse_statistics(std::string_view text, const std::string& name);
select::statistics_dump read_statistics(const std::string& path);

std::string to_json(const transport::rails_measurement& m);
transport::rails_measurement parse_rails(std::string_view text, const std::string& name);
transport::rails_measurement read_rails(const std::string& path);

std::string to_json(const knowledge::collection& c);
knowledge::collection parse_knowledge(std::string_view text, const std::string& name);
knowledge::collection read_knowledge(const std::string& path);

/// What the output of another benchmark does not say about itself.
struct import_facts {
  link_class link = link_class::across_nodes;  ///< where the two ranks of a point-to-point test ran
  int num_ranks = 0;  ///< of a collective, where the output does not say; 0: not given
  int ranks_per_node = 1;
  std::string arm = "native";  ///< what ran: the MPI library's own, unless it was forced
};

/// The output of an OSU micro-benchmark (osu_latency, osu_bw, osu_bcast, osu_allreduce) as the
/// program prints it, with -f and without.
measurements parse_osu(std::string_view text, const std::string& name, const import_facts& facts);
/// The output of IMB-MPI1 (PingPong, Bcast, Allreduce; other tables are passed over).
measurements parse_imb(std::string_view text, const std::string& name, const import_facts& facts);
/// What NetPIPE 3 prints, or writes to its output file: one-way times between two ranks.
measurements parse_netpipe(std::string_view text, const std::string& name,
                           const import_facts& facts);

/// A file of any of these kinds, by its content: samples, bench results, statistics dump, OSU or
/// IMB output. All that a fit can use of it.
measurements read_measurements(const std::string& path, const import_facts& facts = {});

/// What a fit can use of what runs learnt.
measurements measurements_of(std::span<const knowledge::experience> contexts);

}  // namespace railpass::internal::files
