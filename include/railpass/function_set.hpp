// SPDX-License-Identifier: BSL-1.0
//
// Function sets: several versions of one operation, of which railpass finds the fastest while the
// program runs. The policies, settings, statistics and knowledge are those of collectives, and all
// ranks of the communicator use the same version. With railpass/region.hpp the time of a whole
// region counts instead of the time of each call.
//
//     railpass::function_set<void(std::vector<double>&)> step("step", comm, {"tile", "unroll"});
//     step.add("t8u1", {8, 1}, kernel<8, 1>);      // the first one is what runs without railpass
//     step.add("t16u4", {16, 4}, kernel<16, 4>);
//     for (...) step(field);
//     std::string best = step.winner();
//
// Source: Gabriel, Feki, Benkert, Resch: Towards performance portability through runtime adaptation
// for high-performance computing applications (ADCL), Concurrency and Computation 22, 2010,
// doi:10.1002/cpe.1586.
#pragma once

#include "railpass/detail/set_call.hpp"

#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace railpass {

/// One value of each attribute of a set.
class attribute_combination {
 public:
  attribute_combination(const std::vector<std::string>& names, std::vector<attribute_value> values)
      : names_(names), values_(std::move(values)) {}

  /// @throws railpass::error if the set has no such attribute
  const attribute_value& operator[](const std::string& attribute) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == attribute) return values_[i];
    throw error("there is no attribute '" + attribute + "'");
  }
  const std::vector<attribute_value>& values() const { return values_; }
  /// Returns the values as text, for example "tile=8+unroll=1".
  std::string name() const {
    std::string text;
    for (std::size_t i = 0; i < names_.size(); ++i)
      text += (i ? "+" : "") + names_[i] + "=" + values_[i].text();
    return text;
  }

 private:
  std::vector<std::string> names_;
  std::vector<attribute_value> values_;
};

template <class Signature>
class function_set;

/// A request to a function set. Sets of one name on one communicator are the same set, with the
/// same versions. Requests of equal shape, features and policy share their statistics, at the same
/// time and one after the other. A set is called by one thread at a time.
template <class R, class... Args>
class function_set<R(Args...)> {
 public:
  using version = std::function<R(Args...)>;

  /// Creates a set whose calls are collective over `comm`. Collective over `comm`.
  /// @param name up to 60 letters, digits and any of _-.=+, not a collective's name; names of
  ///   versions have up to 200 characters
  /// @param comm an intra-communicator; must live as long as calls are made
  /// @param options shape and features have at most 16 sizes
  /// @throws railpass::error on every rank if a name is invalid or the ranks' arguments differ
  function_set(std::string name, MPI_Comm comm, std::vector<std::string> attributes = {},
               const function_set_options& options = {})
      : request_(std::move(name), comm, std::move(attributes), options) {}

  /// Creates a set that each rank calls and tunes for itself. Local, between MPI_Init and
  /// MPI_Finalize.
  explicit function_set(std::string name, std::vector<std::string> attributes = {},
                        const function_set_options& options = {})
      : function_set(std::move(name), MPI_COMM_SELF, std::move(attributes), options) {}

  /// Adds a version. Local, but all ranks add the same versions in the same order before the first
  /// call, at most 2048. The first version is in use until another version proves faster.
  /// @param values one value for each attribute
  /// @throws railpass::error if the name is invalid or in use, or the number of values is wrong
  function_set& add(std::string name, std::vector<attribute_value> values, version run) {
    request_.add(std::move(name), std::move(values));
    versions_.push_back(std::move(run));
    return *this;
  }
  /// Adds a version to a set without attributes.
  function_set& add(std::string name, version run) {
    return add(std::move(name), {}, std::move(run));
  }

  /// Adds a version for each combination of values. Otherwise as add().
  /// @param values a list for each attribute
  /// @param run called as run(combination, args...); the version's name is like "tile=8+unroll=1"
  /// @param is_excluded is_excluded(combination) returns whether to skip the combination
  template <class Run, class Excluded>
  function_set& add_product(const std::vector<std::vector<attribute_value>>& values, Run run,
                            Excluded is_excluded) {
    if (values.size() != request_.attributes().size())
      throw error("function set: expected a list of values for each of its " +
                  std::to_string(request_.attributes().size()) + " attributes, found " +
                  std::to_string(values.size()));
    add_combinations(values, {}, run, is_excluded);
    return *this;
  }
  template <class Run>
  function_set& add_product(const std::vector<std::vector<attribute_value>>& values, Run run) {
    return add_product(values, std::move(run), [](const attribute_combination&) { return false; });
  }

  /// Says how to verify results if RAILPASS_VERIFY=1. After every call of another version, the
  /// first version then runs on the same input. railpass compares the results, and the results of
  /// the first version stay.
  /// @param copy `auto state = copy(args...)` copies everything that a version may read and write
  /// @param restore `restore(state, args...)` puts the copy back
  /// @param compare `compare(state, state) -> bool` compares the results of the other and the first
  ///   version
  template <class Copy, class Restore, class Compare>
  function_set& verify_with(Copy copy, Restore restore, Compare compare) {
    verified_ = [=](function_set& mine, Args... args) -> R {
      return mine.run_verified(copy, restore, compare, args...);
    };
    return *this;
  }

  /// Runs one version. Collective over the set's communicator, in the same order on all ranks.
  ///
  /// The first call compares the ranks' versions. An exception of a version goes to the caller at
  /// once. The other ranks throw railpass::error when they next communicate about tuning, at the
  /// latest at the next synchronisation of times, unless they wait inside the version. Every later
  /// call throws.
  /// @throws railpass::error on every rank if the ranks' versions differ
  R operator()(Args... args) {
    if (request_.verifies()) {
      if (verified_) return verified_(*this, std::forward<Args>(args)...);
      request_.note_unverified();
    }
    const detail::set_call call(request_);
    return versions_[call.version()](std::forward<Args>(args)...);
  }

  /// Returns the version that calls like this request's last one use (in the same region), once the
  /// choice has converged: other versions are then hardly ever tried. Local.
  /// @return a name, the same on all ranks; empty until the choice has converged
  std::string winner() const { return request_.winner(); }
  /// Returns the version of this request's last call; empty before the first. Local.
  std::string last() const { return request_.last(); }

 private:
  template <class Run, class Excluded>
  void add_combinations(const std::vector<std::vector<attribute_value>>& values,
                        const std::vector<attribute_value>& chosen, const Run& run,
                        const Excluded& is_excluded) {
    if (chosen.size() < values.size()) {
      for (const attribute_value& v : values[chosen.size()]) {
        std::vector<attribute_value> more = chosen;
        more.push_back(v);
        add_combinations(values, more, run, is_excluded);
      }
      return;
    }
    const attribute_combination one(request_.attributes(), chosen);
    if (is_excluded(one)) return;
    add(one.name(), chosen,
        [run, one](Args... args) -> R { return run(one, std::forward<Args>(args)...); });
  }

  template <class Copy, class Restore, class Compare>
  R run_verified(const Copy& copy, const Restore& restore, const Compare& compare, Args&... args) {
    const auto before = copy(args...);
    std::size_t tried = 0;
    try {
      const detail::set_call call(request_);
      tried = call.version();
      if (tried == 0) return versions_[0](args...);
      versions_[tried](args...);
    } catch (...) {
      if (tried > 0) tell_others(tried);
      throw;
    }
    const auto found = copy(args...);
    restore(before, args...);
    const auto compare_with_first = [&] {
      request_.settle_results(tried, compare(found, copy(args...)) ? "" : "gives another result");
    };
    if constexpr (std::is_void_v<R>) {
      versions_[0](args...);
      compare_with_first();
    } else {
      R result = versions_[0](args...);
      compare_with_first();
      return result;
    }
  }
  // The other ranks are about to compare results; this rank throws its own exception instead.
  void tell_others(std::size_t tried) {
    try {
      request_.settle_results(tried, "threw an exception");
    } catch (const error&) {
    }
  }

  detail::set_request request_;
  std::vector<version> versions_;
  std::function<R(function_set&, Args...)> verified_;
};

}  // namespace railpass
