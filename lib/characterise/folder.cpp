// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/folder.hpp"

#include "collectives/registry.hpp"
#include "lib/files/files.hpp"
#include "lib/measure/launches.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

namespace railpass::internal::characterise {
namespace {

// Notes of a launch's file.
constexpr const char* collectives_note = "characterise/collectives";
constexpr const char* arms_note = "characterise/arms";
constexpr const char* sizes_note = "characterise/sizes";
constexpr const char* budget_note = "characterise/budget_s";
constexpr const char* wall_note = "characterise/wall_s";
constexpr const char* failure_note = "characterise/failure";

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

template <class Number>
Number number_of(const std::string& word, const std::string& path) {
  Number value{};
  const char* const end = word.data() + word.size();
  if (const auto [at, problem] = std::from_chars(word.data(), end, value);
      problem != std::errc() || at != end || value < 0)
    throw error(path + ": notes: expected a number instead of '" + word + "'");
  return value;
}

launch_record record_of(bench_results results, const std::string& path) {
  const auto note = [&](const char* name) -> const std::string& {
    const auto found = results.notes.find(name);
    if (found == results.notes.end())
      throw error(path + ": notes: expected " + name + ", as railpass characterise writes it");
    return found->second;
  };
  launch_record record{.request = {.num_ranks = results.num_ranks,
                                   .arms = words_of(note(arms_note)),
                                   .budget_s = number_of<double>(note(budget_note), path)},
                       .wall_s = number_of<double>(note(wall_note), path),
                       .failure = note(failure_note)};
  for (const std::string& word : words_of(note(collectives_note))) {
    const auto op = find_collective(word);
    if (!op) throw error(path + ": notes: '" + word + "' is not a collective");
    record.request.ops.push_back(*op);
  }
  for (const std::string& word : words_of(note(sizes_note)))
    record.request.sizes.push_back(number_of<std::int64_t>(word, path));
  record.results = std::move(results);
  return record;
}

}  // namespace

folder::folder(std::string path) : path_(std::move(path)) {
  std::error_code problem;
  std::filesystem::create_directories(file("launches"), problem);
  if (problem) throw error(path_ + ": cannot be created: " + problem.message());
}

bool folder::has(const std::string& name) const { return std::filesystem::exists(file(name)); }

std::string folder::file_of_launch(std::size_t number) const {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, '0');
  return file("launches/" + digits + ".json");
}

std::vector<launch_record> folder::launches() const {
  std::vector<launch_record> all;
  for (;;) {
    const std::string path = file_of_launch(all.size() + 1);
    if (!std::filesystem::exists(path)) return all;
    all.push_back(record_of(files::read_bench(path), path));
  }
}

void folder::add(const launch_record& one) const {
  std::size_t number = 1;
  while (std::filesystem::exists(file_of_launch(number))) ++number;
  write(number, one);
}

void folder::write(std::size_t number, const launch_record& one) const {
  std::string ops, sizes, arms;
  for (const collective op : one.request.ops)
    ops += (ops.empty() ? "" : " ") + std::string(name_of(op));
  for (const std::int64_t size : one.request.sizes)
    sizes += (sizes.empty() ? "" : " ") + std::to_string(size);
  for (const std::string& arm : one.request.arms) arms += (arms.empty() ? "" : " ") + arm;
  bench_results results = one.results;
  results.num_ranks = one.request.num_ranks;
  results.notes[collectives_note] = ops;
  results.notes[sizes_note] = sizes;
  results.notes[arms_note] = arms;
  results.notes[budget_note] = std::to_string(one.request.budget_s);
  results.notes[wall_note] = std::to_string(one.wall_s);
  results.notes[failure_note] = one.failure;
  files::write_text(file_of_launch(number), files::to_json(results));
}

void folder::forgive_failures() const {
  std::vector<launch_record> all = launches();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].failure.empty() || all[i].request.ops.empty()) continue;
    all[i].request.ops.clear();
    write(i + 1, all[i]);
  }
}

std::optional<bench_results> bench_of(std::span<const launch_record> launches, int num_ranks) {
  std::vector<bench_results> all;
  for (const launch_record& one : launches)
    if (one.failure.empty() && one.request.num_ranks == num_ranks) all.push_back(one.results);
  if (all.empty()) return std::nullopt;
  bench_results joined = measure::over_launches(all);
  for (const char* const name :
       {collectives_note, sizes_note, arms_note, budget_note, wall_note, failure_note})
    joined.notes.erase(name);
  return joined;
}

}  // namespace railpass::internal::characterise
