// SPDX-License-Identifier: BSL-1.0
//
// JSON Schemas (draft 2020-12) of documents, from the fields that fields.hpp visits.
#pragma once

#include "lib/files/fields.hpp"

namespace railpass::internal::files {

json schema_of(const auto& kind) requires requires { kind.schema(); }
{ return kind.schema(); }
template <class T>
json schema_of(const object<T>& kind);
template <class Kind>
json schema_of(const list<Kind>& kind) {
  json s{{"type", "array"}, {"items", schema_of(kind.each)}};
  if (!kind.may_be_empty) s["minItems"] = 1;
  if (kind.most != std::string::npos) s["maxItems"] = kind.most;
  return s;
}

class field_schemas {
 public:
  static constexpr bool reads = false;
  template <class M, class Kind = kind_of<M>>
  void operator()(const field& f, const M&, const Kind& kind = {}) {
    json s = schema_of(kind);
    if (f.absent == field::absence::as_null) s["type"] = {s["type"], "null"};
    const bool may_lack = detail::is_optional<M> || f.absent == field::absence::in_old_files;
    add(f, std::move(s), may_lack && f.absent != field::absence::as_null);
  }
  void group(const field& f, const auto& visit) {
    field_schemas inside;
    visit(inside);
    add(f, inside.object(), false);
  }
  void derived(const field& f, const auto& kind, const auto&) { add(f, schema_of(kind), false); }
  void add(const field& f, json s, bool may_lack) {
    if (*f.about) s["description"] = f.about;
    properties_[f.name] = std::move(s);
    if (!may_lack) required_.push_back(f.name);
  }
  json object() const {
    return {{"type", "object"},
            {"properties", properties_},
            {"required", required_},
            {"additionalProperties", false}};
  }

 private:
  json properties_ = json::object(), required_ = json::array();
};

template <class T>
json schema_of(const object<T>&) {
  const T nothing{};
  field_schemas of;
  visit(of, nothing);
  return of.object();
}

template <class T>
json document_schema() {
  const T nothing{};
  field_schemas of;
  of.add("format", {{"const", format_for<T>.name}}, false);
  of.add("version", {{"const", format_for<T>.version}}, false);
  visit(of, nothing);
  json s{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
         {"title", format_for<T>.title}};
  s.update(of.object());
  return s;
}

}  // namespace railpass::internal::files
