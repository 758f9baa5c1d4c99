// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/setting_values.hpp"

#include "collectives/registry.hpp"
#include "lib/call/neighbor_call.hpp"
#include "lib/files/files.hpp"
#include "railpass/base/names.hpp"
#include "railpass/select/policies.hpp"

#include <string_view>

namespace railpass::internal {

namespace {

// Made before any call, because a lack of memory inside a call would make this rank leave the other
// ranks. Never destroyed, because programs make calls in atexit handlers.
const settings& defaults = *new settings;

void check_policy(const settings& values) { select::require_policy(values.policy); }

void check_collectives(const settings& values) {
  if (values.collectives == "all") return;
  for (const std::string_view name : words_of(values.collectives))
    if (!find_collective(name) && !is_neighbor_function(name))
      throw error("there is no collective '" + std::string(name) + "'" + meant_collective(name));
}

// A pinned name that is no collective is a function set, which may be unknown yet.
void check_use(const settings& values) {
  for (const std::string_view pin : words_of(values.use)) {
    const std::size_t colon = pin.find(':');
    if (colon == std::string_view::npos)
      throw error("'" + std::string(pin) + "': expected collective:arm");
    const std::string_view name = pin.substr(0, colon);
    if (const auto op = find_collective(name)) {
      (void)parse_arm(*op, pin.substr(colon + 1));
    } else if (const std::string meant = meant_collective(name);
               !meant.empty() && !is_neighbor_function(name)) {
      throw error("there is no collective '" + std::string(name) +
                  "'; railpass takes the name for a function set" + meant);
    }
  }
}

void check_gpu(const settings& values) {
  if (values.gpu != "stage" && values.gpu != "native")
    throw error("'" + values.gpu + "': expected stage or native");
}

void check_profile(const settings& values) {
  if (!values.profile.empty()) (void)files::read_profile(values.profile);
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> result;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (comma != 0) result.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return result;
}

bool is_named(std::string_view collectives, std::string_view name) {
  return collectives == "all" ||
         std::ranges::any_of(words_of(collectives), [&](std::string_view word) {
           const auto op = find_collective(word);
           return op ? name == name_of(*op) : is_same_name(word, name);
         });
}

bool is_particular(const settings& values) {
  return values.policy != defaults.policy || !values.use.empty() || values.reproducible ||
         values.verify || !values.rails.empty();
}

std::string pinned_version(std::string_view use, std::string_view set) {
  std::string version;
  for (const std::string_view word : words_of(use))
    if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
      const std::string_view name = word.substr(0, colon);
      if (name == set || (is_neighbor_function(set) && is_same_name(name, set)))
        version = word.substr(colon + 1);
    }
  return version;
}

std::vector<std::string> names_of_sets(std::string_view use) {
  std::vector<std::string> names;
  for (const std::string_view word : words_of(use)) {
    const std::string_view name = word.substr(0, word.find(':'));
    if (!find_collective(name) && !is_neighbor_function(name)) names.emplace_back(name);
  }
  return names;
}

std::string meant_collective(std::string_view name) {
  std::vector<std::string_view> known(neighbor_function_names.begin(),
                                      neighbor_function_names.end());
  for (const collective op : all_collectives) known.push_back(name_of(op));
  return did_you_mean(name, known);
}

std::vector<std::string> problems_of(const settings_in_force& all) {
  struct check {
    const char* name;
    void (*of)(const settings&);
  };
  std::vector<std::string> problems;
  for (const check& one :
       {check{"policy", check_policy}, check{"collectives", check_collectives},
        check{"use", check_use}, check{"gpu", check_gpu}, check{"profile", check_profile}}) {
    try {
      one.of(all.values);
    } catch (const error& problem) {
      const auto origin = all.origins.find(one.name);
      problems.push_back((origin == all.origins.end() ? variable_of(one.name) : origin->second) +
                         ": " + problem.what());
    }
  }
  return problems;
}

}  // namespace railpass::internal
