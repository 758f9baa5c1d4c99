// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "collectives/algorithm.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/hash.hpp"

#include <memory>
#include <vector>

namespace railpass::internal {

/// The schedule and its phases, each with a serial number that no other schedule of this process
/// has. Thread-safe.
schedule numbered(schedule s);

/// Schedules built lately. Schedules depend on neither size nor buffers, so the key is the arm and
/// the shape. Beyond `capacity` schedules, the least recently used schedule is dropped. Local. A
/// list of nodes that a shape has borrowed must not change during the life of the cache.
class schedule_cache {
 public:
  explicit schedule_cache(std::size_t capacity = 128) : capacity_(capacity) {
    if (capacity == 0) throw error("schedule_cache: capacity is 0, expected at least 1");
  }

  /// The schedule, built now if need be. `a` must not be a native arm. The reference is valid until
  /// the next call; copy the pointer to keep the schedule for longer.
  const std::shared_ptr<const schedule>& find_or_build(const algorithm& a, const parameters& values,
                                                       const shape& s) {
    const std::uint32_t hash = hash_of(a, values, s);
    ++now_;
    for (std::size_t i = 0; i < hashes_.size(); ++i) {
      if (hashes_[i] != hash) continue;
      entry& e = entries_[i];
      if (e.base != &a || e.values != values || e.rank != s.rank || e.num_ranks != s.num_ranks ||
          e.commutative != s.commutative || e.result_rank != s.result_rank || e.nodes != s.nodes)
        continue;
      e.last_used = now_;
      return e.built;
    }
    auto built = std::make_shared<const schedule>(numbered(a.build(s, values)));
    std::size_t index = hashes_.size();
    if (index < capacity_) {
      entries_.resize(index + 1);  // if there is memory for one of them only, neither counts
      hashes_.emplace_back();
    } else {
      index = 0;
      for (std::size_t i = 1; i < hashes_.size(); ++i)
        if (entries_[i].last_used < entries_[index].last_used) index = i;
    }
    hashes_[index] = hash;
    entries_[index] = {&a,      values, s.rank,          s.num_ranks, s.commutative, s.result_rank,
                       s.nodes, now_,   std::move(built)};
    return entries_[index].built;
  }

  std::size_t size() const { return hashes_.size(); }

 private:
  struct entry {
    const algorithm* base = nullptr;
    parameters values{};
    std::int32_t rank = 0;
    std::int32_t num_ranks = 1;
    bool commutative = true;
    std::int32_t result_rank = 0;
    group_begins nodes;
    std::uint64_t last_used = 0;
    std::shared_ptr<const schedule> built;
  };

  static std::uint32_t hash_of(const algorithm& a, const parameters& values, const shape& s) {
    std::uint32_t h = mix(0, reinterpret_cast<std::uintptr_t>(&a));
    for (const std::int64_t v : values) h = mix(h, static_cast<std::uint64_t>(v));
    h = mix(h, std::uint64_t(std::uint32_t(s.rank)) << 32 | std::uint32_t(s.num_ranks));
    h = mix(h, std::uint64_t(std::uint32_t(s.result_rank)) << 1 | (s.commutative ? 1 : 0));
    return mix(h, s.nodes.hash());
  }

  std::size_t capacity_;
  std::uint64_t now_ = 0;
  std::vector<std::uint32_t> hashes_;  // apart from the entries: a search touches few cache lines
  std::vector<entry> entries_;
};

}  // namespace railpass::internal
