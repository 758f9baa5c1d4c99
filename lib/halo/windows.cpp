// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/windows.hpp"

#include <algorithm>
#include <utility>

namespace railpass::internal::halo {

rank_group::rank_group(MPI_Comm comm, std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::erase(ranks, MPI_PROC_NULL);
  if (ranks.empty()) return;
  MPI_Group all = MPI_GROUP_NULL;
  check("MPI_Comm_group", PMPI_Comm_group(comm, &all));
  const int code = PMPI_Group_incl(all, int(ranks.size()), ranks.data(), &handle_);
  PMPI_Group_free(&all);
  check("MPI_Group_incl", code);
}

rank_group::rank_group(rank_group&& other) noexcept
    : handle_(std::exchange(other.handle_, MPI_GROUP_EMPTY)) {}

rank_group::~rank_group() {
  if (handle_ != MPI_GROUP_EMPTY) PMPI_Group_free(&handle_);
}

windows::windows(const plan& p, layout in)
    : plan_(p), puts_(p.shifts().size()), gets_(puts_.size()) {
  if (p.shifts().empty()) return;  // Open MPI makes none for a rank alone
  if (in == layout::derived)
    make_field_windows();
  else
    make_packed_window();
}

windows::~windows() {
  for (MPI_Win& window : windows_) PMPI_Win_free(&window);
}

void windows::make_window(std::byte* begin, std::size_t bytes) {
  MPI_Win window = MPI_WIN_NULL;
  const int code =
      begin ? PMPI_Win_create(begin, MPI_Aint(bytes), 1, MPI_INFO_NULL, plan_.comm(), &window)
            : PMPI_Win_allocate(MPI_Aint(bytes), 1, MPI_INFO_NULL, plan_.comm(), &slots_, &window);
  // Where only some ranks have one, it cannot be freed either.
  if (!on_all(plan_.comm(), code == MPI_SUCCESS))
    throw unavailable{"the MPI library makes no window of this memory"};
  windows_.push_back(window);
  check("MPI_Win_set_errhandler", PMPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
}

std::vector<windows::transfer> windows::between_fields(const side& here,
                                                       const remote_side& there) const {
  std::vector<transfer> result;
  for (std::size_t f = 0; f < plan_.fields().size(); ++f) {
    const array_layout& field = plan_.fields()[f];
    result.push_back({.window = windows_[f],
                      .here = here.part(f).first,
                      .there_bytes = MPI_Aint(there.offsets_bytes[f]),
                      .here_type = strided_type(here.part(f), field),
                      .there_type = strided_type(there.parts[f], field)});
  }
  return result;
}

void windows::make_field_windows() {
  bool apart = true;
  for (std::size_t f = 0; f < plan_.fields().size(); ++f)
    for (std::size_t g = 0; g < f; ++g)
      if (plan_.range(f).begin < plan_.range(g).end && plan_.range(g).begin < plan_.range(f).end)
        apart = false;
  if (!on_all(plan_.comm(), apart))
    throw unavailable{"fields lie within each other, and windows must not overlap"};
  for (std::size_t f = 0; f < plan_.fields().size(); ++f) {
    const memory_range range = plan_.range(f);
    make_window(range.begin, std::size_t(range.end - range.begin));
  }
  for (std::size_t i = 0; i < plan_.shifts().size(); ++i) {
    const shift& s = plan_.shifts()[i];
    if (s.to != MPI_PROC_NULL) puts_[i] = between_fields(s.sent, s.received_there);
    if (s.from != MPI_PROC_NULL) gets_[i] = between_fields(s.received, s.sent_there);
  }
}

void windows::make_packed_window() {
  make_window(nullptr, std::size_t(std::max<std::int64_t>(1, plan_.packed_bytes())));
  for (std::size_t i = 0; i < plan_.shifts().size(); ++i) {
    const shift& s = plan_.shifts()[i];
    const auto whole = [&](std::int64_t here, std::int64_t there, std::int64_t bytes) {
      return transfer{.window = windows_[0],
                      .here = slots_ + here,
                      .there_bytes = MPI_Aint(there),
                      .here_type = bytes_type(bytes),
                      .there_type = bytes_type(bytes)};
    };
    if (s.to != MPI_PROC_NULL)
      puts_[i].push_back(
          whole(s.sent_offset_bytes, s.received_there.packed_offset_bytes, s.sent.bytes()));
    if (s.from != MPI_PROC_NULL)
      gets_[i].push_back(
          whole(s.received_offset_bytes, s.sent_there.packed_offset_bytes, s.received.bytes()));
  }
}

void windows::put(std::size_t shift) {
  for (const transfer& t : puts_[shift])
    check("MPI_Put", PMPI_Put(t.here, 1, t.here_type, plan_.shifts()[shift].to, t.there_bytes, 1,
                              t.there_type, t.window));
}

void windows::get(std::size_t shift) {
  for (const transfer& t : gets_[shift])
    check("MPI_Get", PMPI_Get(t.here, 1, t.here_type, plan_.shifts()[shift].from, t.there_bytes, 1,
                              t.there_type, t.window));
}

void windows::pack_all() {
  if (!slots_) return;
  for (const shift& s : plan_.shifts())
    if (s.to != MPI_PROC_NULL) s.sent.pack(slots_ + s.sent_offset_bytes);
}

void windows::unpack_all() {
  if (!slots_) return;
  for (const shift& s : plan_.shifts())
    if (s.from != MPI_PROC_NULL) s.received.unpack(slots_ + s.received_offset_bytes);
}

}  // namespace railpass::internal::halo
