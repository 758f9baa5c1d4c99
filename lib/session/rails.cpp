// SPDX-License-Identifier: BSL-1.0
#include "lib/session/rails.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/session/private_communicator.hpp"
#include "lib/session/process.hpp"
#include "railpass/rails.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>

namespace railpass {

namespace {

// What one kind of messages of a communicator has: a lane of its own, which ends by itself.
// Messages may outlive it.
struct place {
  std::shared_ptr<shared_rails> rails;
  std::shared_ptr<lane> messages;

  explicit operator bool() const { return messages != nullptr; }

  // Collective. There is none afterwards, even if error is thrown.
  void close(process& p) {
    if (!messages) return;
    const place mine = std::exchange(*this, {});
    std::exception_ptr problem;
    try {
      mine.messages->close();
    } catch (const std::exception&) {
      problem = std::current_exception();
    }
    if (mine.rails->transport.closed()) p.remove(mine.rails);
    if (problem) std::rethrow_exception(problem);
  }
};

// What a communicator of the user keeps with it, as its attribute.
struct attribute {
  private_communicator comm;  // the lanes'
  place of_user;              // open_rails was called
  place of_collectives;
};

int close_attribute(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<attribute> mine(static_cast<attribute*>(value));
  process* const p = process::get();
  if (!p) return MPI_SUCCESS;  // MPI is being finalized, and they were closed at its beginning
  for (place* const one : {&mine->of_user, &mine->of_collectives}) try {
      one->close(*p);
    } catch (const std::exception& e) {
      p->record(std::string("rails were not closed properly: ") + e.what());
    }
  mine->comm.free();
  return MPI_SUCCESS;
}

process& required_process(const char* call) {
  process* const p = process::get();
  if (!p) throw error(std::string(call) + ": MPI is not initialised, or already finalized");
  return *p;
}

attribute* find(MPI_Comm comm, const process& p) {
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, p.rails_key(), &value, &found);
  return found ? static_cast<attribute*>(value) : nullptr;
}

attribute& required_attribute(const char* call, MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) throw error(std::string(call) + ": the communicator is MPI_COMM_NULL");
  attribute* const found = find(comm, required_process(call));
  if (!found || !found->of_user)
    throw error(std::string(call) +
                ": the communicator has no rails; all its ranks call railpass::mpi::open_rails");
  return *found;
}

const std::shared_ptr<lane>& required(const char* call, MPI_Comm comm) {
  return required_attribute(call, comm).of_user.messages;
}

// What each rank of `comm` is to the transport; empty: not all of them are there.
std::vector<int> members_of(MPI_Comm comm, const open_transport& of) {
  MPI_Group mine = MPI_GROUP_NULL, theirs = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &mine);
  PMPI_Comm_group(of.communicator(), &theirs);
  int n = 0;
  PMPI_Group_size(mine, &n);
  std::vector<int> ranks(static_cast<std::size_t>(n)), members(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(mine, n, ranks.data(), theirs, members.data());
  PMPI_Group_free(&mine);
  PMPI_Group_free(&theirs);
  if (std::ranges::find(members, MPI_UNDEFINED) != members.end()) members.clear();
  return members;
}

// A lane over rails that are held. Throws std::bad_alloc.
place placed(const std::shared_ptr<shared_rails>& rails, const private_communicator& comm,
             std::uint32_t number, std::vector<int> members) {
  return {rails, std::make_shared<lane>(std::shared_ptr<open_transport>(rails, &rails->transport),
                                        comm.handle, number, std::move(members))};
}

// A place on rails of these names that are open between all ranks of `comm` already. Rank 0 chooses
// those that `is_wanted`, between most ranks first; all have to find them. None if they do not.
// Collective.
template <class IsWanted>
place place_on_open_rails(const private_communicator& comm, process& p, const IsWanted& is_wanted) {
  place found;
  std::uint64_t offer[2] = {0, 0};  // the transport, the lane
  const auto try_one = [&](const std::shared_ptr<shared_rails>& r) {
    open_transport& t = r->transport;
    if (comm.rank == 0 ? !is_wanted(*r) : t.id() != offer[0]) return false;
    if (!t.hold(comm.rank != 0)) return false;
    try {
      std::vector<int> members = members_of(comm.handle, t);
      const auto number = comm.rank == 0 ? t.new_lane() : std::uint32_t(offer[1]);
      if (!members.empty() && number) {
        found = placed(r, comm, *number, std::move(members));
        offer[0] = t.id();
        offer[1] = *number;
        return true;
      }
    } catch (const std::bad_alloc&) {  // as if there were none
    }
    t.release();
    return false;
  };
  auto open = p.open_rails();
  std::ranges::stable_sort(open, std::greater{},
                           [](const auto& r) { return r->transport.num_ranks(); });
  const auto try_all = [&] {
    for (const auto& r : open)
      if (try_one(r)) return;
  };
  if (comm.rank == 0) try_all();
  PMPI_Bcast(offer, 2, MPI_UINT64_T, 0, comm.handle);
  if (offer[1] == 0) return {};
  if (comm.rank != 0) try_all();
  int all = found ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm.handle);
  if (all) return found;
  if (found) found.rails->transport.release();
  return {};
}

// Opens the rails for the ranks of `comm`. Throws error on all ranks alike.
place place_on_new_rails(const private_communicator& comm, process& p, const std::string& rails,
                         const std::string& strategy, double budget_s) {
  MPI_Comm own = MPI_COMM_NULL;
  if (const int code = PMPI_Comm_dup(comm.handle, &own))
    throw error("no communicator for the rails: MPI error " + std::to_string(code));
  std::shared_ptr<shared_rails> opened;
  try {
    opened = std::make_shared<shared_rails>(own, rails, strategy, p.values().rails_silence);
  } catch (...) {
    PMPI_Comm_free(&own);
    throw;
  }
  if (const std::string& why = opened->transport.board_problem(); !why.empty())
    p.record("other processes are not shown what the rails carry: " + why);
  // If that fails, so have the rails, and others may still use the communicator.
  opened->known = learn_rails(opened->transport, comm, p,
                              {.budget_s = budget_s, .path = p.values().rails_profile});
  opened->transport.hold(true);
  place found;
  on_all(comm.handle, [&] {
    std::vector<int> members(static_cast<std::size_t>(comm.num_ranks));
    std::iota(members.begin(), members.end(), 0);
    found = placed(opened, comm, open_transport::founding_lane, std::move(members));
    p.add(opened);
  });
  return found;
}

// Throws error on all ranks alike.
place place_on(const private_communicator& comm, process& p, const std::string& rails,
               const std::string& strategy, double budget_s) {
  const auto is_wanted = [&](const shared_rails& r) {
    return r.transport.rails() == rails && r.transport.strategy() == strategy &&
           (budget_s <= 0 || !r.known.links.empty());
  };
  place found = place_on_open_rails(comm, p, is_wanted);
  if (!found) found = place_on_new_rails(comm, p, rails, strategy, budget_s);
  return found;
}

// A place on the rails that messages of the other kind have already, or, if these have failed, on
// others of their names. Throws error on all ranks alike.
place place_beside(const place& other, const private_communicator& comm, process& p,
                   double budget_s) {
  place found =
      place_on_open_rails(comm, p, [&](const shared_rails& r) { return &r == other.rails.get(); });
  const open_transport& t = other.rails->transport;
  if (!found) found = place_on(comm, p, t.rails(), t.strategy(), budget_s);
  return found;
}

// The attribute of `comm`, made if there is none. Collective; throws error on all ranks alike.
attribute& attribute_of(MPI_Comm comm, process& p) {
  if (attribute* const known = find(comm, p)) return *known;
  auto made = std::make_unique<attribute>();
  if (const int code = make_private_communicator(comm, made->comm))
    throw error("no communicator for the rails: MPI error " + std::to_string(code));
  PMPI_Comm_set_attr(comm, p.rails_key(), made.get());
  return *made.release();
}

// Nothing is kept on a communicator without rails.
void drop_if_empty(MPI_Comm comm, const attribute& mine, const process& p) {
  if (!mine.of_user && !mine.of_collectives) PMPI_Comm_delete_attr(comm, p.rails_key());
}

// Gives `comm` a place that it has not got, which `work` finds.
template <class Work>
place& with_place(MPI_Comm comm, process& p, place attribute::*which, const Work& work) {
  attribute& mine = attribute_of(comm, p);
  try {
    mine.*which = work(mine);
  } catch (...) {
    drop_if_empty(comm, mine, p);
    throw;
  }
  return mine.*which;
}

std::vector<transport::piece> pieces_of(const char* call,
                                        std::span<const mpi::message_part> parts) {
  std::vector<transport::piece> pieces;
  for (const mpi::message_part& p : parts) {
    if (p.bytes > 0 && !p.data) throw error(std::string(call) + ": a part of a message is null");
    if (p.bytes > 0) pieces.push_back({static_cast<std::byte*>(p.data), p.bytes});
  }
  return pieces;
}

int checked_source(int source, int num_ranks) {
  if (source == MPI_ANY_SOURCE) return transport::any_source;
  if (source >= 0 && source < num_ranks) return source;
  throw error("railpass::mpi::irecv: source " + std::to_string(source) +
              ": expected a rank below " + std::to_string(num_ranks) + " or MPI_ANY_SOURCE");
}
int checked_tag(int tag) {
  if (tag == MPI_ANY_TAG) return transport::any_tag;
  if (tag >= 0) return tag;
  throw error("railpass::mpi::irecv: tag " + std::to_string(tag) +
              ": expected one that is not negative, or MPI_ANY_TAG");
}

}  // namespace

namespace mpi {

struct message::state {
  std::shared_ptr<lane> from;
  transport::operation_ptr operation;
  bool receives = false;
};

namespace {
message made(const std::shared_ptr<lane>& from, transport::operation_ptr op, bool receives) {
  return message(std::make_shared<message::state>(message::state{from, std::move(op), receives}));
}

void check_whole(const message& m, const transport::operation& o) {
  if (o.truncated())
    throw error("a message from rank " + std::to_string(m.source()) + " with tag " +
                std::to_string(m.tag()) + " is longer than the " + std::to_string(m.bytes()) +
                " bytes there is room for");
}
}  // namespace

void open_rails(MPI_Comm comm, const rails_options& options) {
  process& p = required_process("railpass::mpi::open_rails");
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) throw error("railpass::mpi::open_rails: expected an intra-communicator");
  const std::string& rails = options.rails.empty() ? p.values().rails : options.rails;
  const std::string& how = options.strategy.empty() ? p.values().strategy : options.strategy;
  const double budget_s = options.budget_s < 0 ? p.values().rails_budget : options.budget_s;
  if (const attribute* const known = find(comm, p)) {
    if (known->of_user)
      throw error("railpass::mpi::open_rails: the communicator has rails already");
    if (!options.rails.empty() && known->of_collectives &&
        options.rails != known->of_collectives.rails->transport.rails())
      throw error("railpass::mpi::open_rails: rails '" + options.rails +
                  "': the communicator's collectives have others: " +
                  known->of_collectives.rails->transport.rails());
  }
  with_place(comm, p, &attribute::of_user, [&](const attribute& mine) {
    return mine.of_collectives ? place_beside(mine.of_collectives, mine.comm, p, budget_s)
                               : place_on(mine.comm, p, rails, how, budget_s);
  });
}

void close_rails(MPI_Comm comm) {
  attribute& mine = required_attribute("railpass::mpi::close_rails", comm);
  process& p = required_process("railpass::mpi::close_rails");
  std::string problem;
  try {
    mine.of_user.close(p);
  } catch (const std::exception& e) {
    problem = e.what();
  }
  drop_if_empty(comm, mine, p);
  if (!problem.empty()) throw error("railpass::mpi::close_rails: " + problem);
}

message isend(std::span<const message_part> parts, int dest, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<lane>& to = required("railpass::mpi::isend", comm);
  if (dest == MPI_PROC_NULL) return {};
  if (dest < 0 || dest >= to->num_ranks() || tag < 0)
    throw error("railpass::mpi::isend: rank " + std::to_string(dest) + ", tag " +
                std::to_string(tag) + ": expected a rank below " + std::to_string(to->num_ranks()) +
                " and a tag that is not negative");
  return made(to, to->send(dest, tag, pieces_of("railpass::mpi::isend", parts), std::move(owner)),
              false);
}

message irecv(std::span<const message_part> parts, int source, int tag, MPI_Comm comm) {
  const std::shared_ptr<lane>& from = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int rank = checked_source(source, from->num_ranks()), with_tag = checked_tag(tag);
  return made(from, from->receive(rank, with_tag, pieces_of("railpass::mpi::irecv", parts)), true);
}

message irecv(std::vector<char>& whole, int source, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<lane>& from = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int rank = checked_source(source, from->num_ranks()), with_tag = checked_tag(tag);
  const auto allocate = [&whole, owner](std::int64_t bytes) {
    whole.resize(std::size_t(bytes));
    return transport::piece{reinterpret_cast<std::byte*>(whole.data()), whole.size()};
  };
  return made(from, from->receive(rank, with_tag, allocate), true);
}

void message::wait() {
  if (!state_) return;
  state_->from->transport().wait(
      [this](transport::transport&) { return state_->operation->done(); });
  check_whole(*this, *state_->operation);
}

bool message::test() {
  if (!state_) return true;
  const bool done = state_->from->transport().with([this](transport::transport& t) {
    if (!state_->operation->done()) t.progress();
    return state_->operation->done();
  });
  if (done) check_whole(*this, *state_->operation);
  return done;
}

int message::source() const {
  return state_ && state_->receives ? state_->from->rank_of(state_->operation->peer())
                                    : MPI_PROC_NULL;
}
int message::tag() const {
  return state_ && state_->receives ? state_->operation->tag() : MPI_ANY_TAG;
}
std::int64_t message::bytes() const {
  return state_ && state_->receives ? state_->operation->bytes() : 0;
}

std::vector<rail_status> rails_to(int rank, MPI_Comm comm) {
  attribute* const found =
      comm == MPI_COMM_NULL ? nullptr : find(comm, required_process("railpass::mpi::rails_to"));
  if (!found) throw error("railpass::mpi::rails_to: the communicator has no rails");
  const lane& to = *(found->of_user ? found->of_user : found->of_collectives).messages;
  if (rank < 0 || rank >= to.num_ranks())
    throw error("railpass::mpi::rails_to: rank " + std::to_string(rank) + ": expected one below " +
                std::to_string(to.num_ranks()));
  return to.transport().with([&](transport::transport& t) {
    std::vector<rail_status> result;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      const transport::rail_report known = t.report(to.peer_of(rank), int(r));
      result.push_back({t.rails()[r]->name(), known.bytes_per_s, known.changes, known.sent_bytes});
    }
    return result;
  });
}

}  // namespace mpi

std::shared_ptr<lane> rails_for_collectives(MPI_Comm comm, process& p, const std::string& rails,
                                            const std::string& strategy) {
  if (const attribute* const known = find(comm, p); known && known->of_collectives)
    return known->of_collectives.messages;
  const double budget_s = p.values().rails_budget;
  return with_place(comm, p, &attribute::of_collectives,
                    [&](const attribute& mine) {
                      return mine.of_user ? place_beside(mine.of_user, mine.comm, p, budget_s)
                                          : place_on(mine.comm, p, rails, strategy, budget_s);
                    })
      .messages;
}

std::vector<select::rail_statistics> statistics_of(open_transport& rails) {
  return rails.with([&](transport::transport& t) {
    std::vector<select::rail_statistics> result;
    std::int64_t all_bytes = 0;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      const transport::rail_report known = t.report(int(r));
      select::rail_statistics s{.rails = rails.rails(),
                                .rail = t.rails()[r]->name(),
                                .sent_bytes = known.sent_bytes,
                                .bytes_per_s = known.bytes_per_s,
                                .changes = known.changes,
                                .prediction_error = known.prediction_error,
                                .backlog_s = known.backlog_s};
      all_bytes += s.sent_bytes;
      result.push_back(std::move(s));
    }
    for (select::rail_statistics& s : result)
      if (all_bytes > 0) s.share = double(s.sent_bytes) / double(all_bytes);
    return result;
  });
}

const known_rails& known_rails_of(MPI_Comm comm) {
  return required_attribute("known_rails_of", comm).of_user.rails->known;
}

int create_rails_key(int* key) {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_attribute, key, nullptr);
}

}  // namespace railpass
