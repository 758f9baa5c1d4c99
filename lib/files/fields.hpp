// SPDX-License-Identifier: BSL-1.0
//
// Every field of a file is written once, in a function that visits the fields of a struct in the
// order of the file:
//
//   inline void visit(auto& v, is<pair_record> auto& p) {
//     v("wins", p.wins);                       // its type defines the values that are allowed,
//     v({"gain", "ln(...)"}, p.gain, finite{});  // or a kind does
//   }
//
// A std::optional may be missing. Reader, writer, allowed names and schema (schema.hpp) are
// visitors. A reader calls two further functions if a struct has them: check(const json_reader&,
// const T&), and check_next(const json_reader&, const T&, const std::vector<T>& before) for the
// items of a list. Templates are inline, so that librailpass exports none.
#pragma once

#include "lib/files/json_reader.hpp"
#include "lib/files/json_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace railpass::internal::files {

template <class T, class Struct>
concept is = std::is_same_v<std::remove_const_t<T>, Struct>;

struct field {
  enum class absence { never, in_old_files, as_null };

  constexpr field(const char* of, const char* meaning = "", absence when = absence::never)
      : name(of), about(meaning), absent(when) {}

  const char* name;
  const char* about;  ///< unit and meaning, if the name does not say them
  absence absent;     ///< unless the member is a std::optional, which may be missing
};
/// A field that is always written; files of an earlier railpass lack it.
constexpr field later(const char* name, const char* about = "") {
  return {name, about, field::absence::in_old_files};
}
/// The field of a std::optional that is written as null if it is empty.
constexpr field or_null(const char* name, const char* about = "") {
  return {name, about, field::absence::as_null};
}

/// The meaning of a field with a point in time.
inline constexpr const char* utc_example = "UTC, such as 2026-01-31T12:00:00Z";

// Kinds: the values that a reader allows, and the same in JSON Schema.

struct finite {
  double read(const json_reader& r) const { return r.finite(); }
  json schema() const { return {{"type", "number"}}; }
};
struct number {
  double read(const json_reader& r) const { return r.number(); }
  json schema() const { return {{"type", "number"}, {"minimum", 0}}; }
};
struct positive {
  double read(const json_reader& r) const { return r.positive(); }
  json schema() const { return {{"type", "number"}, {"exclusiveMinimum", 0}}; }
};
/// From 0 to 1; the sum of several may exceed 1 by rounding.
struct share {
  double read(const json_reader& r) const {
    const double x = r.number();
    if (x > 1 + 1e-9) r.fail("expected at most 1");
    return x;
  }
  json schema() const { return number{}.schema(); }
};
struct whole {
  std::int64_t low = 0, high = largest_integer;
  std::int64_t read(const json_reader& r) const { return r.integer(low, high); }
  json schema() const { return {{"type", "integer"}, {"minimum", low}}; }
};
/// Ranks, hosts or cores.
inline constexpr whole one_or_more{.low = 1, .high = largest_count};
struct truth {
  bool read(const json_reader& r) const { return r.boolean(); }
  json schema() const { return {{"type", "boolean"}}; }
};
struct text {
  bool may_be_empty = true;
  std::size_t longest = std::string::npos;
  std::string read(const json_reader& r) const {
    std::string value = r.text();
    if (value.size() > longest)
      r.fail("expected at most " + std::to_string(longest) + " characters");
    if (value.empty() && !may_be_empty) r.fail("expected a name, found an empty text");
    return value;
  }
  json schema() const {
    json s{{"type", "string"}};
    if (!may_be_empty) s["minLength"] = 1;
    return s;
  }
};
inline constexpr text nonempty{.may_be_empty = false};
/// An object of texts.
struct texts_by_name {
  std::map<std::string, std::string> read(const json_reader& r) const { return r.texts(); }
  json schema() const {
    return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  }
};
template <class T>
struct object {
  T read(const json_reader& r) const;
  json write(const T& value) const;
};
template <class Kind>
struct list {
  Kind each{};
  bool may_be_empty = true;
  std::size_t most = std::string::npos;

  auto read(const json_reader& r) const {
    std::vector<decltype(each.read(r))> all;
    for (const json_reader& item : r.items()) {
      auto value = each.read(item);
      if constexpr (requires { check_next(item, value, all); }) check_next(item, value, all);
      all.push_back(std::move(value));
    }
    if (all.empty() && !may_be_empty) r.fail("expected at least one item, found an empty list");
    if (all.size() > most)
      r.fail("expected at most " + std::to_string(most) + " items, found " +
             std::to_string(all.size()));
    return all;
  }
  json write(const auto& values) const;
};

namespace detail {

template <class T>
struct default_kind {
  using type = object<T>;
};
// clang-format off
template <> struct default_kind<double> { using type = number; };
template <> struct default_kind<std::int64_t> { using type = whole; };
template <> struct default_kind<bool> { using type = truth; };
template <> struct default_kind<std::string> { using type = text; };
template <> struct default_kind<std::map<std::string, std::string>> { using type = texts_by_name; };
template <class T> struct default_kind<std::optional<T>> : default_kind<T> {};
template <class T> struct default_kind<std::vector<T>> { using type = list<typename default_kind<T>::type>; };

template <class M> inline constexpr bool is_optional = false;
template <class M> inline constexpr bool is_optional<std::optional<M>> = true;
// clang-format on

}  // namespace detail

template <class M>
using kind_of = typename detail::default_kind<std::remove_const_t<M>>::type;

// Visitors. A group is an object in the file, of fields that are members of the struct itself. A
// derived field is written for people and other programs; a reader ignores its value.

class field_names {
 public:
  static constexpr bool reads = false;
  void operator()(const field& f, const auto&...) { all.emplace_back(f.name); }
  void group(const field& f, const auto&) { all.emplace_back(f.name); }
  void derived(const field& f, const auto&, const auto&) { all.emplace_back(f.name); }

  std::vector<std::string_view> all{};
};

class field_reader {
 public:
  static constexpr bool reads = true;
  explicit field_reader(const json_reader& r) : r_(r) {}
  template <class M, class Kind = kind_of<M>>
  void operator()(const field& f, M& member, const Kind& kind = {}) const {
    const bool may_lack = detail::is_optional<M> || f.absent != field::absence::never;
    if (may_lack && !r_.has(f.name)) return;
    auto value = kind.read(r_.field(f.name));
    if constexpr (std::is_same_v<M, int>)
      member = int(value);
    else
      member = std::move(value);
  }
  void group(const field& f, const auto& visit) const {
    const json_reader inside = r_.field(f.name);
    field_names names;
    visit(names);
    inside.expect_fields(names.all);
    const field_reader reader(inside);
    visit(reader);
  }
  void derived(const field&, const auto&, const auto&) const {}

 private:
  const json_reader& r_;
};

inline json written(const auto& kind, const auto& value) {
  if constexpr (requires { kind.write(value); })
    return kind.write(value);
  else
    return value;
}

class field_writer {
 public:
  static constexpr bool reads = false;
  explicit field_writer(json& to) : to_(to) {}
  template <class M, class Kind = kind_of<M>>
  void operator()(const field& f, const M& member, const Kind& kind = {}) const {
    if constexpr (!detail::is_optional<M>)
      to_[f.name] = written(kind, member);
    else if (member)
      to_[f.name] = written(kind, *member);
    else if (f.absent == field::absence::as_null)
      to_[f.name] = nullptr;
  }
  void group(const field& f, const auto& visit) const {
    json inside = json::object();
    const field_writer writer(inside);
    visit(writer);
    to_[f.name] = std::move(inside);
  }
  void derived(const field& f, const auto& kind, const auto& value) const {
    to_[f.name] = written(kind, value());
  }

 private:
  json& to_;
};

template <class V>
inline constexpr bool is_reading = std::remove_cvref_t<V>::reads;

/// Writes the field on a condition. A reader leaves the member alone if the field is missing.
template <class V, class M, class Kind = kind_of<M>>
inline void visit_if(bool is_there, V& v, const field& f, M& member, const Kind& kind = {}) {
  std::optional<std::remove_const_t<M>> there;
  if (!is_reading<V> && is_there) there = member;
  v(f, there, kind);
  if constexpr (is_reading<V>)
    if (there) member = std::move(*there);
}

/// The names of the fields, in the order of the file. Never destroyed: threads in the background
/// may read and write files until the process has ended.
template <class T>
inline const std::vector<std::string_view>& names_of() {
  static const auto& names = *new const std::vector<std::string_view>([] {
    const T nothing{};
    field_names found;
    visit(found, nothing);
    return found.all;
  }());
  return names;
}

/// @param names the fields that the object may have
template <class T>
inline T read_fields(const json_reader& r, const std::vector<std::string_view>& names) {
  r.expect_fields(names);
  T value{};
  const field_reader reader(r);
  visit(reader, value);
  if constexpr (requires { check(r, value); }) check(r, value);
  return value;
}

template <class T>
inline T object<T>::read(const json_reader& r) const {
  return read_fields<T>(r, names_of<T>());
}

template <class T>
inline json object<T>::write(const T& value) const {
  json j = json::object();
  const field_writer writer(j);
  visit(writer, value);
  return j;
}

template <class Kind>
inline json list<Kind>::write(const auto& values) const {
  json all = json::array();
  for (const auto& value : values) all.push_back(written(each, value));
  return all;
}

/// Of a document.
struct document_format {
  const char* name;
  int version;  ///< the newest
  const char* title;
};
template <class T>
inline constexpr document_format format_for{};

template <class T>
inline std::string document_of(const T& content) {
  json j{{"format", format_for<T>.name}, {"version", format_for<T>.version}};
  const field_writer writer(j);
  visit(writer, content);
  return document_text(j);
}

template <class T>
inline T read_document(const json_document& document) {
  std::vector<std::string_view> names = names_of<T>();
  names.insert(names.end(), {"format", "version"});
  return read_fields<T>(document.expect(format_for<T>.name, format_for<T>.version), names);
}
template <class T>
inline T parse_document(std::string_view text, const std::string& name) {
  return read_document<T>(json_document(text, name));
}

}  // namespace railpass::internal::files
