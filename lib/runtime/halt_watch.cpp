// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/halt_watch.hpp"

#include "lib/files/files.hpp"
#include "lib/runtime/log.hpp"
#include "lib/runtime/own_thread.hpp"
#include "lib/store/folder.hpp"
#include "lib/store/halts.hpp"
#include "lib/store/store.hpp"
#include "railpass/knowledge/halts.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace railpass::internal {

// Never destroyed, as the thread runs until the process ends.
struct halt_watch::watched {
  static constexpr std::size_t most_idle = 64;            // communicators outside arms in a file
  static constexpr double least_s = 0.01, most_s = 3600;  // of the period, whatever the setting
  static constexpr auto patience = std::chrono::milliseconds(50);

  std::mutex mutex;  // of everything here but the file; never held during calls of the file system
  std::timed_mutex file_mutex;
  bool has_thread = false, has_ended = false;
  bool has_judged = false;  // the watching thread only
  double period_s = 0;
  std::string knowledge, mpi_library, log;
  calls* first = nullptr;
  std::optional<store::halt_file> file;

  static watched& all() {
    alignas(watched) static std::byte memory[sizeof(watched)];
    static watched& one = *::new (memory) watched;
    return one;
  }

  [[noreturn]] void look_on() {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::duration<double>(period_s));
      try {
        look();
      } catch (const std::exception&) {  // no record, for example on a full disk
      }
    }
  }

  void look() {
    const std::lock_guard of_file(file_mutex);
    if (!std::exchange(has_judged, true)) {
      const auto said = store::try_to_judge_halts(store::locations_of(knowledge).own);
      has_judged = said.has_value();
      for (const std::string& sentence : said.value_or(std::vector<std::string>()))
        write_record(log, sentence, true);
    }
    std::optional<knowledge::halted_rank> record = look_at_calls();
    if (!record) return file.reset();
    if (!file) file.emplace(store::locations_of(knowledge).own);
    record->mpi_library = files::this_machine(1, mpi_library).mpi_library;
    record->host = store::own_host();
    record->written_at = files::utc_now();
    file->write(*record);
  }

  // Empty: calls go on.
  std::optional<knowledge::halted_rank> look_at_calls() {
    const std::lock_guard lock(mutex);
    if (!update()) return std::nullopt;
    knowledge::halted_rank record{.railpass_version = RAILPASS_VERSION, .period_s = period_s};
    std::size_t idle = 0;
    for (const calls* one = first; one; one = one->next_)
      if (one->before_.inside || idle++ < most_idle) record.calls.push_back(record_of(*one));
    return record;
  }

  // Whether no call goes on, or a thread is stuck in an arm. A process outside arms must be quiet
  // for longer, because many programs compute for a while.
  bool update() {
    bool is_stuck = false, is_quiet = first && !has_ended;
    for (calls* one = first; one; one = one->next_) {
      const calls::state now = one->seen();
      one->unchanged_ = now == std::exchange(one->before_, now) ? one->unchanged_ + 1 : 0;
      is_stuck = is_stuck || (now.inside && one->unchanged_ > 0);
      is_quiet = is_quiet && one->unchanged_ > 1;
    }
    return !has_ended && (is_stuck || is_quiet);
  }

  knowledge::halted_call record_of(const calls& one) const {
    const calls::state& is = one.before_;
    std::array<char, 17> id;
    std::snprintf(id.data(), id.size(), "%016" PRIx64, one.id_);
    constexpr std::uint64_t op_mask = (std::uint64_t{1} << calls::op_bits) - 1;
    return {.communicator = id.data(),
            .name = one.name_,
            .rank = one.rank_,
            .num_ranks = one.num_ranks_,
            .call = std::int64_t(is.last >> calls::op_bits),
            .collective = std::string(name_of(collective(is.last & op_mask))),
            .arm = is.inside ? name_of(*is.inside) : "",
            .bytes = is.bytes,
            .unchanged_s = one.unchanged_ * period_s};
  }
};

void halt_watch::begin(double period_s, const std::string& knowledge,
                       const std::string& mpi_library, const std::string& log) {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  w.knowledge = knowledge;
  w.mpi_library = mpi_library;
  w.log = log;
  if (period_s > 0) w.period_s = std::clamp(period_s, watched::least_s, watched::most_s);
}

// A file system that blocks the watching thread does not block the program.
void halt_watch::end() {
  watched& w = watched::all();
  {
    const std::lock_guard lock(w.mutex);
    w.has_ended = true;
  }
  if (w.file_mutex.try_lock_for(watched::patience)) {
    w.file.reset();
    w.file_mutex.unlock();
  }
}

void halt_watch::calls::join(std::uint64_t id) {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  if (w.period_s <= 0) return;
  id_ = id;
  is_watched_ = true;
  next_ = std::exchange(w.first, this);
  if (!w.has_thread) w.has_thread = start_thread([&w] { w.look_on(); });
}

void halt_watch::calls::leave() {
  if (!is_watched_) return;
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  is_watched_ = false;
  for (calls** at = &w.first; *at; at = &(*at)->next_)
    if (*at == this) {
      *at = next_;
      break;
    }
}

}  // namespace railpass::internal
