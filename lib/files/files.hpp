// SPDX-License-Identifier: BSL-1.0
//
// Reads and writes files. Every reader validates the whole file, or throws railpass::error with a
// sentence that names file, field or line, and expected content. Every writer replaces the file in
// one step (a new file with a random name beside it, fsync, rename), or throws and leaves the old
// file only. Nothing here is collective: call it on one rank.
#pragma once

#include "lib/files/input.hpp"
#include "models/profile.hpp"
#include "models/samples.hpp"
#include "railpass/knowledge/collection.hpp"
#include "railpass/knowledge/plan.hpp"
#include "railpass/knowledge/quarantine.hpp"
#include "railpass/select/statistics/dump.hpp"
#include "railpass/transport/sampling.hpp"

#include <span>
#include <string>
#include <string_view>

namespace railpass::knowledge {
struct advisory_list;  // advisories.hpp
struct halted_rank;    // halts.hpp
}  // namespace railpass::knowledge

namespace railpass::internal::files {

/// The marks of this process' machine. `mpi_library`: text of MPI_Get_library_version; names of
/// users and hosts in it are left out.
fingerprint this_machine(int num_hosts, std::string_view mpi_library);

/// The current time in the files' format.
std::string utc_now();

/// Whether data is on the disk before the file's name appears, or whenever the system writes it.
enum class durability { on_disk, in_time };

/// Replaces the file by `text`; behind links, the file that they lead to, except where other users
/// may have made a link (/tmp). An existing path that is not a regular file (/dev/null, a pipe) or
/// stands for a descriptor of this process (/dev/stdout) is written to instead.
void write_text(const std::string& path, std::string_view text,
                durability how = durability::on_disk);
/// Whether write_text() will be able to write, as far as this is known before.
bool may_be_written(const std::string& path);

// For each kind of file: conversion to and from JSON text (`name` stands for the file in errors),
// and reading from a file. A file of another kind or of a newer version is an error.

/// The format that a document names, such as "railpass samples". Empty: the text is no JSON object,
/// or names no format.
std::string format_of(std::string_view text, const std::string& name);

std::string to_json(const profile& p);
profile parse_profile(std::string_view text, const std::string& name);
profile read_profile(const std::string& path);
/// Also refuses a profile of another machine, by mismatch().
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

std::string to_json(const knowledge::plan& p);
knowledge::plan parse_plan(std::string_view text, const std::string& name);
/// Also refuses a plan for another machine, by mismatch(). Hosts and rails are properties of the
/// plan's calls.
knowledge::plan parse_plan(std::string_view text, const std::string& name, const fingerprint& here);

std::string to_json(const knowledge::advisory_list& l);
knowledge::advisory_list parse_advisories(std::string_view text, const std::string& name);
knowledge::advisory_list read_advisories(const std::string& path);
/// The advisories of lib/files/advisories.json.
knowledge::advisory_list shipped_advisories();

std::string to_json(const knowledge::quarantined& q);
knowledge::quarantined parse_quarantine(std::string_view text, const std::string& name);

std::string to_json(const knowledge::halted_rank& r);
knowledge::halted_rank parse_halt(std::string_view text, const std::string& name);

/// Facts that the output of another benchmark does not contain.
struct import_facts {
  link_class link = link_class::across_nodes;  ///< of the two ranks in a point-to-point test
  int num_ranks = 0;  ///< of a collective, if missing in the output; 0: not given
  int ranks_per_node = 1;
  std::string arm = "native";  ///< the MPI library's collective, unless an algorithm was forced
};

/// The printed output of an OSU micro-benchmark (osu_latency, osu_bw, osu_bcast, osu_allreduce),
/// with or without -f.
measurements parse_osu(std::string_view text, const std::string& name, const import_facts& facts);
/// The output of IMB-MPI1 (PingPong, Bcast, Allreduce; other tables are skipped).
measurements parse_imb(std::string_view text, const std::string& name, const import_facts& facts);
/// The printed output or the output file of NetPIPE 3: one-way times between two ranks.
measurements parse_netpipe(std::string_view text, const std::string& name,
                           const import_facts& facts);

/// Reads a file of any of these kinds, recognised by content: samples, bench results, statistics
/// dump, OSU or IMB output. Returns everything that a fit can use.
measurements read_measurements(const std::string& path, const import_facts& facts = {});

/// The part of knowledge that a fit can use.
measurements measurements_of(std::span<const knowledge::experience> contexts);

}  // namespace railpass::internal::files
