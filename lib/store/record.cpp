// SPDX-License-Identifier: BSL-1.0
#include "lib/store/record.hpp"

#include "lib/files/knowledge_parts.hpp"
#include "lib/store/store.hpp"

#include <array>
#include <charconv>
#include <openssl/evp.h>

namespace railpass::internal::store {

namespace {

using files::json;
using files::json_reader;
using plain_json = nlohmann::json;
using names = std::initializer_list<const char*>;

constexpr std::string_view mark = "railpass knowledge ";
constexpr int version = 1;
constexpr std::size_t digest_digits = 16;

constexpr names arm_fields = {"arm",   "calls",    "samples", "mean_s", "spread",
                              "low_s", "median_s", "high_s",  "prior",  "pairs"};
constexpr names prior_fields = {"mean_s", "spread"};
constexpr names pairs_fields = {"pairs", "wins", "gain", "deviation"};
constexpr names context_fields = {"collective", "operation", "num_ranks", "ranks_per_node",
                                  "kind",       "rails",     "bytes",     "runs",
                                  "first_at",   "last_at",   "arms"};

// The values alone, in the order of the fields; what is missing at the end is not written.
json as_list(const json& object, names fields) {
  json list = json::array();
  for (const char* const field : fields) {
    const auto it = object.find(field);
    if (it == object.end())
      list.push_back(nullptr);
    else if (it->is_number_float())
      list.push_back(double(float(it->get<double>())));
    else
      list.push_back(*it);
  }
  while (!list.empty() && list.back().is_null()) list.erase(list.size() - 1);
  return list;
}

// The inverse, as far as the list is one.
plain_json as_object(plain_json list, names fields, const std::string& name) {
  if (!list.is_array() || list.size() > fields.size())
    json_reader(list, name)
        .fail("expected a list of at most " + std::to_string(fields.size()) + " values, found " +
              json_reader(list, name).shown());
  plain_json object = plain_json::object();
  auto field = fields.begin();
  for (plain_json& value : list) {
    if (!value.is_null()) object.emplace(*field, std::move(value));
    ++field;
  }
  return object;
}

json context_list(const knowledge::experience& e) {
  json context = files::experience_json(e);
  for (json& arm : context["arms"]) {
    if (arm.contains("prior")) arm["prior"] = as_list(arm["prior"], prior_fields);
    if (arm.contains("pairs")) arm["pairs"] = as_list(arm["pairs"], pairs_fields);
    arm = as_list(arm, arm_fields);
  }
  return as_list(context, context_fields);
}

knowledge::experience context_of(plain_json list, const std::string& name) {
  plain_json context = as_object(std::move(list), context_fields, name);
  if (context.contains("arms") && context["arms"].is_array())
    for (plain_json& arm : context["arms"]) {
      arm = as_object(std::move(arm), arm_fields, name);
      if (arm.contains("prior"))
        arm["prior"] = as_object(std::move(arm["prior"]), prior_fields, name);
      if (arm.contains("pairs"))
        arm["pairs"] = as_object(std::move(arm["pairs"]), pairs_fields, name);
    }
  return files::read_experience({context, name});
}

std::string bytes_of(const json& j) {
  std::string bytes;
  json::to_cbor(j, bytes);
  return bytes;
}

// Looks at the depth, as what makes a document of CBOR is recursive: too deep ends it.
class depth_check : public nlohmann::json_sax<plain_json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ < files::deepest_nesting; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ < files::deepest_nesting; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
};

plain_json parse_cbor(std::string_view bytes, const std::string& name) {
  depth_check check;
  if (plain_json::sax_parse(bytes, &check, plain_json::input_format_t::cbor)) try {
      return plain_json::from_cbor(bytes);
    } catch (const plain_json::exception&) {
    }
  throw error(name + ": expected CBOR as railpass writes it");
}

}  // namespace

std::string digest_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha256(), nullptr) != 1)
    throw error("OpenSSL cannot make a SHA-256 digest");
  std::string digits;
  for (std::size_t i = 0; i < digest_digits / 2; ++i)
    for (const int digit : {digest[i] >> 4, digest[i] & 15}) digits += "0123456789abcdef"[digit];
  return digits;
}

std::string sealed(std::string_view record) {
  std::string begin = std::string(mark) + std::to_string(version) + ' ';
  return begin + digest_of(begin + std::string(record)) + '\n' + std::string(record);
}

std::string_view unsealed(std::string_view text, const std::string& name) {
  const auto damaged = [&]() -> error {
    return error(name + ": corrupt, or not knowledge of railpass; ignored");
  };
  if (!text.starts_with(mark)) throw damaged();
  int found = 0;
  const auto [end, failure] =
      std::from_chars(text.data() + mark.size(), text.data() + text.size(), found);
  const std::string_view rest(end, std::size_t(text.data() + text.size() - end));
  if (failure != std::errc{} || !rest.starts_with(' ')) throw damaged();
  if (found > version)
    throw newer_error(name + ": version " + std::to_string(found) +
                      " is newer than this railpass reads (" + std::to_string(version) +
                      "); ignored");
  const std::string_view begin = text.substr(0, text.size() - rest.size() + 1);
  if (rest.size() < digest_digits + 2 || rest[digest_digits + 1] != '\n') throw damaged();
  const std::string_view record = rest.substr(digest_digits + 2);
  if (rest.substr(1, digest_digits) != digest_of(std::string(begin) + std::string(record)))
    throw damaged();
  return record;
}

std::string packed(const knowledge::experience& e) { return bytes_of(context_list(e)); }

knowledge::experience unpacked_experience(std::string_view record, const std::string& name) {
  return context_of(parse_cbor(record, name), name);
}

std::string packed(const knowledge::stored_run& r) {
  json contexts = json::array();
  for (const knowledge::experience& e : r.run.contexts) contexts.push_back(context_list(e));
  return bytes_of({{"ids", r.ids},
                   {"machine_id", files::fingerprint_json(r.run.machine)},
                   {"was", files::conditions_json(r.run.was)},
                   {"ended_at", r.run.ended_at},
                   {"contexts", std::move(contexts)}});
}

knowledge::stored_run unpacked_run(std::string_view record, const std::string& name) {
  plain_json document = parse_cbor(record, name);
  const json_reader top(document, name);
  top.expect_fields({"ids", "machine_id", "was", "ended_at", "contexts"});
  knowledge::stored_run r{.ids = files::read_run_ids(top.field("ids")),
                          .run = {.machine = files::read_fingerprint(top.field("machine_id")),
                                  .was = files::read_conditions(top.field("was")),
                                  .ended_at = files::detail::point_in_time(top, "ended_at")}};
  if (r.ids.empty()) top.field("ids").fail("expected at least one name");
  top.list("contexts");
  for (plain_json& context : document["contexts"])
    r.run.contexts.push_back(context_of(std::move(context), name));
  return r;
}

std::string packed(const database_head& h) {
  return bytes_of({{"machine_id", files::fingerprint_json(h.machine)},
                   {"num_contexts", h.num_contexts},
                   {"num_runs", h.num_runs},
                   {"recent", h.recent}});
}

database_head unpacked_head(std::string_view record, const std::string& name) {
  const plain_json document = parse_cbor(record, name);
  const json_reader top(document, name);
  top.expect_fields({"machine_id", "num_contexts", "num_runs", "recent"});
  return {.machine = files::read_fingerprint(top.field("machine_id")),
          .num_contexts = top.integer("num_contexts"),
          .num_runs = top.integer("num_runs"),
          .recent = files::read_run_ids(top.field("recent"))};
}

std::string packed(const std::vector<std::string>& ids) { return bytes_of(json(ids)); }

std::vector<std::string> unpacked_ids(std::string_view record, const std::string& name) {
  const plain_json document = parse_cbor(record, name);
  return files::read_run_ids(json_reader(document, name));
}

std::string encode(std::span<const knowledge::experience> contexts, std::size_t most_bytes) {
  json list = json::array();
  std::size_t size = 9;  // what a list begins with, at most
  for (const knowledge::experience& e : contexts) {
    json context = context_list(e);
    size += bytes_of(context).size();
    if (size > most_bytes) break;
    list.push_back(std::move(context));
  }
  return bytes_of(list);
}

std::vector<knowledge::experience> decode(std::string_view bytes) {
  const std::string name = "contexts of other runs";
  plain_json document = parse_cbor(bytes, name);
  if (!document.is_array()) json_reader(document, name).fail("expected a list");
  std::vector<knowledge::experience> contexts;
  for (plain_json& context : document) contexts.push_back(context_of(std::move(context), name));
  return contexts;
}

}  // namespace railpass::internal::store
