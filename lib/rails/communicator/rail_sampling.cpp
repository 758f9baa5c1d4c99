// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/communicator/rail_sampling.hpp"

#include "lib/files/files.hpp"
#include "lib/group/hosts.hpp"
#include "lib/rails/agreement.hpp"
#include "lib/rails/meter.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>

namespace railpass::internal {

namespace {

using transport::measured_link;
using transport::rails_measurement;

// Ranks that measure with rank 0: the first rank on its host, and the first rank on another host.
struct partners {
  int on_this_host = -1;
  int on_another = -1;
  std::vector<std::int64_t> hosts;  // by rank: the mark of the rank's host

  int of(bool same_host) const { return same_host ? on_this_host : on_another; }
};

partners partners_in(MPI_Comm comm, int num_ranks) {
  partners found;
  found.hosts.resize(std::size_t(num_ranks));
  const std::int64_t mine = mark_of_host();
  PMPI_Allgather(&mine, 1, MPI_INT64_T, found.hosts.data(), 1, MPI_INT64_T, comm);
  for (int r = num_ranks - 1; r > 0; --r)
    (found.hosts[std::size_t(r)] == found.hosts[0] ? found.on_this_host : found.on_another) = r;
  return found;
}

void broadcast_asleep(std::string& text, MPI_Comm comm) {
  long length = long(text.size());
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Ibcast(&length, 1, MPI_LONG, 0, comm, &request);
  wait_asleep(request);
  text.resize(std::size_t(length));
  PMPI_Ibcast(text.data(), int(length), MPI_CHAR, 0, comm, &request);
  wait_asleep(request);
}

std::string my_host() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  PMPI_Get_processor_name(name, &length);
  return {name, std::size_t(length)};
}

std::string marks_here(open_transport& rails) {
  return rails.with([](transport::transport& t) {
    std::string text;
    for (const auto& r : t.rails()) text += my_host() + ": " + r->marks() + '\n';
    return text;
  });
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// On rank 0: the rails of a link, as seen from both sides. Collective, because point-to-point
// messages on this communicator belong to other code.
std::vector<std::string> marks_of(open_transport& rails, MPI_Comm comm, int partner) {
  const bool measures = rails.rank() == 0 || rails.rank() == partner;
  const std::string mine = measures ? marks_here(rails) : std::string();
  const int length = int(mine.size());
  std::vector<int> lengths(std::size_t(rails.num_ranks())), begins(lengths.size());
  PMPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm);
  std::partial_sum(lengths.begin(), lengths.end() - 1, begins.begin() + 1);
  std::string all(std::size_t(begins.back() + lengths.back()), ' ');
  PMPI_Gatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(), MPI_CHAR,
               0, comm);
  return lines_of(all);
}

// Earlier measurements of this process, by the marks of all links.
std::mutex memory;
std::map<std::string, std::string> remembered;

std::string key_of(const std::vector<measured_link>& wanted) {
  std::string key;
  for (const measured_link& l : wanted) {
    key += l.same_host ? "one host\n" : "two hosts\n";
    for (const std::string& m : l.marks) key += m + '\n';
  }
  return key;
}

// Why the measurement does not fit these links; empty: it fits.
std::string mismatch(const rails_measurement& m, const std::vector<measured_link>& wanted) {
  if (m.railpass_version != RAILPASS_VERSION)
    return "written by railpass " + m.railpass_version + ", read by railpass " RAILPASS_VERSION;
  if (m.links.size() != wanted.size())
    return "the file has " + std::to_string(m.links.size()) + " kinds of links, this job " +
           std::to_string(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const measured_link &had = m.links[i], &has = wanted[i];
    if (had.same_host != has.same_host) return "the file has other kinds of links";
    for (std::size_t k = 0; k < std::max(had.marks.size(), has.marks.size()); ++k) {
      const auto at = [k](const measured_link& l) {
        return k < l.marks.size() ? l.marks[k] : std::string("none");
      };
      if (at(had) != at(has)) return "rail '" + at(had) + "' has become '" + at(has) + "'";
    }
    if (2 * had.samples.rails.size() != has.marks.size())
      return "the file has another number of rails";
    transport::analyse(had.samples);  // throws error if the samples are invalid
  }
  return {};
}

// On rank 0: the text of an earlier measurement of these links, or nothing.
std::string found_before(const std::vector<measured_link>& wanted, process& p,
                         const std::string& path, std::string& source) {
  {
    const std::lock_guard lock(memory);
    if (const auto known = remembered.find(key_of(wanted)); known != remembered.end()) {
      source = "measured before in this process";
      return known->second;
    }
  }
  std::error_code unknown;
  if (path.empty() || !std::filesystem::exists(path, unknown)) return {};
  try {
    const rails_measurement m = files::read_rails(path);
    const std::string why = mismatch(m, wanted);
    if (why.empty()) {
      source = "read from " + path;
      return files::to_json(m);
    }
    p.record("the rails are measured again: " + path + ": " + why);
  } catch (const std::exception& e) {
    p.record(std::string("the rails are measured again: ") + e.what());
  }
  return {};
}

void keep(const std::string& text, const std::vector<measured_link>& links, process& p,
          const std::string& path) {
  {
    const std::lock_guard lock(memory);
    remembered[key_of(links)] = text;
  }
  if (path.empty()) return;
  try {
    files::write_text(path, text);
  } catch (const std::exception& e) {
    p.record(std::string("the measurement of the rails is not kept: ") + e.what());
  }
}

}  // namespace

known_rails learn_rails(open_transport& rails, MPI_Comm comm, process& p,
                        const sampling_options& options) {
  known_rails known;
  const int rank = rails.rank(), num_ranks = rails.num_ranks();
  if (num_ranks == 1) return known;
  double budget_s = options.budget_s;
  PMPI_Bcast(&budget_s, 1, MPI_DOUBLE, 0, comm);
  if (budget_s <= 0) return known;

  const partners who = partners_in(comm, num_ranks);
  std::vector<measured_link> links;
  for (const bool same_host : {true, false}) {
    const int partner = who.of(same_host);
    if (partner < 0) continue;
    links.push_back({.same_host = same_host, .marks = {}, .samples = {}});
    links.back().marks = marks_of(rails, comm, partner);
  }
  std::string text, source;
  if (rank == 0) text = found_before(links, p, options.path, source);
  int measures = text.empty() ? 1 : 0;
  PMPI_Bcast(&measures, 1, MPI_INT, 0, comm);

  std::string problem;
  if (measures) try {
      for (measured_link& l : links) {
        const int partner = who.of(l.same_host);
        if (rank == 0)
          l.samples = measure_link(rails, partner, budget_s);
        else if (rank == partner)
          serve_measurement(rails, 0, budget_s);
      }
      if (rank == 0) {
        source = "measured now";
        text = files::to_json(rails_measurement{
            .railpass_version = RAILPASS_VERSION, .measured_at = files::utc_now(), .links = links});
        keep(text, links, p, options.path);
      }
    } catch (const std::exception& e) {
      problem = std::string("the rails cannot be measured: ") + e.what();
    }
  broadcast_asleep(text, comm);
  broadcast_asleep(source, comm);
  agree(comm, problem);

  // All ranks parse the same text, and so get the same result.
  on_all(comm, [&] {
    rails_measurement m = files::parse_rails(text, "the measurement of rank 0");
    known.source = source;
    known.measured_at = m.measured_at;
    for (measured_link& l : m.links) {
      transport::link_findings findings = transport::analyse(l.samples);
      known.links.push_back({std::move(l), std::move(findings)});
    }
    for (int peer = 0; peer < num_ranks; ++peer)
      for (const known_link& l : known.links)
        if (peer != rank &&
            l.measured.same_host == (who.hosts[std::size_t(peer)] == who.hosts[std::size_t(rank)]))
          rails.with([&](transport::transport& t) { t.know(peer, l.findings.profile); });
  });
  return known;
}

}  // namespace railpass::internal
