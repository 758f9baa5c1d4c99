// SPDX-License-Identifier: BSL-1.0
//
// Reads a JSON document field by field; whatever is not as expected is an error that says where.
#pragma once

#include "railpass/base/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::files {

inline constexpr std::int64_t largest_integer = std::int64_t{1} << 53;  // exact in any JSON reader
inline constexpr int largest_count = 1 << 24;                           // ranks, hosts, cores
inline constexpr int deepest_nesting = 64;                              // no format needs a tenth

/// The text as JSON; throws error with `name`, the line and column and what is wrong. Looks at the
/// depth first, as all that goes through a document later is recursive.
nlohmann::json parse_json(std::string_view text, const std::string& name);

/// A value inside a document; that and its name must outlive it. Error messages say the way to it.
class json_reader {
 public:
  /// `name`: the document's.
  json_reader(const nlohmann::json& document, const std::string& name)
      : json_reader(document, document, name) {}

  [[noreturn]] void fail(const std::string& what) const;

  /// The value must be an object and may have these fields only.
  void expect_fields(const std::vector<std::string_view>& known) const;

  bool has(std::string_view key) const;
  json_reader field(std::string_view key) const;
  /// This value, a list.
  std::vector<json_reader> items() const;
  std::vector<json_reader> list(std::string_view key) const { return field(key).items(); }

  /// This value.
  double finite() const;
  /// Finite and >= 0.
  double number() const;
  double number(std::string_view key) const { return field(key).number(); }
  double positive() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::int64_t integer(std::string_view key, std::int64_t low = 0,
                       std::int64_t high = largest_integer) const {
    return field(key).integer(low, high);
  }
  /// This value.
  const std::string& text() const;
  std::string text(std::string_view key) const { return field(key).text(); }
  std::string name(std::string_view key) const;
  bool boolean() const;
  bool boolean(std::string_view key) const { return field(key).boolean(); }
  /// This value, a text or the text of an integer.
  std::string word() const;
  std::string word(std::string_view key) const { return field(key).word(); }
  std::vector<std::string> words(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t low,
                                     std::int64_t high) const;
  /// This value, a list of integers.
  std::vector<std::int64_t> integers(std::int64_t low, std::int64_t high) const;
  /// This value as JSON again.
  std::string dump() const;
  /// This value's beginning, for error messages.
  std::string shown() const;

  std::vector<double> positives(std::string_view key) const;
  /// Every field of this value, an object of texts.
  std::map<std::string, std::string> texts() const;

 private:
  json_reader(const nlohmann::json& value, const nlohmann::json& document, const std::string& name)
      : value_(&value), document_(&document), name_(&name) {}

  // Only when something is wrong, as most files are read without.
  bool find_way(const nlohmann::json& from, std::string& way) const;
  const nlohmann::json *value_, *document_;
  const std::string* name_;
};

/// The document of one of railpass' formats: a JSON object with the fields `format` and `version`.
class json_document {
 public:
  /// Throws if the text is not such a document.
  json_document(std::string_view text, const std::string& name);
  json_reader root() const { return {value_, name_}; }
  std::string format() const { return root().text("format"); }

  /// The document's fields, once it is known to be of this format and of no newer version.
  json_reader expect(std::string_view expected, int newest_version) const;

 private:
  nlohmann::json value_;
  std::string name_;
};

}  // namespace railpass::internal::files
