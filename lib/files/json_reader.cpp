// SPDX-License-Identifier: BSL-1.0
#include "lib/files/json_reader.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace railpass::internal::files {
namespace {

// Line and column of the byte, counted from 1.
std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - line_begin + 1);
}

// The position of the first bracket that is nested too deeply, counted from 1; 0: no such bracket.
// Invalid JSON is left to the parser.
std::size_t too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++depth > deepest_nesting)
      return i + 1;
    else if (!in_string && (c == ']' || c == '}'))
      --depth;
  }
  return 0;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& name) {
  if (const std::size_t byte = too_deep(text))
    throw error(name + ": " + line_and_column(text, byte) + ": expected JSON nested at most " +
                std::to_string(deepest_nesting) + " deep");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    throw error(name + ": " + line_and_column(text, e.byte) +
                ": not a railpass file, or cut short (expected JSON)");
  } catch (const nlohmann::json::out_of_range&) {
    throw error(name + ": a number is too large");
  }
}

void json_reader::fail(const std::string& what) const {
  std::string way;
  find_way(*document_, way);
  throw error(*name_ + (way.starts_with('.') ? ": " + way.substr(1) : way) + ": " + what);
}

void json_reader::expect_fields(const std::vector<std::string_view>& known) const {
  if (!value_->is_object()) fail("expected an object, found " + shown());
  for (const auto& [key, ignored] : value_->items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail("there is no field '" + key.substr(0, 40) + "' in this format");
}

bool json_reader::has(std::string_view key) const {
  const auto it = value_->find(key);
  return it != value_->end() && !it->is_null();
}

json_reader json_reader::field(std::string_view key) const {
  if (!value_->is_object()) fail("expected an object, found " + shown());
  const auto it = value_->find(key);
  if (it == value_->end()) fail("the field '" + std::string(key) + "' is missing");
  return {*it, *document_, *name_};
}

std::vector<json_reader> json_reader::items() const {
  if (!value_->is_array()) fail("expected a list, found " + shown());
  std::vector<json_reader> result;
  result.reserve(value_->size());
  for (const nlohmann::json& item : *value_)
    result.push_back(json_reader(item, *document_, *name_));
  return result;
}

double json_reader::finite() const {
  if (!value_->is_number()) fail("expected a number, found " + shown());
  const double x = value_->get<double>();
  if (!std::isfinite(x)) fail("expected a finite number, found " + shown());
  return x;
}

double json_reader::number() const {
  const double x = finite();
  if (x < 0) fail("expected a number >= 0, found " + shown());
  return x;
}

double json_reader::positive() const {
  const double x = number();
  if (x == 0) fail("expected a number > 0, found 0");
  return x;
}

std::int64_t json_reader::integer(std::int64_t low, std::int64_t high) const {
  const bool in_range =
      value_->is_number_integer() &&
      (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= std::uint64_t(high)) &&
      value_->get<std::int64_t>() >= low && value_->get<std::int64_t>() <= high;
  if (!in_range)
    fail("expected an integer from " + std::to_string(low) + " to " + std::to_string(high) +
         ", found " + shown());
  return value_->get<std::int64_t>();
}

const std::string& json_reader::text() const {
  if (!value_->is_string()) fail("expected a text, found " + shown());
  return value_->get_ref<const std::string&>();
}

std::string json_reader::name(std::string_view key) const {
  std::string word = text(key);
  if (word.empty()) field(key).fail("expected a name, found an empty text");
  return word;
}

bool json_reader::boolean() const {
  if (!value_->is_boolean()) fail("expected true or false, found " + shown());
  return value_->get<bool>();
}

std::vector<std::string> json_reader::words(std::string_view key) const {
  std::vector<std::string> result;
  for (const json_reader& item : list(key)) result.push_back(item.word());
  return result;
}

std::vector<std::int64_t> json_reader::integers(std::string_view key, std::int64_t low,
                                                std::int64_t high) const {
  return field(key).integers(low, high);
}

std::vector<std::int64_t> json_reader::integers(std::int64_t low, std::int64_t high) const {
  std::vector<std::int64_t> result;
  for (const json_reader& item : items()) result.push_back(item.integer(low, high));
  return result;
}

std::string json_reader::dump() const {
  return value_->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string json_reader::shown() const {
  std::string text =
      value_->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 40);
  return text.size() == 40 ? text + "..." : text;
}

std::vector<double> json_reader::positives(std::string_view key) const {
  std::vector<double> result;
  for (const json_reader& item : list(key)) result.push_back(item.positive());
  return result;
}

std::map<std::string, std::string> json_reader::texts() const {
  if (!value_->is_object()) fail("expected an object, found " + shown());
  std::map<std::string, std::string> result;
  for (const auto& [k, ignored] : value_->items()) result[k] = text(k);
  return result;
}

bool json_reader::find_way(const nlohmann::json& from, std::string& way) const {
  if (&from == value_) return true;
  const std::size_t length = way.size();
  for (const auto& [key, inside] : from.items()) {
    if (!inside.is_structured() && &inside != value_) continue;
    way += from.is_array() ? '[' + key + ']' : '.' + key;
    if (find_way(inside, way)) return true;
    way.resize(length);
  }
  return false;
}

std::string json_reader::word() const {
  if (value_->is_string()) return value_->get<std::string>();
  if (value_->is_number_integer()) return value_->dump();
  fail("expected a text or an integer, found " + shown());
}

json_document::json_document(std::string_view text, const std::string& name)
    : value_(parse_json(text, name)), name_(name) {
  if (!value_.is_object() || !value_.contains("format"))
    throw error(name + ": not a railpass file (expected a JSON object with the field 'format')");
}

json_reader json_document::expect(std::string_view expected, int newest_version) const {
  if (const std::string found = format(); found != expected)
    throw error(name_ + ": expected a file of format '" + std::string(expected) +
                "', found format '" + found.substr(0, 60) + "'");
  const std::int64_t found = root().integer("version", 1);
  if (found > newest_version)
    throw error(name_ + ": its version " + std::to_string(found) +
                " is newer than this railpass reads (" + std::to_string(newest_version) + ")");
  return root();
}

}  // namespace railpass::internal::files
