// SPDX-License-Identifier: BSL-1.0
#include "lib/store/quarantine.hpp"

#include "lib/files/files.hpp"
#include "lib/store/folder.hpp"
#include "lib/store/record.hpp"

#include <algorithm>
#include <system_error>

namespace railpass::internal::store {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_bytes = std::size_t{64} << 10;
constexpr std::size_t most_files = 1024;  // in a store

fs::path folder_in(const fs::path& location) { return location / "quarantine"; }

fs::path file_of(const fs::path& location, const knowledge::quarantined& q) {
  return folder_in(location) /
         (q.collective + "." + q.algorithm + "." + digest_of(q.mpi_library) + ".json");
}

void read_from(const fs::path& location, bool is_of_site, const std::string& mpi_library,
               quarantine_contents& found) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (fs::directory_iterator at(folder_in(location), failure);
       !failure && at != fs::directory_iterator() && paths.size() < most_files;
       at.increment(failure))
    if (at->path().extension() == ".json") paths.push_back(at->path());
  if (failure && failure != std::errc::no_such_file_or_directory)
    found.problems.push_back(folder_in(location).string() +
                             ": cannot be read: " + failure.message());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) try {
      const std::string text = files::read_text(path.string(), largest_bytes);
      quarantine_file file{files::parse_quarantine(text, path.string()), path};
      if (!mpi_library.empty() &&
          without_names(file.record.mpi_library) != without_names(mpi_library))
        continue;
      file.counts = is_of_site || file.record.algorithm != "native";
      found.files.push_back(std::move(file));
    } catch (const error& problem) {
      found.problems.emplace_back(problem.what());
    }
}

}  // namespace

quarantine_contents quarantine(const locations& from, const std::string& mpi_library) {
  quarantine_contents found;
  std::vector<fs::path> all = {from.own};
  all.insert(all.end(), from.others.begin(), from.others.end());
  if (std::ranges::find(all, from.site) == all.end()) all.push_back(from.site);
  std::erase(all, "");
  for (const fs::path& location : all)
    read_from(location, location == from.site, mpi_library, found);
  return found;
}

void add(const fs::path& own, const knowledge::quarantined& q) {
  const std::string text = files::to_json(q);
  const fs::path path = file_of(own, q);
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  if (failure)
    throw error(path.parent_path().string() + ": cannot be created: " + failure.message());
  write_new(path, text, files::durability::in_time);
}

void lift(const fs::path& file) {
  std::error_code failure;
  fs::remove(file, failure);
  if (failure) throw error(file.string() + ": cannot be removed: " + failure.message());
}

void withdraw(const fs::path& own, const knowledge::quarantined& q) { lift(file_of(own, q)); }

}  // namespace railpass::internal::store
