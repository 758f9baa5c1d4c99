// SPDX-License-Identifier: BSL-1.0
//
// Explores how ranks come into opened memory, and how it is closed: what lib/exec/relay.hpp does,
// one access to shared memory at a time. One visitor copies from two owners, one after the other;
// the kernel may refuse, then portions are asked for; and any owner's call may fail at any moment,
// which the visitor hears of whenever it waits, or never.
//
// What is proved
//   closing  no owner has left its call while the kernel copies from or to its memory.
//   answers  the visitor gets the portions that it asks for, of that owner.
//   ending   from every state somebody goes on until all have left.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace railpass {

class handovers {
 public:
  /// Each of these may be left out, which shows that this is found out.
  struct rules {
    bool looks_again = true;   ///< the visitor, once it has said that it is inside
    bool waits = true;         ///< an owner that closes, for who is inside
    bool names_owner = true;   ///< what counts requests says, too, of whom they are
    bool later_counts = true;  ///< an answer to a later request than this one: it has been answered
  };
  explicit handovers(const rules& by) : by_(by) {}

  /// What is wrong, or nothing.
  std::string explore() {
    std::vector<state> open{state{}};
    seen_ = {state{}};
    while (!open.empty()) {
      const state now = open.back();
      open.pop_back();
      std::vector<state> next;
      std::string wrong = move_visitor(now, next);
      for (std::uint8_t o = 0; o < 2 && wrong.empty(); ++o) wrong = move_owner(now, o, next);
      if (!wrong.empty()) return wrong;
      if (next.empty() && !has_ended(now)) return "no rank can go on";
      for (const state& s : next)
        if (seen_.insert(s).second) open.push_back(s);
    }
    return {};
  }
  std::size_t num_states() const { return seen_.size(); }

 private:
  static constexpr std::uint8_t portions = 2;
  enum class visitor_at : std::uint8_t {
    waits_for_cell,
    enters,
    looks_again,
    inside,
    copies,
    is_out,
    writes_owner,
    writes_portion,
    asks,
    waits_for_answer,
    left
  };
  enum class owner_at : std::uint8_t {
    opens,
    is_open,
    has_read_asked,
    has_to_look,
    answers,
    tells,
    closes,
    waits_for_visitor,
    left
  };
  struct owner {
    owner_at at = owner_at::opens;
    bool shown = false, failed = false;
    std::uint8_t asked = 0;  // as it has read it
    auto operator<=>(const owner&) const = default;
  };
  struct state {
    visitor_at at = visitor_at::waits_for_cell;
    std::uint8_t whom = 0, portion = 0;  // that it visits, and asks for
    bool refused = false;
    std::array<bool, 2> through{};  // acknowledged
    // Its box.
    std::uint8_t entered = 0, asked = 0, answered = 0, named = 0, box_owner = 0, box_portion = 0;
    std::uint8_t given_by = 0, given = 0;
    std::array<owner, 2> owners{};
    auto operator<=>(const state&) const = default;
  };

  static bool has_ended(const state& s) {
    return s.at == visitor_at::left && s.owners[0].at == owner_at::left &&
           s.owners[1].at == owner_at::left;
  }

  std::string move_visitor(const state& now, std::vector<state>& next) const {
    const owner& theirs = now.owners[now.whom];
    const auto go = [&](visitor_at to, auto&& change) {
      state s = now;
      s.at = to;
      change(s);
      next.push_back(s);
    };
    const auto nothing = [](state&) {};
    // To the next owner, or out.
    const auto ends_visit = [&](state& s) {
      s.through[s.whom] = true;
      s.at = s.whom == 0 ? visitor_at::waits_for_cell : visitor_at::left;
      s.portion = 0;
      s.refused = false;
      ++s.whom;
      if (s.whom == 2) s.whom = 1;
    };
    const auto fails = [](state& s) { s.at = visitor_at::left; };
    switch (now.at) {
      case visitor_at::waits_for_cell:
        if (theirs.shown) go(visitor_at::enters, nothing);
        if (theirs.failed) go(visitor_at::left, fails);
        break;
      case visitor_at::enters:
        go(visitor_at::looks_again, [](state& s) { s.entered = std::uint8_t(s.whom + 1); });
        break;
      case visitor_at::looks_again:
        if (theirs.shown || !by_.looks_again)
          go(visitor_at::inside, nothing);
        else
          go(visitor_at::left, [](state& s) { s.entered = 0; });
        break;
      case visitor_at::inside:
        go(visitor_at::copies, nothing);
        go(visitor_at::is_out, [](state& s) { s.refused = true; });
        break;
      case visitor_at::copies:
        if (theirs.at == owner_at::left)
          return "the kernel copies where an owner has left its call";
        go(visitor_at::is_out, nothing);
        break;
      case visitor_at::is_out:
        go(visitor_at::writes_owner, [&](state& s) {
          s.entered = 0;
          if (!s.refused) ends_visit(s);
        });
        break;
      case visitor_at::writes_owner:
        go(visitor_at::writes_portion, [](state& s) { s.box_owner = s.whom; });
        break;
      case visitor_at::writes_portion:
        go(visitor_at::asks, [](state& s) { s.box_portion = s.portion; });
        break;
      case visitor_at::asks:
        go(visitor_at::waits_for_answer, [](state& s) {
          ++s.asked;
          s.named = s.whom;
        });
        break;
      case visitor_at::waits_for_answer:
        if (now.answered == now.asked) {
          if (now.given_by != now.whom || now.given != now.portion)
            return "the visitor gets what it has not asked for";
          go(visitor_at::writes_owner, [&](state& s) {
            if (++s.portion == portions) ends_visit(s);
          });
        } else if (theirs.failed) {
          go(visitor_at::left, fails);
        }
        break;
      case visitor_at::left:
        break;
    }
    return {};
  }

  bool is_answered(const state& now, const owner& by) const {
    return by_.later_counts ? by.asked <= now.answered : by.asked == now.answered;
  }

  std::string move_owner(const state& now, std::uint8_t o, std::vector<state>& next) const {
    const owner& mine = now.owners[o];
    const auto go = [&](owner_at to, auto&& change) {
      state s = now;
      s.owners[o].at = to;
      change(s, s.owners[o]);
      next.push_back(s);
    };
    const auto nothing = [](state&, owner&) {};
    switch (mine.at) {
      case owner_at::opens:
        go(owner_at::is_open, [](state&, owner& own) { own.shown = true; });
        break;
      case owner_at::is_open:
        if (now.through[o]) go(owner_at::left, nothing);
        // Its call fails by itself, or as it hears that the visitor's has.
        go(owner_at::closes, [](state&, owner& own) { own.failed = true; });
        if (!by_.names_owner || now.named == o)
          go(owner_at::has_read_asked, [&](state&, owner& own) { own.asked = now.asked; });
        break;
      case owner_at::has_read_asked:
        go(is_answered(now, mine) ? owner_at::is_open
           : by_.names_owner      ? owner_at::answers
                                  : owner_at::has_to_look,
           nothing);
        break;
      case owner_at::has_to_look:
        go(now.box_owner == o ? owner_at::answers : owner_at::is_open, nothing);
        break;
      case owner_at::answers:
        if (now.at != visitor_at::left && (now.at != visitor_at::waits_for_answer || now.whom != o))
          return "an owner looks into a box that is changing";
        go(owner_at::tells, [&](state& s, owner&) {
          s.given_by = o;
          s.given = s.box_portion;
        });
        break;
      case owner_at::tells:
        go(owner_at::is_open, [](state& s, owner& own) { s.answered = own.asked; });
        break;
      case owner_at::closes:
        go(owner_at::waits_for_visitor, [](state&, owner& own) { own.shown = false; });
        break;
      case owner_at::waits_for_visitor:
        if (now.entered != o + 1 || !by_.waits) go(owner_at::left, nothing);
        break;
      case owner_at::left:
        break;
    }
    return {};
  }

  rules by_;
  std::set<state> seen_;
};

}  // namespace railpass
