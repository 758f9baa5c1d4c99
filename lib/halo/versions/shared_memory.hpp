// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(shared_memory, at_once, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_SHARED_MEMORY)
#define RAILPASS_HALO_VERSIONS_SHARED_MEMORY

#include "lib/halo/version.hpp"

#include <atomic>
#include <cstring>
#include <sched.h>
#include <vector>

namespace railpass::internal::halo {

/// Ranks of one host pack into the memory from which the receiver unpacks: a copy less than by
/// messages. Between hosts as isend_irecv.
class shared_memory final : public version {
 public:
  shared_memory(resources& shared, pattern, layout in)
      : plan_(shared.of()), messages_(shared.messages_in(in)), slots_(plan_.shifts().size()) {
    check("MPI_Comm_split_type",
          PMPI_Comm_split_type(plan_.comm(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host_));
    check("MPI_Comm_set_errhandler", PMPI_Comm_set_errhandler(host_, MPI_ERRORS_RETURN));
    const std::int64_t marks_bytes = std::int64_t(sizeof(marks)) * std::int64_t(slots_.size());
    std::byte* mine = nullptr;
    const int code = PMPI_Win_allocate_shared(
        MPI_Aint(marks_bytes + std::max<std::int64_t>(64, plan_.packed_bytes())), 1, MPI_INFO_NULL,
        host_, &mine, &window_);
    if (!on_all(plan_.comm(), code == MPI_SUCCESS)) {
      PMPI_Comm_free(&host_);
      throw unavailable{"the MPI library shares no memory between ranks here"};
    }
    std::memset(mine, 0, std::size_t(marks_bytes));
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const shift& s = plan_.shifts()[i];
      if (rank_on_host(s.from) != MPI_UNDEFINED)
        slots_[i].from = slot_of(mine, i, marks_bytes + s.received_offset_bytes);
      if (const int there = rank_on_host(s.to); there != MPI_UNDEFINED)
        slots_[i].to =
            slot_of(memory_of(there), i, marks_bytes + s.received_there.packed_offset_bytes);
    }
    check("MPI_Barrier", PMPI_Barrier(host_));  // no rank fills a slot before it is empty
  }
  ~shared_memory() override {
    PMPI_Win_free(&window_);
    PMPI_Comm_free(&host_);
  }

  void begin() override {
    ++number_;
    requests_.clear();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const shift& s = plan_.shifts()[i];
      if (s.from == MPI_PROC_NULL || slots_[i].from.data) continue;
      const message m = messages_.received(i);
      check("MPI_Irecv", PMPI_Irecv(m.buffer, m.count, m.type, s.from, s.tag, plan_.comm(),
                                    &requests_.emplace_back(MPI_REQUEST_NULL)));
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const shift& s = plan_.shifts()[i];
      if (s.to == MPI_PROC_NULL || slots_[i].to.data) continue;
      messages_.pack(i);
      const message m = messages_.sent(i);
      check("MPI_Isend", PMPI_Isend(m.buffer, m.count, m.type, s.to, s.tag, plan_.comm(),
                                    &requests_.emplace_back(MPI_REQUEST_NULL)));
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const slot& there = slots_[i].to;
      if (!there.data) continue;
      await(there.state->emptied, number_ - 1);
      plan_.shifts()[i].sent.pack(there.data);
      std::atomic_ref(there.state->filled).store(number_, std::memory_order_release);
    }
  }

  void end() override {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const slot& here = slots_[i].from;
      if (!here.data) continue;
      await(here.state->filled, number_);
      plan_.shifts()[i].received.unpack(here.data);
      std::atomic_ref(here.state->emptied).store(number_, std::memory_order_release);
    }
    check("MPI_Waitall",
          PMPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (!slots_[i].from.data) messages_.unpack(i);
  }

 private:
  // The latest exchange in which the slot was filled, and emptied: each written by one rank.
  struct marks {
    alignas(64) std::uint64_t filled;
    alignas(64) std::uint64_t emptied;
  };
  /// The slot of a message, in the receiver's memory.
  struct slot {
    marks* state = nullptr;
    std::byte* data = nullptr;  // null: the other rank is missing or on another host
  };
  struct slots {
    slot to{}, from{};
  };

  static slot slot_of(std::byte* memory, std::size_t i, std::int64_t offset_bytes) {
    return {reinterpret_cast<marks*>(memory) + i, memory + offset_bytes};
  }
  int rank_on_host(int rank) const {
    if (rank == MPI_PROC_NULL) return MPI_UNDEFINED;
    MPI_Group all = MPI_GROUP_NULL, host = MPI_GROUP_NULL;
    int local_rank = MPI_UNDEFINED;
    PMPI_Comm_group(plan_.comm(), &all);
    PMPI_Comm_group(host_, &host);
    PMPI_Group_translate_ranks(all, 1, &rank, host, &local_rank);
    PMPI_Group_free(&all);
    PMPI_Group_free(&host);
    return local_rank;
  }
  std::byte* memory_of(int local_rank) const {
    MPI_Aint bytes = 0;
    int unit = 0;
    std::byte* memory = nullptr;
    check("MPI_Win_shared_query",
          PMPI_Win_shared_query(window_, local_rank, &bytes, &unit, &memory));
    return memory;
  }
  // The other rank may be waiting for a message of the program's, which only moves in MPI calls.
  void await(std::uint64_t& mark, std::uint64_t value) const {
    for (int looks = 1; std::atomic_ref(mark).load(std::memory_order_acquire) != value; ++looks) {
      if (looks % 16 != 0) continue;
      int any = 0;
      check("MPI_Iprobe",
            PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, plan_.comm(), &any, MPI_STATUS_IGNORE));
      sched_yield();
    }
  }

  const plan& plan_;
  messages& messages_;
  MPI_Comm host_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<slots> slots_;  // by shift
  std::vector<MPI_Request> requests_;
  std::uint64_t number_ = 0;
};

}  // namespace railpass::internal::halo

#endif
