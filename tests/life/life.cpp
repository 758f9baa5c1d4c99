// SPDX-License-Identifier: BSL-1.0
#include "life.hpp"

#include "record.hpp"

#include <algorithm>
#include <atomic>
#include <unistd.h>

namespace life {
namespace {

thread_local int errors_handled = 0;

void on_error(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++errors_handled; }

MPI_Errhandler counting_handler() {
  static const MPI_Errhandler made = [] {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_create_errhandler(on_error, &handler);
    return handler;
  }();
  return made;
}

constexpr int ring_tag = 17, order_tag = 18;

// A delete callback of MPI_COMM_SELF, as in libraries that write files in MPI_Finalize.
int work_of_self(MPI_Comm, int /*keyval*/, void* /*value*/, void* state) {
  const std::uint64_t key = mix(reinterpret_cast<std::uint64_t>(state));
  stream shared(key);
  const place world = place::of(MPI_COMM_WORLD);
  groups simple;
  for (int i = 0; i < 1 + static_cast<int>(key % 6); ++i) {
    const call c = draw_call(shared, simple);
    doing(0, "in MPI_Finalize: " + c.describe(world));
    ++own_record().calls;
    if (const std::string wrong = make_call(c, world); !wrong.empty()) differs(0, wrong);
  }
  doing(0, "in MPI_Finalize, after a callback");
  return MPI_SUCCESS;
}

}  // namespace

program_thread::program_thread(std::uint64_t seed, int thread, int num_threads, MPI_Comm parent,
                               const groups& on)
    : shared_(mix(seed * max_threads + static_cast<std::uint64_t>(thread))),
      own_(0),
      thread_(thread),
      alone_(num_threads == 1),
      makes_(thread == static_cast<int>(mix(seed) % static_cast<std::uint64_t>(num_threads))),
      on_(on) {
  slots_[0].is_used = true;
  slots_[0].at = place::of(parent);
  if (thread == 0) {
    slots_[slot_of_self].is_used = true;
    slots_[slot_of_self].at = place::of(MPI_COMM_SELF);
  }
  own_ = stream(mix(seed) + static_cast<std::uint64_t>(slots_[0].at.rank));
  MPI_Comm_create_keyval(copied, deleted, &counted_, this);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted_communicating, &communicating_, this);
  MPI_Comm_create_keyval(copied_communicating, deleted_communicating, &copying_, this);
  if (!makes_ && on_.has(group::comms))
    for (std::size_t i = 1; i < 4; ++i)
      make(slots_[static_cast<std::size_t>(draw_used())], slots_[i]);
}

void program_thread::say(const std::string& text) { doing(thread_, text); }

void program_thread::check(int code, const char* what) {
  if (code != MPI_SUCCESS)
    differs(thread_, std::string(what) + " returned " + std::to_string(code));
}

int program_thread::draw_used() {
  std::vector<int> used;
  const bool with_self = shared_.one_in(4);  // less often: no rank has another to wait for
  for (int i = 0; i < num_slots; ++i) {
    const slot& s = slots_[static_cast<std::size_t>(i)];
    if (s.is_used && &s != idup_to_ && (i != slot_of_self || with_self)) used.push_back(i);
  }
  return used[static_cast<std::size_t>(shared_.below(static_cast<int>(used.size())))];
}

int program_thread::free_slot() const {
  for (int i = 1; i < slot_of_self; ++i)
    if (!slots_[static_cast<std::size_t>(i)].is_used) return i;
  return 0;
}

void program_thread::run() {
  say("begins");
  for (int i = 0; i < 3; ++i) habits_.push_back(draw_call(shared_, on_));
  const int operations = shared_.one_in(8) ? 1 + shared_.below(6) : 10 + shared_.below(30);
  for (int i = 0; i < operations; ++i) {
    slot& s = slots_[static_cast<std::size_t>(draw_used())];
    const int to = free_slot();
    const int what = shared_.below(40);
    const std::uint64_t more = shared_.next();  // so that the choice of a group changes little else
    const stream after = shared_;
    shared_ = stream(more);
    if (what < 16) {
      burst(s);
    } else if (what < 22) {
      if (on_.has(group::comms) && makes_ && to != 0) make(s, slots_[static_cast<std::size_t>(to)]);
    } else if (what < 24) {
      if (!is_permanent(static_cast<int>(&s - slots_.data()))) free_one(s);
    } else if (what < 26) {
      if (on_.has(group::free_order)) free_several();
    } else if (what < 29) {
      if (on_.has(group::attributes)) change_attribute(s);
    } else if (what < 31) {
      if (on_.has(group::errors)) mistake(s);
    } else if (what < 32) {
      if (on_.has(group::lone_errors)) lone_mistake(s);
    } else if (what < 35) {
      if (on_.has(group::nonblocking)) begin_operations(s);
    } else if (what < 36) {
      if (on_.has(group::nonblocking)) end_operations(s);
    } else if (what < 37) {
      if (on_.has(group::skew)) come_late();
    } else if (what < 38) {
      if (on_.has(group::self) && thread_ == 0 && shared_.one_in(3)) work_in_finalize();
    } else if (what < 39) {
      if (on_.has(group::attributes) && thread_ == 0) change_attribute_of_self_alone();
    } else if (alone_) {
      if (on_.has(group::many) && shared_.one_in(20)) many();
    } else {
      if (on_.has(group::comms) && makes_ && to != 0)
        come_and_go(s, slots_[static_cast<std::size_t>(to)]);
    }
    shared_ = after;
  }
  end();
}

void program_thread::burst(slot& s) {
  call c = draw_call(shared_, on_);
  const int habit = shared_.below(5);
  if (static_cast<std::size_t>(habit) < habits_.size()) {
    const std::uint64_t key = c.key;
    c = habits_[static_cast<std::size_t>(habit)];
    c.key = key;
  }
  const bool is_long = shared_.one_in(2);
  int times = is_long ? 10 + shared_.below(50) : 1 + shared_.below(4);
  times = std::min(times, 1 + 60000 / (c.length + 1));
  if (is_member(s)) make_calls(s.at, c, times);
}

void program_thread::make_calls(const place& at, call c, int times) {
  for (int i = 0; i < times; ++i) {
    say(c.describe(at) + ", " + std::to_string(i + 1) + " of " + std::to_string(times));
    ++own_record().calls;
    if (const std::string wrong = make_call(c, at); !wrong.empty()) differs(thread_, wrong);
    c.key = mix(c.key);
  }
}

void program_thread::begin_operations(slot& s) {
  if (s.under_way) return;
  // Plain Open MPI 4.1 may compute wrong sums in MPI_Iallreduce after MPI_Comm_idup.
  if (&s == idup_from_) end_idup();
  const int kinds = 1 + shared_.below(7);
  const std::uint64_t key = shared_.next();
  s.under_way = std::make_unique<outstanding>();
  if (!is_member(s)) return;
  say("begins nonblocking operations");
  outstanding& o = *s.under_way;
  const auto add = [&o]() {
    o.requests.push_back(MPI_REQUEST_NULL);
    return &o.requests.back();
  };
  if (kinds & 1) {
    o.has_ring = true;
    // Rank 0 sends over the first communicator what it has freed. MPICH 4.0 takes a rank's own
    // messages within MPI_Alltoall for this message if the receive accepts any tag.
    const int tag = &s == &slots_[0] || s.at.size == 1 ? ring_tag : MPI_ANY_TAG;
    check(MPI_Irecv(&o.token, 1, MPI_INT, MPI_ANY_SOURCE, tag, s.at.comm, add()), "MPI_Irecv");
  }
  if (kinds & 2) {
    o.sums = true;
    check(MPI_Iallreduce(&o.one, &o.sum, 1, MPI_INT, MPI_SUM, s.at.comm, add()), "MPI_Iallreduce");
  }
  if (kinds & 4) {
    o.root = static_cast<int>(key % static_cast<std::uint64_t>(s.at.size));
    o.block.assign(1 + key / 64 % 20000, s.at.rank == o.root ? 42 : 0);
    check(MPI_Ibcast(o.block.data(), static_cast<int>(o.block.size()), MPI_INT, o.root, s.at.comm,
                     add()),
          "MPI_Ibcast");
  }
}

void program_thread::end_operations(slot& s) {
  if (!s.under_way) return;
  const std::unique_ptr<outstanding> o = std::move(s.under_way);
  if (!is_member(s)) return;
  say("ends nonblocking operations");
  if (o->has_ring) {
    o->sent = s.at.rank;
    o->requests.push_back(MPI_REQUEST_NULL);
    check(MPI_Isend(&o->sent, 1, MPI_INT, (s.at.rank + 1) % s.at.size, ring_tag, s.at.comm,
                    &o->requests.back()),
          "MPI_Isend");
  }
  check(MPI_Waitall(static_cast<int>(o->requests.size()), o->requests.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
  if (o->has_ring && o->token != (s.at.rank + s.at.size - 1) % s.at.size)
    differs(thread_, "a message of the program's came as another");
  if (o->sums && o->sum != s.at.size) differs(thread_, "MPI_Iallreduce gave a wrong sum");
  if (std::any_of(o->block.begin(), o->block.end(), [](int x) { return x != 42; }))
    differs(thread_, "MPI_Ibcast gave wrong values");
}

void program_thread::make(slot& from, slot& to) {
  // Plain Open MPI 4.1 hangs if a communicator is created during MPI_Comm_idup.
  end_idup();
  int how = shared_.below(9);
  const std::uint64_t key = shared_.next();
  // Open MPI 4.1 also copies attributes in MPI_Comm_create_group, which not all ranks call.
  if (how >= 5 && how < 8 && from.copies_communicating) how = 3;
  // Plain Open MPI 4.1 hangs in MPI_Comm_create_group if any rank has nonblocking operations in
  // flight: its own messages then match receives of the program with any tag.
  if (how == 6) {
    end_operations(from);
    if (is_member(from)) check(MPI_Barrier(from.at.comm), "MPI_Barrier");
  }
  if (how == 8) {
    if (on_.has(group::idup) && alone_ && !from.copies_communicating) begin_idup(from, to);
    return;
  }
  to.is_used = true;
  to.at = place();
  to.survives_errors = from.survives_errors;
  to.has_counted = how < 2 && from.has_counted;
  to.has_communicating = to.copies_communicating = how < 2 && from.copies_communicating;
  if (!is_member(from)) return;
  static constexpr const char* ways[] = {"MPI_Comm_dup",
                                         "MPI_Comm_dup_with_info",
                                         "MPI_Comm_split",
                                         "MPI_Comm_split",
                                         "MPI_Comm_split, some ranks in none",
                                         "MPI_Comm_create",
                                         "MPI_Comm_create_group",
                                         "MPI_Comm_split_type"};
  say(std::string(ways[how]) + " of a communicator of " + std::to_string(from.at.size));
  const MPI_Comm comm = from.at.comm;
  const auto draw = [&](int rank, int bound) {
    return static_cast<int>(mix(key + static_cast<std::uint64_t>(rank)) %
                            static_cast<std::uint64_t>(bound));
  };
  const int rank = from.at.rank, size = from.at.size;
  MPI_Comm made = MPI_COMM_NULL;
  int code = MPI_SUCCESS;
  switch (how) {
    case 0:
      code = MPI_Comm_dup(comm, &made);
      break;
    case 1:
      code = MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &made);
      break;
    case 2:
      code = MPI_Comm_split(comm, draw(rank, 2), draw(rank + size, 10), &made);
      break;
    case 3:
      code = MPI_Comm_split(comm, 0, size - rank, &made);
      break;
    case 4:
      code = MPI_Comm_split(comm, draw(rank, 3) == 0 ? MPI_UNDEFINED : 7, rank, &made);
      break;
    case 7:
      code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &made);
      break;
    default: {
      std::vector<int> members;
      for (int i = 0; i < size; ++i)
        if (i == draw(-1, size) || draw(i, 3) != 0) members.push_back(key & 1 ? i : size - 1 - i);
      MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
      MPI_Comm_group(comm, &all);
      MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
      // Plain Open MPI 4.1 hangs if several threads create communicators from groups.
      if (how == 5 || !alone_)
        code = MPI_Comm_create(comm, some, &made);
      else if (std::find(members.begin(), members.end(), rank) != members.end())
        code = MPI_Comm_create_group(comm, some, 100 + thread_, &made);
      MPI_Group_free(&all);
      MPI_Group_free(&some);
    }
  }
  check(code, ways[how]);
  to.at = place::of(made);
  if (is_member(to) && how < 2 && from.has_counted) {
    int* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(made, counted_, &value, &found);
    if (!found) differs(thread_, "an attribute was not copied");
  }
}

void program_thread::begin_idup(slot& from, slot& to) {
  to.is_used = true;
  to.at = place();
  to.survives_errors = from.survives_errors;
  to.has_counted = from.has_counted;
  idup_from_ = &from;
  idup_to_ = &to;
  if (!is_member(from)) return;
  say("MPI_Comm_idup");
  check(MPI_Comm_idup(from.at.comm, &to.at.comm, &idup_request_), "MPI_Comm_idup");
}

void program_thread::end_idup() {
  if (!idup_to_) return;
  say("waits for MPI_Comm_idup");
  check(MPI_Wait(&idup_request_, MPI_STATUS_IGNORE), "MPI_Wait");
  idup_to_->at = place::of(is_member(*idup_from_) ? idup_to_->at.comm : MPI_COMM_NULL);
  idup_to_ = idup_from_ = nullptr;
}

void program_thread::forget(slot& s) { s = slot(); }

void program_thread::free_one(slot& s) {
  end_operations(s);
  if (idup_from_ == &s || idup_to_ == &s) end_idup();
  if (is_member(s)) {
    say("MPI_Comm_free");
    check(MPI_Comm_free(&s.at.comm), "MPI_Comm_free");
  }
  forget(s);
}

void program_thread::free_several() {
  // Members do not wait for each other in MPI_Comm_free, except in the program's own callbacks.
  const int first = shared_.below(num_slots), most = 1 + shared_.below(4);
  const bool tells = shared_.one_in(2);
  std::vector<slot*> chosen;
  for (int i = 0; i < num_slots && static_cast<int>(chosen.size()) < most; ++i) {
    const int which = (first + i) % num_slots;
    slot& s = slots_[static_cast<std::size_t>(which)];
    if (s.is_used && !is_permanent(which) && !s.has_communicating) chosen.push_back(&s);
  }
  if (chosen.empty()) return;
  end_idup();
  end_operations(slots_[0]);
  for (slot* s : chosen) end_operations(*s);
  const place& all = slots_[0].at;
  if (all.rank % 2 == 1) std::reverse(chosen.begin(), chosen.end());
  int token = 0;
  say("waits for rank 0, which frees communicators first");
  if (tells && all.rank != 0)
    MPI_Recv(&token, 1, MPI_INT, 0, order_tag, all.comm, MPI_STATUS_IGNORE);
  for (slot* s : chosen) free_one(*s);
  if (tells && all.rank == 0)
    for (int rank = 1; rank < all.size; ++rank)
      MPI_Send(&token, 1, MPI_INT, rank, order_tag, all.comm);
}

int program_thread::copied(MPI_Comm, int, void* state, void* value, void* result, int* is_copied) {
  ++static_cast<program_thread*>(state)->alive_;
  *static_cast<void**>(result) = value;
  *is_copied = 1;
  return MPI_SUCCESS;
}

int program_thread::deleted(MPI_Comm, int, void*, void* state) {
  --static_cast<program_thread*>(state)->alive_;
  return MPI_SUCCESS;
}

int program_thread::copied_communicating(MPI_Comm comm, int, void* state, void* value, void* result,
                                         int* is_copied) {
  program_thread& self = *static_cast<program_thread*>(state);
  const place at = place::of(comm);
  self.say("an attribute is copied");
  self.make_calls(at,
                  {collective::all_reduce, &elements()[2], operation::sum, 8, false, false, false,
                   self.callback_key_},
                  2);
  ++self.alive_;
  *static_cast<void**>(result) = value;
  *is_copied = 1;
  return MPI_SUCCESS;
}

int program_thread::deleted_communicating(MPI_Comm comm, int, void* value, void* state) {
  program_thread& self = *static_cast<program_thread*>(state);
  --self.alive_;
  // These draws must not depend on the thread's draws in communicators of which it is a member.
  stream shared(reinterpret_cast<std::uint64_t>(value));
  const place at = place::of(comm);
  for (int i = 0; i < 1 + shared.below(4); ++i) {
    const call c = draw_call(shared, self.on_);
    self.make_calls(at, c, 1 + shared.below(3));
  }
  self.say("after a delete callback");
  return MPI_SUCCESS;
}

void program_thread::change_attribute(slot& s) {
  const int what = shared_.below(6);
  const std::uint64_t value = shared_.next();
  if (&s == &slots_[slot_of_self] && what >= 3) return;
  if (&s == idup_from_) end_idup();  // MPI does not say when that copies attributes
  if (what == 5) return delete_attributes(s);
  const auto set = [&](int keyval, std::uint64_t to) {
    if (!is_member(s)) return;
    say("MPI_Comm_set_attr");
    ++alive_;  // the one that it replaces is deleted
    check(MPI_Comm_set_attr(s.at.comm, keyval, reinterpret_cast<void*>(to)), "MPI_Comm_set_attr");
  };
  if (what < 3) {
    s.has_counted = true;
    return set(counted_, value);
  }
  // At most one, because MPI does not define the order of callbacks.
  if (!on_.has(group::callbacks) || s.has_communicating || &s == &slots_[0]) return;
  s.has_communicating = true;
  s.copies_communicating = what == 4;
  set(what == 4 ? copying_ : communicating_, value);
}

void program_thread::delete_attributes(slot& s) {
  end_operations(s);
  if (is_member(s)) {
    say("MPI_Comm_delete_attr");
    // Open MPI 4.1 copies attributes where it should not; see make().
    void* value = nullptr;
    int is_set = 0;
    check(MPI_Comm_get_attr(s.at.comm, counted_, &value, &is_set), "MPI_Comm_get_attr");
    if (s.has_counted && !is_set) differs(thread_, "an attribute is gone");
    if (is_set) check(MPI_Comm_delete_attr(s.at.comm, counted_), "MPI_Comm_delete_attr");
    if (s.has_communicating)
      check(MPI_Comm_delete_attr(s.at.comm, s.copies_communicating ? copying_ : communicating_),
            "MPI_Comm_delete_attr");
  }
  s.has_counted = s.has_communicating = s.copies_communicating = false;
}

void program_thread::change_attribute_of_self_alone() {
  // Each rank decides for itself, so the order of attributes differs between ranks.
  if (own_.one_in(2)) return;
  say("sets an attribute of MPI_COMM_SELF that nobody else has");
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
  check(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr), "MPI_Comm_set_attr");
  if (own_.one_in(2)) check(MPI_Comm_delete_attr(MPI_COMM_SELF, keyval), "MPI_Comm_delete_attr");
  MPI_Comm_free_keyval(&keyval);
}

void program_thread::work_in_finalize() {
  say("sets an attribute of MPI_COMM_SELF that works in MPI_Finalize");
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, work_of_self, &keyval,
                         reinterpret_cast<void*>(shared_.next()));
  check(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr), "MPI_Comm_set_attr");
}

void program_thread::mistake(slot& s) {
  const bool is_counting = shared_.one_in(2);
  const int times = shared_.one_in(3) ? 10 + shared_.below(20) : 1 + shared_.below(3);
  const std::uint64_t variant = shared_.next();
  const bool stays = shared_.one_in(2);
  if (is_wrong_operation(variant) && !on_.has(group::wrong_ops)) return;
  s.survives_errors = stays;
  if (!is_member(s)) return;
  MPI_Comm_set_errhandler(s.at.comm, is_counting ? counting_handler() : MPI_ERRORS_RETURN);
  for (int i = 0; i < times; ++i) {
    std::string description;
    errors_handled = 0;
    say("makes a mistake, " + std::to_string(i + 1) + " of " + std::to_string(times));
    ++own_record().calls;
    const int code = make_wrong_call(variant, s.at, description);
    if (code == MPI_SUCCESS) differs(thread_, description + ": no error");
    if (is_counting && errors_handled != 1)
      differs(thread_, description + ": the error handler was called " +
                           std::to_string(errors_handled) + " times");
  }
  if (!stays) MPI_Comm_set_errhandler(s.at.comm, MPI_ERRORS_ARE_FATAL);
}

void program_thread::lone_mistake(slot& s) {
  const std::uint64_t variant = shared_.next();
  const call c = draw_call(shared_, on_);
  if (!is_member(s)) return;
  MPI_Comm_set_errhandler(s.at.comm, MPI_ERRORS_RETURN);
  if (s.at.rank == static_cast<int>(variant % static_cast<std::uint64_t>(s.at.size))) {
    std::string description;
    say("makes a mistake alone");
    ++own_record().calls;
    if (make_wrong_call(variant, s.at, description) == MPI_SUCCESS)
      differs(thread_, description + ": no error");
  }
  make_calls(s.at, c, 3);
  s.survives_errors = true;
}

void program_thread::many() {
  end_idup();
  const int number = shared_.one_in(4) ? 1100 : 200;
  const int calls = 1 + shared_.below(10);
  const place all = slots_[0].at;
  std::vector<MPI_Comm> comms;
  for (int i = 0; i < number; ++i) {
    say("makes communicator " + std::to_string(i) + " of many");
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_dup(all.comm, &made), "MPI_Comm_dup");
    if (made == MPI_COMM_NULL) break;
    comms.push_back(made);
    const int times = i % 10 == 0 ? calls : 1;
    make_calls(place::of(made),
               {collective::all_reduce, &elements()[2], operation::sum, 2, false, false, false,
                shared_.next()},
               times);
  }
  say("frees many communicators");
  for (MPI_Comm& comm : comms) check(MPI_Comm_free(&comm), "MPI_Comm_free");
}

// One communicator reuses what another one leaves, while other threads agree on slots.
void program_thread::come_and_go(slot& from, slot& to) {
  for (int i = 0, times = 2 + shared_.below(4); i < times; ++i) {
    make(from, to);
    if (!to.is_used) continue;
    burst(to);
    free_one(to);
  }
}

void program_thread::come_late() {
  say("comes late");
  if (own_.one_in(2)) usleep(static_cast<useconds_t>(own_.below(2000)));
}

void program_thread::end() {
  end_idup();
  for (slot& s : slots_) end_operations(s);
  const bool backwards = shared_.one_in(2);
  for (int i = 0; i < num_slots; ++i) {
    const int which = backwards ? num_slots - 1 - i : i;
    slot& s = slots_[static_cast<std::size_t>(which)];
    if (!s.is_used) continue;
    const bool leaves = shared_.one_in(6);
    if (is_permanent(which) || leaves) {
      delete_attributes(s);
      if (is_permanent(which) && is_member(s) && s.survives_errors)
        MPI_Comm_set_errhandler(s.at.comm, MPI_ERRORS_ARE_FATAL);
    } else {
      free_one(s);
    }
  }
  for (int* keyval : {&counted_, &communicating_, &copying_}) MPI_Comm_free_keyval(keyval);
  if (alive_ != 0)
    differs(thread_, std::to_string(alive_) + " attributes were not deleted, or too many");
  say("has ended");
}

}  // namespace life
