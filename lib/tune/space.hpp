// SPDX-License-Identifier: BSL-1.0
//
// A space of run-time parameters: their values, the conditions between them, and the combinations
// that are left (Chaarawi, Squyres, Gabriel, Feki: A Tool for Optimizing Runtime Parameters of Open
// MPI, doi:10.1007/978-3-540-87475-1_30). Nothing here holds all combinations at once.
#pragma once

#include "railpass/base/error.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::internal::tune {

struct parameter;

constexpr bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

/// A condition in reverse Polish notation: "a b >" means a > b. Operators: + - * / = != > < >= <=
/// && || . Operands: integers, names of parameters, other words as texts (only = and != take
/// texts). Any value but 0 is true. A condition that cannot be computed for a combination (division
/// by zero, more than 64 bits) is false.
class condition {
 public:
  condition() = default;
  /// Throws error with a sentence that names the word, without file or line.
  condition(std::string_view text, const std::vector<parameter>& parameters);

  bool empty() const { return program_.empty(); }
  const std::string& text() const { return text_; }
  /// Indices of the parameters in the condition.
  const std::vector<std::size_t>& uses() const { return uses_; }
  /// Level i of `levels` belongs to parameter i.
  bool holds(const std::vector<parameter>& parameters,
             const std::vector<std::uint16_t>& levels) const;

 private:
  enum class op : std::uint8_t {
    number,
    text,
    parameter,
    add,
    subtract,
    multiply,
    divide,
    equal,
    not_equal,
    greater,
    less,
    greater_equal,
    less_equal,
    both,
    either
  };
  struct word {
    op what = op::number;
    std::int64_t number = 0;
    std::size_t index = 0;  // of the parameter
    std::string text;
  };
  static op operator_of(std::string_view word);

  std::string text_;
  std::vector<word> program_;
  std::vector<std::size_t> uses_;
};

/// One parameter. An aggregate has one level and no separate values: its value is composed of other
/// parameters' values.
struct parameter {
  std::string name;
  std::vector<std::string> values;    ///< one per level, each different
  std::vector<std::int64_t> numbers;  ///< the values as integers, if all are integers
  std::optional<std::string> default_value;
  bool is_virtual = false;               ///< part of aggregates only, never set alone
  std::optional<std::string> aggregate;  ///< format with $name$ for other parameters' values
  std::string condition_text;            ///< empty: no condition
  condition when = {};                   ///< made of condition_text by space

  bool numeric() const { return !numbers.empty(); }
  std::size_t levels() const { return aggregate ? 1 : values.size(); }
};

/// The level of every parameter, in the order of the file.
using combination = std::vector<std::uint16_t>;

/// Settings of a command: names and values, without virtual parameters, with aggregates.
using settings_list = std::vector<std::pair<std::string, std::string>>;

/// How conditions restrict combinations.
enum class condition_rule {
  none,        ///< all
  strict,      ///< every condition holds
  first_value  ///< a parameter whose condition is false is kept at its first value only; so
               ///< the first value of all of them is always a combination
};

inline constexpr std::size_t most_levels = 65535;
inline constexpr std::size_t most_values = 1 << 20;  // of all parameters

class space {
 public:
  /// An error in one parameter, so that a reader can add its line.
  class parameter_error : public error {
   public:
    parameter_error(std::size_t which, const std::string& what) : error(what), index(which) {}
    std::size_t index;
  };

  /// Compiles the conditions. Throws parameter_error; throws error if there is no parameter.
  explicit space(std::vector<parameter> parameters);

  const std::vector<parameter>& parameters() const { return parameters_; }

  /// The first combination in the order of enumeration (the last parameter changes fastest).
  /// Nothing only if a strict rule allows no combination.
  std::optional<combination> first(condition_rule rule = condition_rule::first_value) const;
  /// Moves to the next combination; false after the last.
  bool next(combination& c, condition_rule rule = condition_rule::first_value) const;
  /// The number of combinations, counted up to `limit`.
  std::uint64_t count(condition_rule rule = condition_rule::first_value,
                      std::uint64_t limit = ~std::uint64_t{0}) const;
  bool allows(const combination& c, condition_rule rule = condition_rule::first_value) const;

  /// A random combination that the first-value rule allows.
  combination draw(std::mt19937_64& random) const;
  /// The combination nearest to the defaults: each parameter at its default, or at its first value
  /// if the default is no value; first() if the conditions forbid this.
  combination nearest_to_defaults() const;

  settings_list settings(const combination& c) const;
  /// Like settings(), for the default values alone. Parameters without a default, and their
  /// aggregates, have their first value.
  settings_list default_settings() const;
  /// The value of a parameter in a combination.
  std::string value(const combination& c, std::size_t parameter) const;

 private:
  struct piece {
    std::string text;
    std::optional<std::size_t> parameter;  // its value instead of the text
  };
  // Moves c to the first allowed combination that starts with its first `depth` levels or follows
  // them.
  bool settle(combination& c, std::size_t depth, condition_rule rule) const;
  bool holds(std::size_t parameter, const combination& c, condition_rule rule) const;
  template <typename Value>
  settings_list settings_by(Value value_of) const;

  std::vector<parameter> parameters_;
  std::vector<std::vector<piece>> formats_;  // of aggregates, else empty
  std::vector<std::vector<std::size_t>>
      decided_at_;  // conditions decided by the first i + 1 levels
};

}  // namespace railpass::internal::tune
