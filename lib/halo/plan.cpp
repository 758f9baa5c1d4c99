// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/plan.hpp"

#include "lib/group/same_on_all.hpp"

#include <algorithm>
#include <limits>

namespace railpass::internal::halo {

namespace {

constexpr std::int64_t slot_bytes(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::string in_dimension(std::size_t k) { return " in dimension " + std::to_string(k); }

memory_range range_of(const array_layout& a) {
  MPI_Aint lower = 0, extent = MPI_Aint(a.element_bytes);
  if (!a.plain())
    check("MPI_Type_get_true_extent", PMPI_Type_get_true_extent(a.element, &lower, &extent));
  memory_range r;
  r.begin = static_cast<std::byte*>(a.data) + lower;
  r.end = r.begin + extent;
  for (std::size_t k = 0; k < a.extents.size(); ++k) {
    const std::int64_t reach = (a.extents[k] - 1) * a.strides_bytes[k];
    (reach < 0 ? r.begin : r.end) += reach;
  }
  return r;
}

}  // namespace

bool on_all(MPI_Comm comm, bool here) {
  int all = here;
  check("MPI_Allreduce", PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, comm));
  return all != 0;
}

side::side(std::vector<strided> parts, const std::vector<array_layout>& fields, MPI_Comm comm)
    : comm_(comm), parts_(std::move(parts)) {
  std::vector<std::pair<std::byte*, datatype>> types;
  bool plain = true;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    types.emplace_back(parts_[f].first, strided_type(parts_[f], fields[f]));
    bytes_ += parts_[f].elements() * packed_bytes(fields[f]);
    plain = plain && fields[f].plain();
  }
  type_ = joined_type(types);
  if (plain)
    for (std::size_t f = 0; f < fields.size(); ++f)
      plain_.emplace_back(parts_[f], fields[f].element_bytes);
  else if (bytes_ > std::numeric_limits<int>::max())
    throw error("a side has " + std::to_string(bytes_) +
                " bytes; expected at most 2147483647 for elements with an MPI datatype");
}

std::int64_t side::pieces() const {
  std::int64_t sum = 0;
  for (const runs& r : plain_) sum += r.count();
  if (plain_.empty())
    for (const strided& s : parts_) sum += s.elements();
  return sum;
}

void side::pack(std::byte* to) const {
  for (const runs& r : plain_) to = r.pack(to);
  if (!plain_.empty()) return;
  int position = 0;
  check("MPI_Pack", PMPI_Pack(address(), 1, type_, to, int(bytes_), &position, comm_));
}

void side::unpack(const std::byte* from) const {
  for (const runs& r : plain_) from = r.unpack(from);
  if (!plain_.empty()) return;
  int position = 0;
  check("MPI_Unpack", PMPI_Unpack(from, int(bytes_), &position, address(), 1, type_, comm_));
}

plan::plan(MPI_Comm comm, const mpi::halo_arguments& a) : comm_(comm), fields_(a.fields) {
  check("MPI_Comm_rank", PMPI_Comm_rank(comm, &rank_));
  const std::string subject = "halo_exchange";  // not its name, which may differ
  require_same(comm, subject, equal_on_all(a), problem_of([&] { check_arguments(a); }));
  agree_on_order();
  require_same(comm, subject, {}, problem_of([&] { make_shifts(a); }));
  require_same(comm, subject, {}, meet_neighbours(a.widths.size()));
}

void plan::check_arguments(const mpi::halo_arguments& a) const {
  const std::size_t d = a.grid.extents.size();
  int num_ranks = 1;
  PMPI_Comm_size(comm_, &num_ranks);
  std::int64_t product = 1;
  for (const int n : a.grid.extents) product *= std::clamp(n, 0, num_ranks + 1);
  if (d == 0 || d > 30 || product != num_ranks || a.grid.periodic.size() != d)
    throw error("the grid is not one of the communicator's " + std::to_string(num_ranks) +
                " ranks");
  if (a.widths.size() != d)
    throw error(std::to_string(a.widths.size()) + " widths; expected " + std::to_string(d));
  double neighbours = 1;
  for (std::size_t k = 0; k < d; ++k) {
    if (a.widths[k] < 0)
      throw error("width " + std::to_string(a.widths[k]) + in_dimension(k) +
                  "; expected 0 or more");
    if (a.widths[k] > 0) neighbours *= 3;
  }
  if (a.options.corners && neighbours > 16384)  // tags
    throw error("there are too many dimensions to exchange corners; at most 8 may have a width");
  if (a.fields.empty()) throw error("expected at least one field");
  for (std::size_t f = 0; f < a.fields.size(); ++f) {
    const array_layout& field = a.fields[f];
    const std::string where = "field " + std::to_string(f) + ": ";
    if (field.extents.size() != d || field.strides_bytes.size() != d)
      throw error(where + "expected the grid's " + std::to_string(d) + " dimensions");
    if (!field.data) throw error(where + "the address is null");
    if (halo::packed_bytes(field) < 1) throw error(where + "the elements are empty");
    for (std::size_t k = 0; k < d; ++k) {
      const std::int64_t least = std::max<std::int64_t>(1, a.widths[k]);
      if (field.extents[k] - 2 * a.widths[k] < least)
        throw error(where + std::to_string(field.extents[k] - 2 * a.widths[k]) +
                    " elements of its own" + in_dimension(k) + "; expected at least " +
                    std::to_string(least));
    }
  }
}

std::vector<std::string> plan::equal_on_all(const mpi::halo_arguments& a) {
  std::vector<std::string> lines{"name " + a.options.name};
  for (std::size_t k = 0; k < a.grid.extents.size(); ++k)
    lines.push_back(std::to_string(a.grid.extents[k]) + " ranks" + in_dimension(k) +
                    (k < a.grid.periodic.size() && a.grid.periodic[k] ? ", periodic" : ""));
  for (std::size_t k = 0; k < a.widths.size(); ++k)
    lines.push_back("width " + std::to_string(a.widths[k]) + in_dimension(k));
  lines.push_back(std::to_string(a.fields.size()) + " fields");
  lines.push_back(a.options.corners ? "corners" : "no corners");
  return lines;
}

// Loops go over elements in the order in which they are in memory, but must on all ranks be the
// same.
void plan::agree_on_order() {
  std::vector<int> all;
  for (const array_layout& field : fields_) {
    const std::vector<int> order = memory_order(field);
    all.insert(all.end(), order.begin(), order.end());
  }
  check("MPI_Bcast", PMPI_Bcast(all.data(), int(all.size()), MPI_INT, 0, comm_));
  for (auto at = all.begin(); at != all.end(); at += std::ptrdiff_t(all.size() / fields_.size()))
    orders_.emplace_back(at, at + std::ptrdiff_t(all.size() / fields_.size()));
}

shift plan::make_shift(const mpi::halo_arguments& a, const std::vector<int>& steps,
                       const reach& along) const {
  std::vector<int> back = steps;
  for (int& step : back) step = -step;
  const int to = a.grid.neighbour(rank_, steps), from = a.grid.neighbour(rank_, back);
  shift s;
  if (to != process_grid::no_rank) s.to = to;
  if (from != process_grid::no_rank) s.from = from;
  std::vector<strided> sent, received;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    sent.push_back(sent_part(fields_[f], a.widths, steps, orders_[f], along));
    received.push_back(received_part(fields_[f], a.widths, back, orders_[f], along));
  }
  s.sent = side(std::move(sent), fields_, comm_);
  s.received = side(std::move(received), fields_, comm_);
  const std::vector<int> at = a.grid.coordinates(rank_);
  for (std::size_t k = steps.size(); k-- > 0;)
    if (steps[k] != 0 && a.grid.extents[k] > 1) s.receives_first = at[k] % 2 != 0;
  return s;
}

void plan::make_shifts(const mpi::halo_arguments& a) {
  for (const array_layout& field : fields_) ranges_.push_back(range_of(field));
  std::vector<bool> cut;
  for (const std::int64_t width : a.widths) cut.push_back(width > 0);
  std::int64_t own_bytes = 0;
  int tag = 0;
  for (const std::vector<int>& steps : steps_to_neighbours(cut, a.options.corners)) {
    shift s = make_shift(a, steps, {});
    s.tag = tag++;
    if (s.to == rank_) {
      own_bytes = std::max(own_bytes, s.sent.bytes());
      own_.push_back(std::move(s));
    } else {
      shifts_.push_back(std::move(s));
    }
  }
  own_message_.resize(std::size_t(own_bytes));
  make_forwarding(a, cut, tag);
  for (auto* some : {&shifts_, &forwarding_}) {
    std::int64_t& end = some == &shifts_ ? packed_bytes_ : forwarding_bytes_;
    for (shift& s : *some) {
      s.sent_offset_bytes = end;
      s.received_offset_bytes = end + slot_bytes(s.sent.bytes());
      end = s.received_offset_bytes + slot_bytes(s.received.bytes());
    }
  }
}

// Sides take along what has come in the dimensions before. Those in which this rank is its own
// neighbour are copied before all others.
void plan::make_forwarding(const mpi::halo_arguments& a, const std::vector<bool>& cut, int tag) {
  const std::size_t d = cut.size();
  reach along(d);
  const auto step = [d](std::size_t k, int by) {
    std::vector<int> steps(d, 0);
    steps[k] = by;
    return steps;
  };
  const auto has_come = [&](std::size_t k) {
    if (!a.options.corners) return;
    for (const int end : {0, 1})
      along[k][std::size_t(end)] =
          a.grid.neighbour(rank_, step(k, 2 * end - 1)) != process_grid::no_rank;
  };
  for (std::size_t k = 0; k < d; ++k)
    if (cut[k] && a.grid.extents[k] == 1) has_come(k);
  for (std::size_t k = 0; k < d; ++k) {
    if (!cut[k] || a.grid.extents[k] == 1) continue;
    for (const int by : {-1, 1}) {
      forwarding_.push_back(make_shift(a, step(k, by), along));
      forwarding_.back().tag = tag++;
    }
    has_come(k);
  }
}

// Each rank learns where its neighbours keep sent and received elements, and whether sizes match.
std::string plan::meet_neighbours(std::size_t d) {
  const std::size_t words_of_field = 2 + 2 * d;
  const std::size_t words = 1 + words_of_field * fields_.size();
  const auto describe = [&](const side& s, std::int64_t packed_offset_bytes) {
    std::vector<std::int64_t> result{packed_offset_bytes};
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const strided& part = s.part(f);
      result.push_back(halo::packed_bytes(fields_[f]));
      result.push_back(std::int64_t(part.first - ranges_[f].begin));
      result.insert(result.end(), part.counts.begin(), part.counts.end());
      result.insert(result.end(), part.strides_bytes.begin(), part.strides_bytes.end());
    }
    return result;
  };
  std::vector<std::vector<std::int64_t>> mine, theirs;
  std::vector<MPI_Request> requests;
  mine.reserve(2 * shifts_.size());
  theirs.reserve(2 * shifts_.size());
  const auto swap = [&](int to, std::vector<std::int64_t> about, int from, int tag) {
    mine.push_back(std::move(about));
    theirs.emplace_back(words);
    requests.insert(requests.end(), 2, MPI_REQUEST_NULL);
    check("MPI_Isend", PMPI_Isend(mine.back().data(), int(words), MPI_INT64_T, to, tag, comm_,
                                  &requests.end()[-1]));
    check("MPI_Irecv", PMPI_Irecv(theirs.back().data(), int(words), MPI_INT64_T, from, tag, comm_,
                                  &requests.end()[-2]));
  };
  for (const shift& s : shifts_) {
    swap(s.from, describe(s.received, s.received_offset_bytes), s.to, 2 * s.tag);
    swap(s.to, describe(s.sent, s.sent_offset_bytes), s.from, 2 * s.tag + 1);
  }
  check("MPI_Waitall", PMPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE));

  const auto read = [&](const std::vector<std::int64_t>& from, const side& mine_there, int peer) {
    remote_side result{.packed_offset_bytes = from[0]};
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const auto at = from.begin() + std::ptrdiff_t(1 + f * words_of_field);
      const auto counts = at + 2, strides = counts + std::ptrdiff_t(d);
      strided part{.counts = {counts, strides},
                   .strides_bytes = {strides, strides + std::ptrdiff_t(d)}};
      if (at[0] != halo::packed_bytes(fields_[f]) || part.counts != mine_there.part(f).counts)
        throw error("field " + std::to_string(f) + ": its side towards rank " +
                    std::to_string(peer) + " has " + std::to_string(mine_there.part(f).elements()) +
                    " elements of " + std::to_string(halo::packed_bytes(fields_[f])) +
                    " bytes; over there " + std::to_string(part.elements()) + " of " +
                    std::to_string(at[0]) + ", or in other dimensions");
      result.parts.push_back(std::move(part));
      result.offsets_bytes.push_back(at[1]);
    }
    return result;
  };
  return problem_of([&] {
    for (std::size_t i = 0; i < shifts_.size(); ++i) {
      shift& s = shifts_[i];
      if (s.to != MPI_PROC_NULL) s.received_there = read(theirs[2 * i], s.sent, s.to);
      if (s.from != MPI_PROC_NULL) s.sent_there = read(theirs[2 * i + 1], s.received, s.from);
    }
  });
}

std::int64_t plan::most_pieces() const {
  std::int64_t most = 0;
  for (const shift& s : shifts_) most = std::max(most, s.sent.pieces());
  return most;
}

std::vector<std::int64_t> plan::message_lengths() const {
  std::vector<std::int64_t> bytes(shifts_.size() + own_.size());
  for (const shift& s : shifts_)
    if (s.to != MPI_PROC_NULL) bytes[std::size_t(s.tag)] = s.sent.bytes();
  check("MPI_Allreduce",
        PMPI_Allreduce(MPI_IN_PLACE, bytes.data(), int(bytes.size()), MPI_INT64_T, MPI_MAX, comm_));
  return longest_by_side(bytes, most_lengths);
}

std::vector<std::byte> plan::received_elements() const {
  std::vector<std::byte> all;
  for (const auto* some : {&shifts_, &own_})
    for (const shift& s : *some) {
      all.resize(all.size() + std::size_t(s.received.bytes()));
      s.received.pack(all.data() + all.size() - s.received.bytes());
    }
  return all;
}

void plan::put_back(const std::vector<std::byte>& received) const {
  const std::byte* from = received.data();
  for (const auto* some : {&shifts_, &own_})
    for (const shift& s : *some) {
      s.received.unpack(from);
      from += s.received.bytes();
    }
}

void plan::copy_own_sides() const {
  for (const shift& s : own_) {
    s.sent.pack(own_message_.data());
    s.received.unpack(own_message_.data());
  }
}

}  // namespace railpass::internal::halo
