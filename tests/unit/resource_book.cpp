// SPDX-License-Identifier: BSL-1.0
//
// All interleavings in which ranks and their threads use the same slot of shared memory one after
// the other, with the real book and real memory. Each rank may be late at any step.
#include "lib/group/resource_book.hpp"

#include "support/catch.hpp"
#include "support/sanitized.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

constexpr int num_ranks = 3, num_communicators = 3;

// The actions of a rank's thread for a communicator; each action is atomic.
enum class deed : std::uint8_t {
  offer,  // says whether the slot is free
  agree,  // waits for all ranks' answers; continues only if all ranks say yes
  take,
  take_at_once,    // without threads: the slot on which all ranks have agreed
  take_from_idle,  // all ranks have left the slot
  join,            // learns the first number
  call,            // rank 0 publishes, all other ranks read
  acknowledge,
  leave,  // no more reads of other ranks' memory
  give_back,
  give_back_untaken  // only if some rank has not taken the slot
};
struct task {
  deed what;
  int communicator;
};
using script = std::vector<task>;

void add(script& s, int communicator, std::initializer_list<deed> deeds) {
  for (const deed d : deeds) s.push_back({d, communicator});
}
void begin(script& s, int c) {
  add(s, c,
      {deed::offer, deed::agree, deed::take, deed::agree, deed::give_back_untaken, deed::join});
}
void use(script& s, int c, int calls) {
  for (int i = 0; i < calls; ++i) add(s, c, {deed::call, deed::acknowledge});
}
void end(script& s, int c) { add(s, c, {deed::leave, deed::give_back}); }

// A wrong book, which checks a slot at the offer and takes it without a second check.
class careless_book {
 public:
  void add_slot(cell_region own) { own_ = own; }
  resource_book::slot_set free_slots() {
    resource_book::slot_set free;
    if (in_use_ || own_.readers_left().load() != readers_) return free;
    own_.begin_anew();
    free.add(0);
    return free;
  }
  bool take_slot(int, bool = false) { return !std::exchange(in_use_, true); }
  void give_back_slot(int, std::uint64_t readers) {
    in_use_ = false;
    readers_ += readers;
  }

 private:
  cell_region own_;
  bool in_use_ = false;
  std::uint64_t readers_ = 0;
};

// A thread of a rank.
struct actor {
  int rank = 0;
  std::size_t script = 0;
  std::uint8_t at = 0;
  bool took = false, without = false;  // a slot
  std::uint8_t calls = 0;              // in the thread's communicator
};

template <class Book>
class explorer {
 public:
  explicit explorer(std::vector<script> scripts) : scripts_(std::move(scripts)) {
    for (int r = 0; r < num_ranks; ++r) {
      memory_.emplace_back(new (std::align_val_t{4096}) std::byte[cell_region::bytes]{});
      world_.books[std::size_t(r)].add_slot(cell_region(memory_.back().get()));
      for (std::size_t s = 0; s < scripts_.size(); ++s)
        world_.actors.push_back({.rank = r, .script = s});
    }
  }

  // Returns an empty text if all states are right.
  std::string explore() {
    std::vector<world> open{world_};
    seen_.insert(key(world_));
    while (!open.empty() && wrong_.empty()) {
      const world here = std::move(open.back());
      open.pop_back();
      bool can_go_on = false, all_done = true;
      for (std::size_t a = 0; a < here.actors.size() && wrong_.empty(); ++a) {
        if (is_done(here.actors[a])) continue;
        all_done = false;
        world next = here;
        restore(here);
        if (!step(next, next.actors[a])) continue;
        go_on(next);
        can_go_on = true;
        keep(next);
        if (seen_.insert(key(next)).second) open.push_back(std::move(next));
      }
      if (!all_done && !can_go_on) stuck_ = true;
      if (all_done) ++ends_;
    }
    return wrong_.empty() && stuck_ ? "nobody can go on" : wrong_;
  }
  std::size_t states() const { return seen_.size(); }
  std::size_t ends() const { return ends_; }
  std::size_t used() const { return used_; }

 private:
  struct answers {
    std::uint8_t given = 0, yes = 0;  // a bit per rank
  };
  // Everything except the books' private state follows from the actors' positions.
  struct world {
    std::array<Book, num_ranks> books;
    std::vector<actor> actors;
    std::array<std::array<answers, 2>, num_communicators> asked{};
    // By communicator and rank: the memory of all ranks as the rank knows it.
    std::array<std::array<std::array<cell_region, num_ranks>, num_ranks>, num_communicators>
        joined{};
    std::array<std::array<std::byte, 3 * cell_region::line_bytes>, num_ranks> memory{};
    std::array<std::uint8_t, num_ranks> given_back{};
  };
  struct freed {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{4096}); }
  };

  bool is_done(const actor& a) const { return a.at == scripts_[a.script].size(); }

  // The words of the head, and the first cell.
  void keep(world& w) const {
    for (std::size_t r = 0; r < num_ranks; ++r)
      std::memcpy(w.memory[r].data(), memory_[r].get(), w.memory[r].size());
  }
  void restore(const world& w) const {
    for (std::size_t r = 0; r < num_ranks; ++r)
      std::memcpy(memory_[r].get(), w.memory[r].data(), w.memory[r].size());
  }
  static std::uint64_t key(const world& w) {
    std::uint64_t k = 0;
    const auto put = [&](const auto& x) {
      const std::string_view bytes(reinterpret_cast<const char*>(&x), sizeof x);
      k = (k ^ std::hash<std::string_view>{}(bytes)) * 0x9e3779b97f4a7c15u;
      k ^= k >> 29;
    };
    for (const actor& a : w.actors) {
      put(a.at);
      put(std::uint8_t(a.took | a.without << 1));
      put(a.calls);
    }
    put(w.asked);
    put(w.joined);
    put(w.given_back);
    for (const auto& m : w.memory)
      for (std::size_t i = 0; i < m.size(); i += sizeof(std::uint64_t))
        if (std::uint64_t word; std::memcpy(&word, &m[i], sizeof word), i % 64 < 24) put(word);
    return k;
  }

  // Returns false if the actor has to wait.
  bool step(world& w, actor& a) {
    const bool done = act(w, a, scripts_[a.script][a.at]);
    if (done) ++a.at;
    return done;
  }
  // Actions that no other actor can observe run at once, without a separate state.
  void go_on(world& w) {
    for (actor& a : w.actors)
      while (!is_done(a) && is_of_no_account(a) && step(w, a)) {
      }
  }
  bool is_of_no_account(const actor& a) const {
    const deed what = scripts_[a.script][a.at].what;
    return what == deed::agree || (a.without && !a.took) ||
           (!a.without && what == deed::give_back_untaken);
  }
  bool act(world& w, actor& a, const task& t) {
    const auto c = std::size_t(t.communicator);
    Book& book = w.books[std::size_t(a.rank)];
    if (a.without && t.what == deed::give_back_untaken && std::exchange(a.took, false))
      book.give_back_slot(0, 0);
    if (a.without) return true;
    answers& asked = w.asked[c][agreements_before(a)];
    switch (t.what) {
      case deed::offer:
        answer(asked, a.rank, book.free_slots().has(0));
        return true;
      case deed::agree:
        return agree(asked, a);
      case deed::take:
      case deed::take_from_idle:
        a.took = book.take_slot(0, t.what == deed::take_from_idle);
        answer(asked, a.rank, a.took);
        return true;
      case deed::take_at_once:
        a.took = book.take_slot(0);
        if (!a.took) wrong_ = "rank " + std::to_string(a.rank) + " does not get what was agreed on";
        return true;
      case deed::give_back_untaken:
        return true;
      case deed::join:
        for (std::size_t r = 0; r < num_ranks; ++r)
          w.joined[c][std::size_t(a.rank)][r] = cell_region(memory_[r].get());
        ++used_;
        return true;
      case deed::call:
        return call(w, a, c);
      case deed::acknowledge:
        w.joined[c][std::size_t(a.rank)][std::size_t(a.rank)].acknowledge(number_of(a) + 1);
        ++a.calls;
        return true;
      case deed::leave:
        for (int r = 0; r < num_ranks; ++r)
          if (r != a.rank) cell_region(memory_[std::size_t(r)].get()).readers_left().fetch_add(1);
        return true;
      case deed::give_back:
        book.give_back_slot(0, num_ranks - 1);
        ++w.given_back[std::size_t(a.rank)];
        a.took = false;
        a.calls = 0;
        return true;
    }
    return true;
  }
  std::size_t agreements_before(const actor& a) const {
    const script& s = scripts_[a.script];
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.at; ++i)
      if (s[i].what == deed::agree && s[i].communicator == s[a.at].communicator) ++n;
    return n;
  }
  static void answer(answers& of, int rank, bool yes) {
    of.given = std::uint8_t(of.given | 1 << rank);
    of.yes = std::uint8_t(of.yes | int(yes) << rank);
  }
  bool agree(const answers& of, actor& a) {
    constexpr int all = (1 << num_ranks) - 1;
    if (of.given != all) return false;
    if (of.yes == all) return true;
    a.without = true;
    return true;
  }
  // All calls use the same cell.
  static std::uint64_t number_of(const actor& a) { return a.calls * cell_region::num_cells[0]; }
  bool call(const world& w, const actor& a, std::size_t c) {
    constexpr cell_ring ring = cell_ring::published;
    const auto& regions = w.joined[c][std::size_t(a.rank)];
    const std::uint64_t number = number_of(a);
    std::byte& content = *regions[0].content(ring, number);
    const auto value = std::byte(100 * (c + 1) + a.calls);
    if (a.rank == 0) {
      const std::uint64_t before = acknowledged_before(number, cell_region::num_cells[0]);
      for (std::size_t r = 1; r < num_ranks; ++r)
        if (regions[r].first_needed() < before) return false;
      content = value;
      regions[0].show(ring, number, {});
      return true;
    }
    if (!regions[0].shows(ring, number)) return false;
    if (content != value)
      wrong_ = "rank " + std::to_string(a.rank) + " reads " + std::to_string(int(content)) +
               " instead of " + std::to_string(int(value));
    return true;
  }

  std::vector<script> scripts_;
  std::vector<std::unique_ptr<std::byte[], freed>> memory_;
  world world_;
  std::unordered_set<std::uint64_t> seen_;
  std::string wrong_;
  bool stuck_ = false;
  std::size_t ends_ = 0, used_ = 0;
};

script life(int communicator, int calls) {
  script s;
  begin(s, communicator);
  use(s, communicator, calls);
  end(s, communicator);
  return s;
}

}  // namespace

TEST_CASE("threads whose communicators want the same slot never read each other's data") {
  explorer<resource_book> all({life(0, 2), life(1, 2)});
  CHECK(all.explore() == "");
  CHECK(all.ends() > 0);
  CHECK(all.used() > 0);
  CHECK(all.states() > 10'000);
}

TEST_CASE("three of them do not, either") {
  if (test::sanitized) return;
  explorer<resource_book> all({life(0, 1), life(1, 1), life(2, 1)});
  CHECK(all.explore() == "");
  CHECK(all.ends() > 0);
}

TEST_CASE("without threads a slot that all have offered can be taken at once") {
  script both;
  for (const int c : {0, 1}) {
    add(both, c, {deed::offer, deed::agree, deed::take_at_once, deed::join});
    use(both, c, 1);
    end(both, c);
  }
  explorer<resource_book> all({both});
  CHECK(all.explore() == "");
  CHECK(all.ends() > 0);
  CHECK(all.used() > 0);
}

TEST_CASE("a slot that an idle communicator has given up is another one's at once") {
  script both;
  begin(both, 0);
  use(both, 0, 2);
  end(both, 0);
  add(both, 1, {deed::take_from_idle, deed::agree, deed::join});
  use(both, 1, 2);
  end(both, 1);
  explorer<resource_book> all({both});
  CHECK(all.explore() == "");
  CHECK(all.ends() > 0);
  CHECK(all.used() > 0);
}

TEST_CASE("a book that takes a slot without another look gives a rank another one's data") {
  explorer<careless_book> all({life(0, 1), life(1, 1)});
  CHECK_THAT(all.explore(), ContainsSubstring(" reads "));
}
