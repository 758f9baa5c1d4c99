// SPDX-License-Identifier: BSL-1.0
//
// Any operation of which a program has several versions: the fastest one is found while it runs.
// Which version a call takes is decided as for collectives, by the same policies, and all ranks of
// the communicator take the same one; settings, statistics and knowledge are theirs, too. With
// railpass/region.hpp the time of a whole stretch of code counts, not the time of each call.
//
//     railpass::function_set<void(std::vector<double>&)> step("step", comm, {"tile", "unroll"});
//     step.add("t8u1", {8, 1}, kernel<8, 1>);      // the first one is what runs without railpass
//     step.add("t16u4", {16, 4}, kernel<16, 4>);
//     for (...) step(field);
//     std::string best = step.winner();
//
// Source of the idea: Gabriel, Feki, Benkert, Resch: Towards performance portability through
// runtime adaptation for high-performance computing applications (ADCL), Concurrency and
// Computation 22, 2010, doi:10.1002/cpe.1586.
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

  /// Throws error if the set has no such attribute.
  const attribute_value& operator[](const std::string& attribute) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == attribute) return values_[i];
    throw error("there is no attribute '" + attribute + "'");
  }
  const std::vector<attribute_value>& values() const { return values_; }
  /// "tile=8+unroll=1"
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

/// A request to a set of functions that do the same. Sets of one name on one communicator are the
/// same set, with the same versions: requests to it of equal shape, features and policy share
/// what they learn, at once and after each other. A set is called by one thread at a time.
template <class R, class... Args>
class function_set<R(Args...)> {
 public:
  using version = std::function<R(Args...)>;

  /// Of a set whose calls are collective over `comm`, an intra-communicator, which must live as
  /// long as calls are made. Names have up to 60 letters, digits and any of _-.=+, versions' up
  /// to 200; a set has no collective's name. Shape and features have at most 16 sizes. Collective;
  /// throws error on all ranks alike if a name is none, or the ranks name different things.
  function_set(std::string name, MPI_Comm comm, std::vector<std::string> attributes = {},
               const function_set_options& options = {})
      : request_(std::move(name), comm, std::move(attributes), options) {}

  /// Of a set that each rank calls, and tunes, for itself. Local, between MPI_Init and
  /// MPI_Finalize.
  explicit function_set(std::string name, std::vector<std::string> attributes = {},
                        const function_set_options& options = {})
      : function_set(std::move(name), MPI_COMM_SELF, std::move(attributes), options) {}

  /// One more version, before the first call, the same on all ranks and in the same order: at most
  /// 2048. The first one is in use until another one proves faster. `values`: one of each
  /// attribute. Throws error if the name is none or is taken, or there are not as many values as
  /// attributes. Local.
  function_set& add(std::string name, std::vector<attribute_value> values, version run) {
    request_.add(std::move(name), std::move(values));
    versions_.push_back(std::move(run));
    return *this;
  }
  /// The same for a set without attributes.
  function_set& add(std::string name, version run) {
    return add(std::move(name), {}, std::move(run));
  }

  /// A version for each combination of these values, a list for each attribute, but those of which
  /// `is_excluded(combination)` holds. Each is called as run(combination, args...), and named as
  /// "tile=8+unroll=1".
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

  /// With RAILPASS_VERIFY=1 every call of another version than the first one is followed by that
  /// one, on the same input, and its results, which stay, are compared:
  ///     auto state = copy(args...);          what a version may read and write
  ///     restore(state, args...);             puts it back
  ///     compare(state, state) -> bool        of what the other version left and the first one
  template <class Copy, class Restore, class Compare>
  function_set& verify_with(Copy copy, Restore restore, Compare compare) {
    verified_ = [=](function_set& mine, Args... args) -> R {
      return mine.run_verified(copy, restore, compare, args...);
    };
    return *this;
  }

  /// Runs one version. Collective if the set is: all ranks of its communicator make the same calls
  /// in the same order. In the first call the ranks compare their versions; if these are not the
  /// same, all throw error. What a version throws goes to the caller at once; the other ranks
  /// throw error where they next hear of it, at the latest when times are next merged, unless
  /// they wait inside the version. After that every call throws.
  R operator()(Args... args) {
    if (request_.verifies()) {
      if (verified_) return verified_(*this, std::forward<Args>(args)...);
      request_.note_unverified();
    }
    const detail::set_call call(request_);
    return versions_[call.version()](std::forward<Args>(args)...);
  }

  /// The name of the version that calls take, once that has settled: hardly any other one is tried.
  /// Empty until then. Of calls like this request's last one, in the same region. The same on all
  /// ranks. Local.
  std::string winner() const { return request_.winner(); }
  /// The version of this request's last call; empty before the first. Local.
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
  // They are about to compare results; the exception itself is this rank's.
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
