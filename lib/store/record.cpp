// SPDX-License-Identifier: BSL-1.0
#include "lib/store/record.hpp"

#include "lib/files/knowledge_fields.hpp"
#include "lib/store/store.hpp"

#include <array>
#include <charconv>
#include <openssl/crypto.h>
#include <openssl/evp.h>

namespace railpass::internal::files {

void visit(auto& v, is<store::database_head> auto& h) {
  v(machine_id, h.machine);
  v("num_contexts", h.num_contexts);
  v("num_runs", h.num_runs);
  v("recent", h.recent, list<run_id>{});
}

}  // namespace railpass::internal::files

namespace railpass::internal::store {

namespace {

using files::json;
using files::json_reader;
using plain_json = nlohmann::json;

constexpr std::string_view mark = "railpass knowledge ";
constexpr int version = 1;
constexpr std::size_t digest_digits = 16;

// Replaces an object by its values, in the order of the fields; what is missing at the end is not
// written.
template <class T>
void pack(json& object) {
  json list = json::array();
  for (const std::string_view field : files::names_of<T>()) {
    const auto it = object.find(field);
    if (it == object.end())
      list.push_back(nullptr);
    else if (it->is_number_float())
      list.push_back(double(float(it->get<double>())));
    else
      list.push_back(std::move(*it));
  }
  while (!list.empty() && list.back().is_null()) list.erase(list.size() - 1);
  object = std::move(list);
}

// The inverse, as far as the list is one.
template <class T>
void unpack(plain_json& list, const std::string& name) {
  const std::vector<std::string_view>& fields = files::names_of<T>();
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
  list = std::move(object);
}

void pack_context(json& context) {
  for (json& arm : context["arms"]) {
    if (arm.contains("prior")) pack<select::time_estimate>(arm["prior"]);
    if (arm.contains("pairs")) pack<select::pair_record>(arm["pairs"]);
    pack<knowledge::arm_experience>(arm);
  }
  pack<knowledge::experience>(context);
}
json packed_context(const knowledge::experience& e) {
  json context = files::object<knowledge::experience>{}.write(e);
  pack_context(context);
  return context;
}

void unpack_context(plain_json& context, const std::string& name) {
  unpack<knowledge::experience>(context, name);
  if (!context.contains("arms") || !context["arms"].is_array()) return;
  for (plain_json& arm : context["arms"]) {
    unpack<knowledge::arm_experience>(arm, name);
    if (arm.contains("prior")) unpack<select::time_estimate>(arm["prior"], name);
    if (arm.contains("pairs")) unpack<select::pair_record>(arm["pairs"], name);
  }
}
void unpack_contexts(plain_json& contexts, const std::string& name) {
  if (contexts.is_array())
    for (plain_json& context : contexts) unpack_context(context, name);
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

template <class T>
T read(const plain_json& document, const std::string& name) {
  return files::object<T>{}.read({document, name});
}

}  // namespace

// Some threads may come here while the process ends, when OpenSSL would have freed its memory.
// The option has no effect if the program has used OpenSSL before.
std::string digest_of(std::string_view text) {
  [[maybe_unused]] static const int stays = ::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
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

std::string packed(const knowledge::experience& e) { return bytes_of(packed_context(e)); }

knowledge::experience unpacked_experience(std::string_view record, const std::string& name) {
  plain_json context = parse_cbor(record, name);
  unpack_context(context, name);
  return read<knowledge::experience>(context, name);
}

std::string packed(const knowledge::stored_run& r) {
  json run = files::object<knowledge::stored_run>{}.write(r);
  for (json& context : run["contexts"]) pack_context(context);
  return bytes_of(run);
}

knowledge::stored_run unpacked_run(std::string_view record, const std::string& name) {
  plain_json run = parse_cbor(record, name);
  if (run.is_object() && run.contains("contexts")) unpack_contexts(run["contexts"], name);
  return read<knowledge::stored_run>(run, name);
}

std::string packed(const database_head& h) {
  return bytes_of(files::object<database_head>{}.write(h));
}

database_head unpacked_head(std::string_view record, const std::string& name) {
  return read<database_head>(parse_cbor(record, name), name);
}

std::string packed(const std::vector<std::string>& ids) { return bytes_of(json(ids)); }

std::vector<std::string> unpacked_ids(std::string_view record, const std::string& name) {
  const plain_json document = parse_cbor(record, name);
  return files::list<files::run_id>{}.read({document, name});
}

std::string encode(std::span<const knowledge::experience> contexts, std::size_t most_bytes) {
  json list = json::array();
  std::size_t size = 9;  // what a list begins with, at most
  for (const knowledge::experience& e : contexts) {
    json context = packed_context(e);
    size += bytes_of(context).size();
    if (size > most_bytes) break;
    list.push_back(std::move(context));
  }
  return bytes_of(list);
}

std::vector<knowledge::experience> decode(std::string_view bytes) {
  const std::string name = "contexts of other runs";
  plain_json document = parse_cbor(bytes, name);
  unpack_contexts(document, name);
  return files::kind_of<std::vector<knowledge::experience>>{}.read({document, name});
}

}  // namespace railpass::internal::store
