// SPDX-License-Identifier: BSL-1.0
//
// Declares the options of verbs. CLI11 reads them. Its header takes seconds to compile, so only
// files that print help, or that read what was declared, include it.
#pragma once

#include <initializer_list>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace railpass::internal::cli {

/// An option or argument that was declared. Each function adds a property and returns the option.
class declared_option {
 public:
  explicit declared_option(CLI::Option& one) : one_(&one) {}
  /// The name of the value in the help: FILE, TIME, ...
  declared_option& value_name(const std::string& name);
  /// Shows the present value as the default in the help.
  declared_option& show_default();
  declared_option& show_default(const std::string& text);
  declared_option& required();
  declared_option& range(int least, int most);
  declared_option& range(double least, double most);
  declared_option& one_of(std::initializer_list<std::string> words);
  declared_option& needs(const std::string& other);
  declared_option& excludes(const std::string& other);
  /// Values may be separated by this character, too.
  declared_option& separated_by(char separator);
  /// One value, taken as it is, each time that the option is given.
  declared_option& once_each();

 private:
  CLI::Option* one_;
};

/// Declares an option ("-n,--ranks") or an argument ("files"). The value must live until the verb
/// runs. options.cpp lists the types.
template <class Value>
declared_option add_option(CLI::App& app, const std::string& names, Value& value,
                           const std::string& help);
/// Declares an option without a value.
declared_option add_flag(CLI::App& app, const std::string& names, bool& value,
                         const std::string& help);

}  // namespace railpass::internal::cli
