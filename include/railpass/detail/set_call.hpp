// SPDX-License-Identifier: BSL-1.0
//
// What the template function_set calls: requests to function sets, compiled once in librailpass.
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
  /// Throws error if it is a text.
  double number() const {
    if (!is_number_) throw error("attribute value '" + text_ + "': expected a number");
    return number_;
  }
  /// As it is written in the names of versions.
  const std::string& text() const { return text_; }
  friend bool operator==(const attribute_value& a, const attribute_value& b) {
    return a.text_ == b.text_ && a.is_number_ == b.is_number_;
  }

 private:
  std::string text_;
  double number_ = 0;
  bool is_number_ = false;
};

/// What requests to a function set may say; equal on all ranks of its communicator.
struct function_set_options {
  std::size_t struct_bytes = sizeof(function_set_options);  ///< see options.hpp
  /// Sizes on which the versions' times depend. Requests of one set with different shapes learn
  /// apart.
  std::vector<std::int64_t> shape{};
  /// Sizes on which they depend steadily, such as lengths of messages in bytes; none below 0.
  /// Requests with different features learn apart, too, but what is known of near ones, of equal
  /// shape and as many features, is what versions are first thought to take.
  std::vector<std::int64_t> features{};
  /// How far what is known of some features is from others, the same on all ranks: 0 or more,
  /// and above 3 they say nothing of one another, as if it throws. It calls neither MPI nor
  /// railpass. Null: the octaves between them, Euclidean; features below 1 count as 1.
  feature_distance distance{};
  std::string policy{};  ///< empty: the communicator's (RAILPASS_POLICY); another one learns apart
  /// Versions that these calls cannot take; not the first one.
  std::vector<std::string> without{};
};

namespace internal {
class request_state;
}

namespace detail {

/// See function_set, whose members these are.
class set_request {
 public:
  set_request(std::string name, MPI_Comm comm, std::vector<std::string> attributes,
              const function_set_options& options);
  explicit set_request(std::unique_ptr<internal::request_state> state);
  set_request(set_request&&) noexcept;
  set_request& operator=(set_request&&) noexcept;
  ~set_request();

  /// `lag`: see select::arm_prior; it may differ from request to request.
  void add(std::string version, std::vector<attribute_value> values, double lag = 0);
  const std::vector<std::string>& attributes() const;
  std::string winner() const;
  std::string last() const;

  /// Whether results are to be compared (RAILPASS_VERIFY).
  bool verifies() const;
  /// There is nothing to compare them with.
  void note_unverified();
  /// Tells the others what is wrong with this rank's results of a version, if anything is. Throws
  /// error on all ranks if there is anything on one of them. Collective.
  void settle_results(std::size_t version, const std::string& problem);

 private:
  friend class set_call;
  std::unique_ptr<internal::request_state> state_;
};

/// A call, while it lasts: the version it takes, whose time this object's life is. An exception
/// that ends it is told to the other ranks.
class set_call {
 public:
  /// Chooses the version. Throws error.
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
  bool is_told_ = false;     // others hear of an exception
  bool is_watched_ = false;  // somebody wants to know when it ends
  double started_s_ = 0;
  // What the lockstep says of it.
  int slot_ = -1;
  bool timed_ = false, notes_end_ = false;
  std::int64_t round_ = 0;
};

}  // namespace detail
}  // namespace railpass
