// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/options.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

namespace railpass::internal::cli {

declared_option& declared_option::value_name(const std::string& name) {
  one_->type_name(name);
  return *this;
}
declared_option& declared_option::show_default() {
  one_->capture_default_str();
  return *this;
}
declared_option& declared_option::show_default(const std::string& text) {
  one_->default_str(text);
  return *this;
}
declared_option& declared_option::required() {
  one_->required();
  return *this;
}
declared_option& declared_option::range(int least, int most) {
  one_->check(CLI::Range(least, most));
  return *this;
}
declared_option& declared_option::range(double least, double most) {
  one_->check(CLI::Range(least, most));
  return *this;
}
declared_option& declared_option::one_of(std::initializer_list<std::string> words) {
  one_->check(CLI::IsMember(std::vector<std::string>(words)));
  return *this;
}
declared_option& declared_option::needs(const std::string& other) {
  one_->needs(other);
  return *this;
}
declared_option& declared_option::excludes(const std::string& other) {
  one_->excludes(other);
  return *this;
}
declared_option& declared_option::separated_by(char separator) {
  one_->delimiter(separator);
  return *this;
}

declared_option& declared_option::once_each() {
  one_->allow_extra_args(false);
  return *this;
}

namespace {

template <class Value>
struct number_in {
  using type = Value;
};
template <class Value>
struct number_in<std::optional<Value>> : number_in<Value> {};
template <class Value>
struct number_in<std::vector<Value>> : number_in<Value> {};

// Reads a decimal number, which CLI11 would also take for octal, hexadecimal or modulo 2^64, and
// writes it as CLI11 reads it. Returns what is wrong.
template <class Number>
std::string read_number(std::string& text) {
  const std::string given = '\'' + text + '\'';
  const char* const end = text.data() + text.size();
  Number number{};
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ptr == end && read.ec == std::errc::result_out_of_range)
    return given + " is out of range";
  if (read.ptr == end && read.ec == std::errc{}) {
    if constexpr (std::is_integral_v<Number>)
      text = std::to_string(number);
    else if (!std::isfinite(number))
      return given + " is not finite";
    return {};
  }
  double other = 0;
  const auto tried = std::from_chars(text.data(), end, other);
  if (tried.ec != std::errc{} || tried.ptr != end) return given + " is not a number";
  return given +
         (std::is_unsigned_v<Number> && other < 0 ? " is negative" : " is not a whole number");
}

}  // namespace

template <class Value>
declared_option add_option(CLI::App& app, const std::string& names, Value& value,
                           const std::string& help) {
  CLI::Option* const one = app.add_option(names, value, help);
  using number = typename number_in<Value>::type;
  if constexpr (std::is_arithmetic_v<number>)
    one->transform(CLI::Validator(&read_number<number>, ""));
  return declared_option(*one);
}
template <class Value>
using adding = declared_option(CLI::App&, const std::string&, Value&, const std::string&);
template adding<std::string> add_option;
template adding<int> add_option;
template adding<std::optional<int>> add_option;
template adding<std::uint64_t> add_option;
template adding<double> add_option;
template adding<std::vector<int>> add_option;
template adding<std::vector<std::string>> add_option;

declared_option add_flag(CLI::App& app, const std::string& names, bool& value,
                         const std::string& help) {
  return declared_option(*app.add_flag(names, value, help));
}

}  // namespace railpass::internal::cli
