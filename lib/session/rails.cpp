// SPDX-License-Identifier: BSL-1.0
#include "lib/session/rails.hpp"

#include "lib/rails/tcp/rail.hpp"
#include "lib/session/private_communicator.hpp"
#include "lib/session/process.hpp"
#include "railpass/rails.hpp"
#include "railpass/transport/strategies.hpp"
#include "railpass/transport/transport.hpp"

#include <array>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <time.h>

namespace railpass {

namespace {

// What nobody has measured yet: the first messages tell the rates.
constexpr double assumed_latency_s = 50e-6;
constexpr double assumed_bytes_per_s = 125e6;
constexpr double farewell_deadline_s = 10;

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) names.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

/// The rails of a communicator; several threads may use them.
class open_transport {
 public:
  open_transport(private_communicator&& comm, const std::string& rails, const std::string& how)
      : comm_(comm) {
    std::unique_ptr<transport::strategy> strategy = transport::make_strategy(how);
    std::vector<tcp::connected_rail> connected = tcp::connect_all(comm_.handle, split_names(rails));
    std::vector<std::unique_ptr<transport::packet_rail>> driven;
    for (std::size_t r = 0; r < connected.size(); ++r)
      driven.push_back(std::make_unique<tcp::rail>(int(r), std::move(connected[r])));
    const std::vector<transport::transfer_time> times(
        driven.size(), transport::transfer_time(assumed_latency_s, assumed_bytes_per_s));
    transport_.emplace(comm_.rank, comm_.num_ranks, std::move(driven), times, false,
                       std::move(strategy));
  }

  int num_ranks() const { return comm_.num_ranks; }

  template <class Work>
  auto with(const Work& work) {
    const std::lock_guard lock(mutex_);
    return work(*transport_);
  }

  // Whether `done` became true before the deadline, if there is one.
  template <class Done>
  bool wait(const Done& done, double deadline_s = 0) {
    int empty = 0;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (done(*transport_)) return true;
        if (transport_->progress()) {
          empty = 0;
          continue;
        }
      }
      ++empty;
      if (empty >= polls_before_sleep) {
        if (deadline_s > 0 && steady_clock_s() > deadline_s) return false;
        sleep();
      } else if (empty >= polls_before_yield) {
        sched_yield();
      }
    }
  }

  // Whether all ranks have ended in time.
  bool close() {
    with([](transport::transport& t) { t.say_farewell(); });
    return wait([](transport::transport& t) { return t.all_have_said_farewell(); },
                steady_clock_s() + farewell_deadline_s);
  }

  void free_communicator() { comm_.free(); }

 private:
  static constexpr int polls_before_yield = 64;
  static constexpr int polls_before_sleep = 512;

  // What is awaited is on the rails; but others may need this rank's MPI to advance.
  void sleep() {
    std::array<pollfd, transport::most_rails> readable;
    std::size_t n = 0;
    for (const auto& r : transport_->rails())
      readable[n++] = {.fd = r->descriptor(), .events = POLLIN, .revents = 0};
    const timespec at_most{.tv_sec = 0, .tv_nsec = 200'000};
    ppoll(readable.data(), nfds_t(n), &at_most, nullptr);
    int flag = 0;
    if (process::get())
      PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.handle, &flag, MPI_STATUS_IGNORE);
  }

  private_communicator comm_;
  std::mutex mutex_;
  std::optional<transport::transport> transport_;
};

// The attribute holds a shared pointer, for messages may outlive the communicator.
using attribute = std::shared_ptr<open_transport>;

int close_attribute(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<attribute> rails(static_cast<attribute*>(value));
  try {
    if (!(*rails)->close()) throw error("ranks did not end within 10 s");
  } catch (const std::exception& e) {
    if (process* const p = process::get())
      p->record(std::string("rails were not closed properly: ") + e.what());
  }
  if (process::get()) (*rails)->free_communicator();  // else MPI is being finalized
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

const attribute& required(const char* call, MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) throw error(std::string(call) + ": the communicator is MPI_COMM_NULL");
  const attribute* const found = find(comm, required_process(call));
  if (!found)
    throw error(std::string(call) +
                ": the communicator has no rails; all its ranks call railpass::mpi::open_rails");
  return *found;
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
  std::shared_ptr<open_transport> rails;
  transport::operation_ptr operation;
  bool receives = false;
};

namespace {
message made(const attribute& rails, transport::operation_ptr op, bool receives) {
  return message(std::make_shared<message::state>(message::state{rails, std::move(op), receives}));
}
}  // namespace

void open_rails(MPI_Comm comm, const rails_options& options) {
  process& p = required_process("railpass::mpi::open_rails");
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) throw error("railpass::mpi::open_rails: expected an intra-communicator");
  if (find(comm, p)) throw error("railpass::mpi::open_rails: the communicator has rails already");
  const std::string& rails = options.rails.empty() ? p.values().rails : options.rails;
  const std::string& how = options.strategy.empty() ? p.values().strategy : options.strategy;
  private_communicator own;
  if (const int code = make_private_communicator(comm, own))
    throw error("railpass::mpi::open_rails: no communicator of its own: MPI error " +
                std::to_string(code));
  try {
    PMPI_Comm_set_attr(
        comm, p.rails_key(),
        new attribute(std::make_shared<open_transport>(private_communicator(own), rails, how)));
  } catch (...) {
    own.free();
    throw;
  }
}

void close_rails(MPI_Comm comm) {
  const attribute rails = required("railpass::mpi::close_rails", comm);
  if (!rails->close())
    throw error("railpass::mpi::close_rails: not all ranks have ended within 10 s");
  PMPI_Comm_delete_attr(comm, required_process("railpass::mpi::close_rails").rails_key());
}

message isend(std::span<const message_part> parts, int dest, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const attribute& rails = required("railpass::mpi::isend", comm);
  if (dest == MPI_PROC_NULL) return {};
  if (dest < 0 || dest >= rails->num_ranks() || tag < 0)
    throw error("railpass::mpi::isend: rank " + std::to_string(dest) + ", tag " +
                std::to_string(tag) + ": expected a rank below " +
                std::to_string(rails->num_ranks()) + " and a tag that is not negative");
  std::vector<transport::piece> pieces = pieces_of("railpass::mpi::isend", parts);
  return made(rails, rails->with([&](transport::transport& t) {
    return t.send(dest, tag, std::move(pieces), std::move(owner));
  }),
              false);
}

message irecv(std::span<const message_part> parts, int source, int tag, MPI_Comm comm) {
  const attribute& rails = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int from = checked_source(source, rails->num_ranks()), with_tag = checked_tag(tag);
  std::vector<transport::piece> pieces = pieces_of("railpass::mpi::irecv", parts);
  return made(rails, rails->with([&](transport::transport& t) {
    return t.receive(from, with_tag, std::move(pieces));
  }),
              true);
}

message irecv(std::vector<char>& whole, int source, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const attribute& rails = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int from = checked_source(source, rails->num_ranks()), with_tag = checked_tag(tag);
  return made(rails, rails->with([&](transport::transport& t) {
    return t.receive(from, with_tag, [&whole, owner](std::int64_t bytes) {
      whole.resize(std::size_t(bytes));
      return transport::piece{reinterpret_cast<std::byte*>(whole.data()), whole.size()};
    });
  }),
              true);
}

void message::wait() {
  if (!state_) return;
  state_->rails->wait([this](transport::transport&) { return state_->operation->done(); });
  if (state_->operation->truncated())
    throw error("a message from rank " + std::to_string(source()) + " with tag " +
                std::to_string(tag()) + " is longer than the " + std::to_string(bytes()) +
                " bytes there is room for");
}

bool message::test() {
  if (!state_) return true;
  return state_->rails->with([this](transport::transport& t) {
    if (!state_->operation->done()) t.progress();
    return state_->operation->done();
  });
}

int message::source() const {
  return state_ && state_->receives ? state_->operation->peer() : MPI_PROC_NULL;
}
int message::tag() const {
  return state_ && state_->receives ? state_->operation->tag() : MPI_ANY_TAG;
}
std::int64_t message::bytes() const {
  return state_ && state_->receives ? state_->operation->bytes() : 0;
}

std::vector<rail_status> rails_to(int rank, MPI_Comm comm) {
  const attribute& rails = required("railpass::mpi::rails_to", comm);
  if (rank < 0 || rank >= rails->num_ranks())
    throw error("railpass::mpi::rails_to: rank " + std::to_string(rank) + ": expected one below " +
                std::to_string(rails->num_ranks()));
  return rails->with([&](transport::transport& t) {
    std::vector<rail_status> result;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      const transport::rail_report known = t.report(rank, int(r));
      result.push_back({t.rails()[r]->name(), known.bytes_per_s, known.changes, known.sent_bytes});
    }
    return result;
  });
}

}  // namespace mpi

int create_rails_key(int* key) {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_attribute, key, nullptr);
}

}  // namespace railpass
