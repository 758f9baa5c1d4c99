// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_HALO_VERSION
RAILPASS_LIST_HALO_VERSION(rail_messages, at_once, packed)
#elif !defined(RAILPASS_HALO_VERSIONS_RAIL_MESSAGES)
#define RAILPASS_HALO_VERSIONS_RAIL_MESSAGES

#include "lib/halo/version.hpp"
#include "railpass/rails.hpp"

#include <array>
#include <vector>

namespace railpass::internal::halo {

/// Messages of railpass' own, over all networks that RAILPASS_RAILS names at once.
class rail_messages final : public version {
 public:
  rail_messages(resources& shared, pattern, layout in)
      : comm_(shared.of().comm()),
        shifts_(shared.of().shifts()),
        messages_(shared.messages_in(in)),
        under_way_(2 * shifts_.size()) {
    if (!on_all(comm_, !shared.rails().empty())) throw unavailable{"RAILPASS_RAILS is not set"};
    mpi::rails_options named;
    named.rails = shared.rails();
    try {
      mpi::open_rails(comm_, named);
    } catch (const error& e) {  // on all ranks
      throw unavailable{e.what()};
    }
  }
  ~rail_messages() override {
    try {
      mpi::close_rails(comm_);
    } catch (const error&) {  // the exchange before has failed, or messages of others
    }
  }

  void begin() override {
    checked([&] {
      for (std::size_t i = 0; i < shifts_.size(); ++i)
        if (const shift& s = shifts_[i]; s.from != MPI_PROC_NULL)
          under_way_[2 * i] =
              mpi::irecv(whole(messages_.received(i), s.received.bytes()), s.from, s.tag, comm_);
      for (std::size_t i = 0; i < shifts_.size(); ++i) {
        messages_.pack(i);
        const shift& s = shifts_[i];
        under_way_[2 * i + 1] =
            mpi::isend(whole(messages_.sent(i), s.sent.bytes()), s.to, s.tag, comm_);
      }
    });
  }

  void end() override {
    checked([&] {
      for (mpi::message& m : under_way_) m.wait();
    });
    for (std::size_t i = 0; i < shifts_.size(); ++i) messages_.unpack(i);
  }

 private:
  static std::array<mpi::message_part, 1> whole(const message& m, std::int64_t bytes) {
    return {{{m.buffer, std::size_t(bytes)}}};
  }
  template <class F>
  static void checked(const F& work) {
    try {
      work();
    } catch (const error& e) {
      throw mpi_failure{"rails", MPI_ERR_OTHER, e.what()};
    }
  }

  MPI_Comm comm_;
  const std::vector<shift>& shifts_;
  messages& messages_;
  std::vector<mpi::message> under_way_;  // of each shift the receive and the send
};

}  // namespace railpass::internal::halo

#endif
