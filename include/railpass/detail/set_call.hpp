// SPDX-License-Identifier: BSL-1.0
//
// The part of function_set without templates, compiled once in librailpass.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/features.hpp"

#include <mpi.h>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace railpass {

/// A value of an attribute: a number, or a text such as "row".
class attribute_value {
 public:
  template <class T>
  requires std::integral<T> || std::floating_point<T> attribute_value(T number)
      : number_(static_cast<double>(number)), is_number_(true) {
    char text[64];
    text_.assign(text, std::to_chars(text, text + sizeof text, number).ptr);
  }
  attribute_value(bool value) : attribute_value(value ? 1 : 0) {}
  attribute_value(const char* text) : text_(text) {}
  attribute_value(std::string text) : text_(std::move(text)) {}

  bool is_number() const { return is_number_; }
  /// @throws railpass::error if the value is a text
  double number() const {
    if (!is_number_) throw error("attribute value '" + text_ + "': expected a number");
    return number_;
  }
  /// The value as in the names of versions.
  const std::string& text() const { return text_; }
  friend bool operator==(const attribute_value& a, const attribute_value& b) {
    return a.text_ == b.text_ && a.is_number_ == b.is_number_;
  }

 private:
  std::string text_;
  double number_ = 0;
  bool is_number_ = false;
};

/// Options of a request to a function set; equal on all ranks of the set's communicator.
struct function_set_options {
  std::size_t struct_bytes = sizeof(function_set_options);  ///< see options.hpp
  /// Sizes on which the versions' times depend. Requests of one set with different shapes have
  /// separate statistics.
  std::vector<std::int64_t> shape{};
  /// Sizes of at least 0 on which the times depend smoothly, for example message lengths in bytes.
  /// Requests with different features have separate statistics, but the prior estimate of a version
  /// comes from requests of equal shape and the same number of features nearby.
  std::vector<std::int64_t> features{};
  /// The distance between two vectors of features: at least 0, the same on all ranks. Features at a
  /// distance above 3, or whose distance throws, share nothing. The function must call neither MPI
  /// nor railpass. Null: the Euclidean distance in octaves, where features below 1 count as 1.
  feature_distance distance{};
  std::string policy{};  ///< empty: the communicator's (RAILPASS_POLICY); has statistics of its own
  /// Versions that calls of this request must not use; never the first version.
  std::vector<std::string> without{};
};

namespace internal {
class request_state;
}

namespace detail {

/// The part of function_set without templates; function_set documents the members.
class set_request {
 public:
  set_request(std::string name, MPI_Comm comm, std::vector<std::string> attributes,
              const function_set_options& options);
  explicit set_request(std::unique_ptr<internal::request_state> state);
  set_request(set_request&&) noexcept;
  set_request& operator=(set_request&&) noexcept;
  ~set_request();

  /// @param lag see select::arm_prior; may differ between requests
  void add(std::string version, std::vector<attribute_value> values, double lag = 0);
  const std::vector<std::string>& attributes() const;
  std::string winner() const;
  std::string last() const;

  /// Whether to compare results (RAILPASS_VERIFY).
  bool verifies() const;
  /// Notes that RAILPASS_VERIFY is set, but verify_with was not called.
  void note_unverified();
  /// Exchanges what is wrong with the ranks' results of `version`. Collective.
  /// @param problem empty if this rank's results are right
  /// @throws railpass::error on every rank if `problem` is not empty on any rank
  void settle_results(std::size_t version, const std::string& problem);

 private:
  friend class set_call;
  std::unique_ptr<internal::request_state> state_;
};

/// One call of a function set. The object lives as long as the version runs, and the lifetime is
/// the version's time. The other ranks learn of an exception that ends the call.
class set_call {
 public:
  /// Chooses the version.
  /// @throws railpass::error as function_set's calls do
  explicit set_call(set_request& of);
  ~set_call();
  set_call(const set_call&) = delete;
  set_call& operator=(const set_call&) = delete;

  std::size_t version() const { return std::size_t(version_); }

 private:
  friend class internal::request_state;

  internal::request_state& of_;
  int exceptions_;
  int version_ = 0;
  bool is_told_ = false;     // the other ranks learn of an exception
  bool is_watched_ = false;  // the lockstep or the trace needs the end time
  double started_s_ = 0;
  // The decision of the lockstep for this call.
  std::int64_t number_ = -1;
  bool timed_ = false, notes_end_ = false;
  std::int64_t round_ = 0;
};

}  // namespace detail
}  // namespace railpass
