// SPDX-License-Identifier: BSL-1.0
//
// The failure of a transport. The rails themselves, and silence.hpp, detect failures of rails.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/transport/packet_rail.hpp"

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::transport {

class failure_state {
 public:
  /// @param rails of this rank; abandoned when the transport ends. The vector must live as long.
  failure_state(int rank, const std::vector<std::unique_ptr<packet_rail>>& rails)
      : rank_(rank), rails_(rails) {}

  bool alive() const { return alive_; }
  /// The reason of the first failure; empty if unknown.
  const std::string& reason() const { return reason_; }

  /// Notes a failure; check_alive() ends the transport.
  void note(std::string_view why) noexcept;
  /// Ends the transport: abandons all rails.
  void fail(std::string_view why) noexcept;
  /// Ends the transport because a peer broke the protocol.
  /// @throws error
  [[noreturn]] void violated(int peer, const std::string& what);
  /// @throws error if there was a failure
  void check_alive() {
    if (!alive_) end();
  }

  /// Does `work`. An exception in the middle of it leaves an inconsistent state, so the transport
  /// ends.
  /// @throws what `work` throws; error in place of every other std::exception
  template <class Work>
  void whole_or_failed(const Work& work) {
    try {
      work();
    } catch (const error& e) {
      fail(e.what());
      throw;
    } catch (const std::exception& e) {
      give_up(e.what());
      check_alive();
    } catch (...) {
      give_up("an exception that is no std::exception");
      throw;
    }
  }

 private:
  [[noreturn]] void end();
  void give_up(const char* why) noexcept;

  int rank_;
  const std::vector<std::unique_ptr<packet_rail>>& rails_;
  bool alive_ = true, given_up_ = false;
  std::string reason_;
};

}  // namespace railpass::transport
