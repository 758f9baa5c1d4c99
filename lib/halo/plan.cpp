// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/plan.hpp"

#include "railpass/base/error.hpp"

#include <algorithm>
#include <limits>
#include <new>

namespace railpass::halo {

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

// Runs what concerns this rank alone, and has all ranks hear of it where that fails.
template <class F>
void on_each(MPI_Comm comm, const F& what) {
  std::string problem;
  try {
    what();
  } catch (const error& e) {
    problem = e.what();
  } catch (const std::bad_alloc&) {
    problem = "there is not enough memory";
  } catch (const mpi_failure& e) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    PMPI_Error_string(e.code, text, &length);
    problem = std::string(e.call) + ": " + std::string(text, std::size_t(length));
  }
  agree(comm, problem);
}

}  // namespace

void agree(MPI_Comm comm, const std::string& problem) {
  int rank = 0, length = int(problem.size());
  check("MPI_Comm_rank", PMPI_Comm_rank(comm, &rank));
  int first = problem.empty() ? std::numeric_limits<int>::max() : rank;
  check("MPI_Allreduce", PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm));
  if (first == std::numeric_limits<int>::max()) return;
  check("MPI_Bcast", PMPI_Bcast(&length, 1, MPI_INT, first, comm));
  std::string told = problem;
  told.resize(std::size_t(length));
  check("MPI_Bcast", PMPI_Bcast(told.data(), length, MPI_CHAR, first, comm));
  throw error("halo_exchange: rank " + std::to_string(first) + ": " + told);
}

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
  type_ = absolute_type(types);
  if (plain)
    for (std::size_t f = 0; f < fields.size(); ++f)
      plain_.emplace_back(parts_[f], fields[f].element_bytes);
  else if (bytes_ > std::numeric_limits<int>::max())
    throw error("a side has " + std::to_string(bytes_) +
                " bytes; of elements with an MPI datatype at most 2147483647 can be packed");
}

void side::pack(std::byte* to) const {
  for (const runs& r : plain_) to = r.pack(to);
  if (!plain_.empty()) return;
  int position = 0;
  check("MPI_Pack", PMPI_Pack(MPI_BOTTOM, 1, type_, to, int(bytes_), &position, comm_));
}

void side::unpack(const std::byte* from) const {
  for (const runs& r : plain_) from = r.unpack(from);
  if (!plain_.empty()) return;
  int position = 0;
  check("MPI_Unpack", PMPI_Unpack(from, int(bytes_), &position, MPI_BOTTOM, 1, type_, comm_));
}

plan::plan(MPI_Comm comm, const mpi::halo_arguments& a) : comm_(comm), fields_(a.fields) {
  check("MPI_Comm_rank", PMPI_Comm_rank(comm, &rank_));
  on_each(comm, [&] { check_arguments(a); });
  check_equal(a);
  agree_on_order();
  on_each(comm, [&] { make_shifts(a); });
  meet_neighbours(a);
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
  if (a.fields.empty()) throw error("there is no field");
  for (std::size_t f = 0; f < a.fields.size(); ++f) {
    const array_layout& field = a.fields[f];
    const std::string where = "field " + std::to_string(f) + ": ";
    if (field.extents.size() != d || field.strides_bytes.size() != d)
      throw error(where + "it has not the grid's " + std::to_string(d) + " dimensions");
    if (!field.data) throw error(where + "its address is null");
    if (halo::packed_bytes(field) < 1) throw error(where + "its elements are empty");
    for (std::size_t k = 0; k < d; ++k) {
      const std::int64_t least = std::max<std::int64_t>(1, a.widths[k]);
      if (field.extents[k] - 2 * a.widths[k] < least)
        throw error(where + std::to_string(field.extents[k] - 2 * a.widths[k]) +
                    " elements of its own" + in_dimension(k) + "; expected at least " +
                    std::to_string(least));
    }
  }
}

void plan::check_equal(const mpi::halo_arguments& a) const {
  std::vector<std::int64_t> words{std::int64_t(a.grid.extents.size()),
                                  std::int64_t(a.fields.size()), a.options.corners};
  for (std::size_t k = 0; k < a.grid.extents.size(); ++k)
    words.insert(words.end(), {a.grid.extents[k], a.grid.periodic[k], a.widths[k]});
  words.insert(words.end(), a.options.name.begin(), a.options.name.end());
  int count = int(words.size());
  check("MPI_Bcast", PMPI_Bcast(&count, 1, MPI_INT, 0, comm_));
  std::vector<std::int64_t> of_first = words;
  of_first.resize(std::size_t(count));
  check("MPI_Bcast", PMPI_Bcast(of_first.data(), count, MPI_INT64_T, 0, comm_));
  agree(comm_, words == of_first ? ""
                                 : "the grid, the widths, the number of fields, the corners or the "
                                   "name differ from those of rank 0");
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

void plan::make_shifts(const mpi::halo_arguments& a) {
  for (const array_layout& field : fields_) ranges_.push_back(range_of(field));
  std::vector<bool> cut;
  for (const std::int64_t width : a.widths) cut.push_back(width > 0);
  const std::vector<int> at = a.grid.coordinates(rank_);
  std::int64_t own_bytes = 0;
  for (const std::vector<int>& steps : steps_to_neighbours(cut, a.options.corners)) {
    std::vector<int> back = steps;
    for (int& step : back) step = -step;
    shift s{.tag = int(shifts_.size() + own_.size())};
    std::vector<strided> sent, received;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      sent.push_back(sent_part(fields_[f], a.widths, steps, orders_[f]));
      received.push_back(received_part(fields_[f], a.widths, back, orders_[f]));
    }
    s.sent = side(std::move(sent), fields_, comm_);
    s.received = side(std::move(received), fields_, comm_);
    const int to = a.grid.neighbour(rank_, steps), from = a.grid.neighbour(rank_, back);
    if (to == rank_) {
      own_bytes = std::max(own_bytes, s.sent.bytes());
      own_.push_back(std::move(s));
      continue;
    }
    if (to != process_grid::no_rank) s.to = to;
    if (from != process_grid::no_rank) s.from = from;
    for (std::size_t k = steps.size(); k-- > 0;)
      if (steps[k] != 0 && a.grid.extents[k] > 1) s.receives_first = at[k] % 2 != 0;
    for (auto [place, of] : {std::pair(&s.sent_place_bytes, &s.sent),
                             std::pair(&s.received_place_bytes, &s.received)}) {
      *place = packed_bytes_;
      packed_bytes_ += slot_bytes(of->bytes());
    }
    shifts_.push_back(std::move(s));
  }
  own_message_.resize(std::size_t(own_bytes));
}

// Each rank learns where its neighbours keep what it sends and receives, and whether it fits.
void plan::meet_neighbours(const mpi::halo_arguments& a) {
  const std::size_t d = a.widths.size(), words_of_field = 2 + 2 * d;
  const std::size_t words = 1 + words_of_field * fields_.size();
  const auto describe = [&](const side& s, std::int64_t packed_place_bytes) {
    std::vector<std::int64_t> result{packed_place_bytes};
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
    swap(s.from, describe(s.received, s.received_place_bytes), s.to, 2 * s.tag);
    swap(s.to, describe(s.sent, s.sent_place_bytes), s.from, 2 * s.tag + 1);
  }
  check("MPI_Waitall", PMPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE));

  const auto read = [&](const std::vector<std::int64_t>& from, const side& mine_there, int peer) {
    remote_side result{.packed_place_bytes = from[0]};
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
      result.places_bytes.push_back(at[1]);
    }
    return result;
  };
  on_each(comm_, [&] {
    for (std::size_t i = 0; i < shifts_.size(); ++i) {
      shift& s = shifts_[i];
      if (s.to != MPI_PROC_NULL) s.received_there = read(theirs[2 * i], s.sent, s.to);
      if (s.from != MPI_PROC_NULL) s.sent_there = read(theirs[2 * i + 1], s.received, s.from);
    }
  });
}

void plan::copy_own_sides() const {
  for (const shift& s : own_) {
    s.sent.pack(own_message_.data());
    s.received.unpack(own_message_.data());
  }
}

}  // namespace railpass::halo
