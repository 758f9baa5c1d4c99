// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/engine.hpp"

#include "lib/call/inside.hpp"
#include "lib/communicator/communicator_state.hpp"
#include "lib/group/same_on_all.hpp"
#include "lib/sets/function_sets.hpp"
#include "railpass/base/error.hpp"

#include <exception>
#include <utility>

namespace railpass::internal::halo {

namespace {

// Informs the other ranks if a call ends by an exception.
class ends_call_on_exception {
 public:
  explicit ends_call_on_exception(std::optional<railpass::detail::set_call>& call) : call_(call) {}
  ~ends_call_on_exception() {
    if (std::uncaught_exceptions() > exceptions_) call_.reset();
  }

 private:
  std::optional<railpass::detail::set_call>& call_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

engine::engine(const mpi::halo_arguments& arguments) : name_(arguments.options.name) {
  const inside guard;
  require_intra_communicator(arguments.comm, "halo_exchange");
  try {
    check("MPI_Comm_get_errhandler", PMPI_Comm_get_errhandler(arguments.comm, &users_handler_));
    check("MPI_Comm_create", make_private_communicator(arguments.comm, comm_));
    make(arguments);
  } catch (const mpi_failure& failure) {
    leave_behind();
    fail(failure);
  } catch (const error&) {  // on all ranks
    let_go();
    throw;
  }
}

engine::~engine() {
  const inside guard;
  int ended = 0;
  PMPI_Finalized(&ended);
  if (ended || failed_) {
    leave_behind();
    return;
  }
  try {
    if (under_way_) under_way_->end();
    let_go();
  } catch (const mpi_failure&) {
    leave_behind();
  }
}

// MPI objects inside leak, too. After a failure, other ranks may never come to free a window.
void engine::leave_behind() {
  for (candidate& c : candidates_) static_cast<void>(c.run.release());
  static_cast<void>(resources_.release());
  static_cast<void>(plan_.release());
}

void engine::let_go() {
  candidates_.clear();
  resources_.reset();
  plan_.reset();
  comm_.free();
  PMPI_Errhandler_free(&users_handler_);
}

void engine::make(const mpi::halo_arguments& arguments) {
  plan_ = std::make_unique<plan>(comm_.handle, arguments);
  require_same(comm_.handle, "halo_exchange", {}, problem_of([&] {
                 resources_ = std::make_unique<resources>(
                     *plan_, state_of(arguments.comm, "halo_exchange").values().rails);
               }));
  for (const version_description& v : versions()) {
    try {
      candidates_.push_back({&v, v.make(*resources_, v.how, v.in)});
    } catch (const unavailable& u) {
      candidates_.push_back({&v, nullptr, u.why});
    }
  }
  in_one_ = make_request(arguments, false);
  in_two_parts_ = make_request(arguments, true);
  latest_ = in_one_.get();
}

std::unique_ptr<engine::request> engine::make_request(const mpi::halo_arguments& arguments,
                                                      bool in_two_parts) const {
  const std::vector<std::int64_t> shape{in_two_parts, arguments.options.corners};
  std::vector<std::string> without;
  for (const candidate& c : candidates_)
    if (!c.run) without.push_back(c.what->name());
  auto result = std::make_unique<request>(
      name_, arguments.comm, std::vector<std::string>{"pattern", "primitive", "layout"},
      function_set_options{.shape = shape,
                           .features = plan_->message_lengths(),
                           .policy = arguments.options.policy,
                           .without = std::move(without)});
  for (const candidate& c : candidates_)
    result->add(c.what->name(),
                {std::string(c.what->pattern_name()), std::string(c.what->primitive),
                 std::string(c.what->layout_name())},
                c.run ? c.run->lag() : 0);
  return result;
}

void engine::fail(const mpi_failure& failure) {
  failed_ = true;
  if (comm_.handle != MPI_COMM_NULL) {
    PMPI_Comm_set_errhandler(comm_.handle, users_handler_);
    call_error_handler(comm_.handle, failure.code);
    PMPI_Comm_set_errhandler(comm_.handle, MPI_ERRORS_RETURN);
  }
  throw error("halo_exchange '" + name_ + "': " + failure.text());
}

void engine::start(std::size_t index) {
  if (under_way_) throw error("halo_exchange '" + name_ + "': the exchange before has not ended");
  if (failed_) throw error("halo_exchange '" + name_ + "': an earlier exchange has failed");
  const inside guard;
  try {
    plan_->copy_own_sides();
    candidates_[index].run->begin();
    under_way_ = candidates_[index].run.get();
  } catch (const mpi_failure& failure) {
    fail(failure);
  }
}

void engine::finish() {
  if (!under_way_) throw error("halo_exchange '" + name_ + "': no exchange has begun");
  const inside guard;
  try {
    std::exchange(under_way_, nullptr)->end();
  } catch (const mpi_failure& failure) {
    fail(failure);
  }
}

void engine::exchange() {
  latest_ = in_one_.get();
  if (latest_->verifies()) return exchange_verified();
  const railpass::detail::set_call call(*latest_);
  start(call.version());
  finish();
}

// As function_set's verify_with, of the elements that come from neighbours.
void engine::exchange_verified() {
  try {
    const std::vector<std::byte> before = plan_->received_elements();
    std::size_t tried = 0;
    {
      const railpass::detail::set_call call(*latest_);
      tried = call.version();
      start(tried);
      finish();
    }
    if (tried == 0) return;
    const std::vector<std::byte> found = plan_->received_elements();
    plan_->put_back(before);
    start(0);
    finish();
    latest_->settle_results(tried,
                            found == plan_->received_elements() ? "" : "receives other elements");
  } catch (const mpi_failure& failure) {
    fail(failure);
  }
}

void engine::begin() {
  if (under_way_ || call_)
    throw error("halo_exchange '" + name_ + "': the exchange before has not ended");
  latest_ = in_two_parts_.get();
  if (latest_->verifies()) latest_->note_unverified();
  call_.emplace(*latest_);
  const ends_call_on_exception guard(call_);
  start(call_->version());
}

void engine::end() {
  const ends_call_on_exception guard(call_);
  finish();
  call_.reset();
}

}  // namespace railpass::internal::halo

namespace railpass::mpi {

halo::halo(const halo_arguments& arguments)
    : engine_(std::make_unique<internal::halo::engine>(arguments)) {}
halo::halo(halo&&) noexcept = default;
halo& halo::operator=(halo&&) noexcept = default;
halo::~halo() = default;

void halo::exchange() { engine_->exchange(); }
void halo::begin() { engine_->begin(); }
void halo::end() { engine_->end(); }
std::string halo::winner() const { return engine_->winner(); }
std::string halo::last() const { return engine_->last(); }

}  // namespace railpass::mpi
