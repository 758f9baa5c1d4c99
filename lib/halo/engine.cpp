// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/engine.hpp"

#include "lib/session/inside.hpp"
#include "railpass/base/error.hpp"

#include <utility>

namespace railpass::mpi {

using namespace railpass::halo;

halo::engine::engine(const halo_arguments& arguments) : name_(arguments.options.name) {
  const inside guard;
  if (arguments.comm == MPI_COMM_NULL) throw error("halo_exchange: the communicator is null");
  try {
    check("MPI_Comm_get_errhandler", PMPI_Comm_get_errhandler(arguments.comm, &users_handler_));
    check("MPI_Comm_create", make_private_communicator(arguments.comm, comm_));
    make(arguments);
  } catch (const mpi_failure& failure) {
    fail(failure);
  } catch (const error&) {  // on all ranks
    let_go();
    throw;
  }
}

halo::engine::~engine() {
  const inside guard;
  int ended = 0;
  PMPI_Finalized(&ended);
  // What is left of MPI's goes with it. After a failure others may never come to free a window.
  if (ended || failed_) {
    for (candidate& c : candidates_) static_cast<void>(c.run.release());
    static_cast<void>(resources_.release());
    static_cast<void>(plan_.release());
    return;
  }
  let_go();
}

void halo::engine::let_go() {
  candidates_.clear();
  resources_.reset();
  plan_.reset();
  comm_.free();
  PMPI_Errhandler_free(&users_handler_);
}

void halo::engine::make(const halo_arguments& arguments) {
  plan_ = std::make_unique<plan>(comm_.handle, arguments);
  resources_ = std::make_unique<resources>(*plan_);
  for (const version_description& v : versions()) {
    try {
      candidates_.push_back({&v, v.make(*resources_, v.how, v.in)});
    } catch (const unavailable& u) {
      left_out_.emplace_back(v.name(), u.why);
    }
  }
}

void halo::engine::fail(const mpi_failure& failure) {
  failed_ = true;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  PMPI_Error_string(failure.code, text, &length);
  if (comm_.handle != MPI_COMM_NULL) {
    PMPI_Comm_set_errhandler(comm_.handle, users_handler_);
    PMPI_Comm_call_errhandler(comm_.handle, failure.code);
    PMPI_Comm_set_errhandler(comm_.handle, MPI_ERRORS_RETURN);
  }
  throw error("halo_exchange '" + name_ + "': " + failure.call + ": " +
              std::string(text, std::size_t(length)));
}

void halo::engine::begin(std::size_t index) {
  if (under_way_)
    throw error("halo_exchange '" + name_ + "': one exchange has begun and not ended");
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

void halo::engine::end() {
  if (!under_way_) throw error("halo_exchange '" + name_ + "': none has begun that could end");
  const inside guard;
  try {
    std::exchange(under_way_, nullptr)->end();
  } catch (const mpi_failure& failure) {
    fail(failure);
  }
}

halo::halo(halo_arguments arguments) : engine_(std::make_unique<engine>(arguments)) {}
halo::halo(halo&&) noexcept = default;
halo& halo::operator=(halo&&) noexcept = default;
halo::~halo() = default;

void halo::exchange() {
  begin();
  end();
}
void halo::begin() { engine_->begin(0); }
void halo::end() { engine_->end(); }

}  // namespace railpass::mpi
