// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/options.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
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

template <class Value>
declared_option add_option(CLI::App& app, const std::string& names, Value& value,
                           const std::string& help) {
  return declared_option(*app.add_option(names, value, help));
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
