// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/rails_report.hpp"

#include "lib/files/files.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"
#include "railpass/rails.hpp"
#include "railpass/version.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace railpass::internal::measure {
namespace {

using json = nlohmann::ordered_json;

std::string show(const transport::threshold& t) {
  if (t.is_never()) return "never";
  if (t.is_always()) return "always";
  return format_bytes(std::int64_t(t.bytes()));
}
json as_json(const transport::threshold& t) {
  return t.is_never() ? json(nullptr) : json(std::int64_t(t.bytes()));
}

std::string megabits(double bytes_per_s) { return fixed(bytes_per_s * 8e-6, 1); }

std::string names_of(const std::vector<int>& rails, const std::vector<std::string>& names) {
  std::string text;
  for (const int r : rails) text += (text.empty() ? "" : " + ") + names[std::size_t(r)];
  return text;
}

std::string time_at(const transport::time_curve& curve, double bytes) {
  const transport::measured_time* const p = transport::detail::at_size(curve, bytes);
  return p ? format_seconds(p->seconds) : "-";
}

void print_samples(const transport::link_samples& samples, const std::vector<std::string>& names,
                   report::output& out) {
  for (std::size_t r = 0; r < samples.rails.size(); ++r) {
    const transport::rail_samples& s = samples.rails[r];
    std::set<double> sizes;
    for (const auto* curve : {&s.copied, &s.pieces, &s.rendezvous, &s.two_packets, &s.aggregate})
      for (const auto& p : *curve) sizes.insert(p.bytes);
    report::table lines(
        {"bytes", "copied", "not copied", "asked first", "two packets", "aggregate"});
    for (const double b : sizes)
      lines.add({format_bytes(std::int64_t(b)), time_at(s.copied, b), time_at(s.pieces, b),
                 time_at(s.rendezvous, b), time_at(s.two_packets, b), time_at(s.aggregate, b)});
    out.words() << names[r] << ", one way\n" << out.printed(lines, names[r]) << '\n';
  }
}

void print_link(const known_link& link, const std::vector<std::string>& names,
                const std::vector<std::int64_t>& sizes, report::output& out) {
  const transport::link_findings& f = link.findings;
  out.words() << (link.measured.same_host ? "Ranks on one host\n" : "Ranks on two hosts\n");
  print_samples(link.measured.samples, names, out);
  report::table rails({"rail", "latency", "Mbit/s", "asking", "copied below", "at once up to",
                       "aggregated up to", "large messages"});
  for (std::size_t r = 0; r < names.size(); ++r) {
    const transport::rail_profile& p = f.profile.rails[r];
    rails.add({names[r], format_seconds(p.time.latency_s()), megabits(p.time.bytes_per_s()),
               format_seconds(p.handshake_s), format_bytes(p.thresholds.copy_bytes),
               format_bytes(p.thresholds.eager_bytes), format_bytes(p.thresholds.aggregate_bytes),
               p.spare ? "no: too slow to help" : "yes"});
  }
  out.words() << out.printed(rails) << '\n';
  report::table crossings(
      {"rail", "not copying is quicker from", "asking first from", "two packets from"});
  for (std::size_t r = 0; r < names.size(); ++r)
    crossings.add({names[r], show(f.rails[r].pieces), show(f.rails[r].rendezvous),
                   show(f.rails[r].two_packets)});
  out.words() << out.printed(crossings) << '\n';
  if (!link.measured.samples.joint.empty()) {
    report::table sets({"together", "Mbit/s", "of the sum"});
    for (const transport::joint_sample& s : link.measured.samples.joint)
      sets.add({names_of(s.rails, names), megabits(s.bytes_per_s),
                percent(transport::additivity(link.measured.samples.joint, s).value_or(0))});
    out.words() << out.printed(sets) << '\n';
    report::table together({"over several rails", "one way"});
    for (const auto& t : link.measured.samples.together)
      together.add({format_bytes(std::int64_t(t.bytes)), format_seconds(t.seconds)});
    if (!together.empty()) out.words() << out.printed(together);
    out.words() << "Several rails are quicker than one from: " << show(f.split);
    if (!f.split.is_never())
      out.words() << "; smallest part: " << format_bytes(f.profile.least_bytes);
    out.words() << "\n\n";
  }
  std::vector<std::string> titles{"plan for"};
  for (const std::string& n : names) titles.push_back("bytes on " + n);
  titles.insert(titles.end(), {"sent", "predicted"});
  report::table plans(titles);
  for (const std::int64_t bytes : sizes) {
    const transport::message_plan plan = transport::plan_of(f.profile, bytes);
    std::vector<std::string> row{format_bytes(bytes)};
    for (const std::int64_t b : plan.bytes) row.push_back(std::to_string(b));
    row.insert(row.end(),
               {plan.eager ? "at once" : "when asked for", format_seconds(plan.seconds)});
    plans.add(std::move(row));
  }
  out.words() << out.printed(plans) << '\n';
}

json link_json(const known_link& link, const std::vector<std::string>& names,
               const std::vector<std::int64_t>& sizes) {
  const transport::link_findings& f = link.findings;
  json rails = json::array(), joint = json::array(), plans = json::array();
  for (std::size_t r = 0; r < names.size(); ++r) {
    const transport::rail_profile& p = f.profile.rails[r];
    rails.push_back({{"name", names[r]},
                     {"latency_s", p.time.latency_s()},
                     {"bytes_per_s", p.time.bytes_per_s()},
                     {"handshake_s", p.handshake_s},
                     {"copy_bytes", p.thresholds.copy_bytes},
                     {"eager_bytes", p.thresholds.eager_bytes},
                     {"aggregate_bytes", p.thresholds.aggregate_bytes},
                     {"pieces_from_bytes", as_json(f.rails[r].pieces)},
                     {"rendezvous_from_bytes", as_json(f.rails[r].rendezvous)},
                     {"two_packets_from_bytes", as_json(f.rails[r].two_packets)},
                     {"spare", p.spare}});
  }
  for (const transport::joint_sample& s : link.measured.samples.joint)
    joint.push_back(
        {{"rails", s.rails},
         {"bytes_per_s", s.bytes_per_s},
         {"additivity", transport::additivity(link.measured.samples.joint, s).value_or(0)}});
  for (const std::int64_t bytes : sizes) {
    const transport::message_plan plan = transport::plan_of(f.profile, bytes);
    plans.push_back({{"bytes", bytes},
                     {"eager", plan.eager},
                     {"bytes_by_rail", plan.bytes},
                     {"seconds", plan.seconds}});
  }
  return {{"same_host", link.measured.same_host},
          {"rails", std::move(rails)},
          {"joint", std::move(joint)},
          {"split_from_bytes", as_json(f.split)},
          {"least_bytes", f.profile.least_bytes},
          {"plans", std::move(plans)}};
}

// What one rail of a program carries, or all rails of a rank.
struct carried {
  std::int64_t sent_bytes = 0, backlog_bytes = 0;
};

double share_of(const posted_rail& r, const found_board& on) {
  std::int64_t all_bytes = 0;
  for (const posted_rail& other : on.rails)
    if (other.rank == r.rank) all_bytes += other.sent_bytes;
  return all_bytes > 0 ? double(r.sent_bytes) / double(all_bytes) : 0;
}
// How long it takes at the rate that the rank gets.
double backlog_s(const posted_rail& r) {
  return r.bytes_per_s > 0 ? double(r.backlog_bytes) / r.bytes_per_s : 0;
}

void print_running(const found_boards& found, double now_s, report::output& out) {
  for (const found_board& b : found.boards) {
    if (b.rails.empty()) continue;
    report::table lines({"rank", "process", "rail", "sent", "share", "Mbit/s", "prediction off by",
                         "backlog", "takes", "posted before"},
                        3);
    std::map<std::string, carried> sums;  // by rail: what ranks on this host share
    std::set<int> ranks;
    carried all;
    for (const posted_rail& r : b.rails) {
      lines.add({std::to_string(r.rank), std::to_string(r.pid), r.rail, format_bytes(r.sent_bytes),
                 percent(share_of(r, b)), r.bytes_per_s > 0 ? megabits(r.bytes_per_s) : "-",
                 r.prediction_error ? percent(*r.prediction_error) : "-",
                 format_bytes(r.backlog_bytes), format_seconds(backlog_s(r)),
                 format_seconds(std::max(0.0, now_s - r.posted_at_s))});
      for (carried* sum : {&all, &sums[r.rail]}) {
        sum->sent_bytes += r.sent_bytes;
        sum->backlog_bytes += r.backlog_bytes;
      }
      ranks.insert(r.rank);
    }
    if (ranks.size() > 1)
      for (const auto& [rail, sum] : sums)
        lines.add(
            {"all", "", rail, format_bytes(sum.sent_bytes),
             percent(all.sent_bytes > 0 ? double(sum.sent_bytes) / double(all.sent_bytes) : 0), "",
             "", format_bytes(sum.backlog_bytes), "", ""});
    out.words() << "Running: " << printable(b.rails.front().program) << ", " << ranks.size()
                << " of " << b.num_ranks << " ranks on this host\n"
                << out.printed(lines) << '\n';
  }
  for (const std::string& why : found.skipped)
    out.words() << "Skipped " << printable(why) << "\n\n";
}

json running_json(const found_boards& found, double now_s) {
  json result = json::array();
  for (const found_board& b : found.boards) {
    json rails = json::array();
    for (const posted_rail& r : b.rails)
      rails.push_back(
          {{"rank", r.rank},
           {"pid", r.pid},
           {"program", r.program},
           {"rail", r.rail},
           {"sent_bytes", r.sent_bytes},
           {"share", share_of(r, b)},
           {"bytes_per_s", r.bytes_per_s},
           {"prediction_error", r.prediction_error ? json(*r.prediction_error) : json(nullptr)},
           {"backlog_bytes", r.backlog_bytes},
           {"backlog_s", backlog_s(r)},
           {"posted_before_s", std::max(0.0, now_s - r.posted_at_s)}});
    result.push_back({{"num_ranks", b.num_ranks}, {"rails", std::move(rails)}});
  }
  return result;
}

}  // namespace

rails_report examine_rails(const job& j, const std::string& named_rails, double budget_s) {
  rails_report r;
  if (j.rank == 0) {  // before rails of its own are open
    r.running = find_boards();
    r.looked_at_s = steady_clock_s();
  }
  const process* const p = process::get();
  std::string rails = named_rails.empty() && p ? p->values().rails : named_rails;
  const bool named = !rails.empty();
  r.interfaces = judge_interfaces(j);
  if (!named) rails = usable_rails(j, r.interfaces);
  broadcast_text(rails);
  if (j.num_ranks < 2) {
    r.hint = "Rails are measured between ranks: mpirun -n 2 --map-by node railpass rails";
  } else if (rails.empty()) {
    r.hint = j.num_nodes() == 1
                 ? "No rails: messages between ranks on one host leave it by no interface. "
                   "--rails 127.0.0.1 measures TCP within the host."
                 : "No rails: the hosts have no network in common in which each has one address.";
  } else {
    mpi::open_rails(MPI_COMM_WORLD, {.rails = rails, .strategy = {}, .budget_s = budget_s});
    r.known = &known_rails_of(MPI_COMM_WORLD);
    for (const mpi::rail_status& s : mpi::rails_to(0, MPI_COMM_WORLD)) r.names.push_back(s.name);
    if (named) judge_by_names(r.interfaces, r.known->links, rails);
  }
  return r;
}

void print(const rails_report& r, const std::vector<std::int64_t>& sizes, report::output& out) {
  report::table found({"host", "interface", "used", "why"}, 2);
  for (const judged_interface& s : r.interfaces)
    found.add({s.what.host, s.what.marks, s.verdict.used ? "yes" : "no", s.verdict.why});
  out.words() << out.printed(found) << '\n';
  print_running(r.running, r.looked_at_s, out);
  if (!r.known) {
    out.words() << r.hint << '\n';
    return;
  }
  out.words() << "Rails: " << r.known->source << ", " << r.known->measured_at << "\n\n";
  for (const known_link& l : r.known->links) print_link(l, r.names, sizes, out);
}

std::string to_json(const rails_report& r, const std::vector<std::int64_t>& sizes) {
  json interfaces = json::array(), links = json::array();
  for (const judged_interface& s : r.interfaces)
    interfaces.push_back({{"host", s.what.host},
                          {"name", s.what.name},
                          {"address", s.what.address},
                          {"network", s.what.network},
                          {"used", s.verdict.used},
                          {"why", s.verdict.why}});
  json result{{"interfaces", std::move(interfaces)},
              {"running", running_json(r.running, r.looked_at_s)},
              {"skipped", r.running.skipped},
              {"rails", r.names}};
  if (!r.known) return result.dump(2) + '\n';
  transport::rails_measurement measured{
      .railpass_version = RAILPASS_VERSION, .measured_at = r.known->measured_at, .links = {}};
  for (const known_link& l : r.known->links) {
    links.push_back(link_json(l, r.names, sizes));
    measured.links.push_back(l.measured);
  }
  result["source"] = r.known->source;
  result["measured_at"] = r.known->measured_at;
  result["links"] = std::move(links);
  result["samples"] = json::parse(files::to_json(measured))["links"];
  return result.dump(2) + '\n';
}

}  // namespace railpass::internal::measure
