// SPDX-License-Identifier: BSL-1.0
//
// A version of the halo exchange: its interface, and the resources that versions share.
// versions.def lists all versions.
#pragma once

#include "lib/halo/messages.hpp"
#include "lib/halo/plan.hpp"
#include "lib/halo/windows.hpp"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace railpass::internal::halo {

/// Order of the messages:
/// * at_once: the messages of all directions are under way together;
/// * by_pairs: the messages of one direction end before the next direction begins;
/// * by_dimension: one dimension after the other; each dimension also carries what earlier
///   dimensions have brought (plan::forwarding).
enum class pattern { at_once, by_pairs, by_dimension };

/// Shared by the versions of an exchange.
class resources {
 public:
  /// `p` must outlive this object. `rails`: the networks that settings name, if any.
  resources(const plan& p, std::string rails)
      : plan_(p),
        rails_(std::move(rails)),
        messages_{messages(p.shifts(), p.packed_bytes(), layout::derived),
                  messages(p.shifts(), p.packed_bytes(), layout::packed)},
        forwarding_{messages(p.forwarding(), p.forwarding_bytes(), layout::derived),
                    messages(p.forwarding(), p.forwarding_bytes(), layout::packed)} {}

  const plan& of() const { return plan_; }
  const std::string& rails() const { return rails_; }
  /// Messages of plan::shifts() and of plan::forwarding().
  messages& messages_in(layout in) { return messages_[std::size_t(in)]; }
  messages& forwarding_in(layout in) { return forwarding_[std::size_t(in)]; }
  /// Makes the windows on first use. Collective. Throws unavailable on all ranks, or mpi_failure.
  windows& windows_in(layout in);

 private:
  const plan& plan_;
  std::string rails_;
  std::array<messages, 2> messages_, forwarding_;
  std::array<std::unique_ptr<windows>, 2> windows_{};
  std::array<std::optional<unavailable>, 2> why_none_{};
};

class version {
 public:
  virtual ~version() = default;
  /// May complete the exchange. Throws mpi_failure, as end() does.
  virtual void begin() = 0;
  virtual void end() {}
  /// Logarithm of the estimated time relative to other versions, until this version has been tried.
  virtual double lag() const { return 0; }
};

/// An entry of versions.def.
struct version_description {
  std::string_view primitive;
  pattern how;
  layout in;
  /// Collective. Throws unavailable on all ranks, or mpi_failure.
  std::unique_ptr<version> (*make)(resources& shared, pattern how, layout in);

  std::string_view pattern_name() const {
    return how == pattern::at_once    ? "at_once"
           : how == pattern::by_pairs ? "by_pairs"
                                      : "by_dimension";
  }
  std::string_view layout_name() const { return in == layout::derived ? "derived" : "packed"; }
  /// For example isend_irecv_at_once_packed.
  std::string name() const {
    return std::string(primitive) + "_" + std::string(pattern_name()) + "_" +
           std::string(layout_name());
  }
};

std::span<const version_description> versions();

}  // namespace railpass::internal::halo
