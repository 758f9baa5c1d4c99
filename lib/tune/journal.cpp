// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/journal.hpp"

#include "lib/files/files.hpp"
#include "lib/files/json_reader.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace railpass::internal::tune {

namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view format = "railpass tune journal";
constexpr std::string_view purposes[] = {"warm_up", "search", "check"};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw error(path + ": " + what + ": " + std::strerror(errno));
}

json begin_of(purpose why, const combination& what) {
  return {{"why", purposes[std::size_t(why)]}, {"levels", what}};
}

journal_entry read_entry(const files::json_reader& j, std::size_t goals) {
  journal_entry entry;
  const std::string why = j.text("why");
  const auto known = std::find(std::begin(purposes), std::end(purposes), why);
  if (known == std::end(purposes)) j.field("why").fail("there is no purpose '" + why + "'");
  entry.why = purpose(known - std::begin(purposes));
  for (const std::int64_t level : j.integers("levels", 0, most_levels))
    entry.what.push_back(std::uint16_t(level));
  if (!j.has("took_s")) return entry;  // it had only begun
  entry.found.took_s = j.number("took_s");
  if (j.has("failure")) {
    entry.found.failure = j.name("failure");
    return entry;
  }
  entry.found.values = j.positives("values");
  if (entry.found.values.size() != goals)
    j.field("values").fail("expected " + std::to_string(goals) +
                           " values, a value for each metric");
  return entry;
}

}  // namespace

journal::journal(std::string path, const std::string& identity, std::size_t goals)
    : path_(std::move(path)) {
  file_ = file_descriptor(uninterrupted([&] {
    return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  }));
  struct ::stat status {};
  if (!file_.is_open() || ::fstat(file_.get(), &status) != 0)
    fail(path_, "the journal cannot be opened (--journal names another place)");
  const error no_journal(path_ + ": not a journal of railpass tune");
  if (!S_ISREG(status.st_mode)) throw no_journal;
  if (uninterrupted([&] { return ::flock(file_.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno == EWOULDBLOCK) throw error(path_ + ": another railpass tune is using this journal");
    fail(path_, "the journal cannot be locked");
  }
  const std::string header =
      json{{"format", format}, {"version", 1}, {"identity", identity}}.dump();
  const std::string text = files::read_text(path_);
  std::size_t begin = 0, number = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++number;
    const std::string line_name = path_ + ": line " + std::to_string(number);
    nlohmann::json value;
    try {
      value = files::parse_json(std::string_view(text).substr(begin, end - begin), line_name);
    } catch (const error&) {
      throw error(line_name + ": not a journal of railpass tune, or damaged");
    }
    const files::json_reader line(value, line_name);
    if (number == 1) {
      if (line.text("format") != format) throw no_journal;
      if (line.integer("version", 1) != 1) throw error(path_ + ": written by a newer railpass");
      if (line.text("identity") != identity)
        throw error(path_ +
                    ": this journal is of other parameters or of another command; name "
                    "another file with --journal");
      continue;
    }
    journal_entry entry = read_entry(line, goals);
    if (line.has("took_s"))
      earlier_.push_back(std::move(entry));
    else
      ++earlier_runs_;
  }
  // Truncates an incomplete entry, but never a file that another program wrote.
  if (number == 0 && !header.starts_with(text)) throw no_journal;
  if (text.size() > begin &&
      uninterrupted([&] { return ::ftruncate(file_.get(), ::off_t(begin)); }) != 0)
    fail(path_, "the journal cannot be repaired");
  if (number == 0) append(header);
}

void journal::append(const std::string& line) {
  if (!write_all(file_.get(), line + '\n') ||
      uninterrupted([&] { return ::fdatasync(file_.get()); }) != 0)
    fail(path_, "the journal cannot be written");
}

void journal::began(purpose why, const combination& what) {
  if (file_.is_open()) append(begin_of(why, what).dump());
}

void journal::ended(const journal_entry& entry) {
  if (!file_.is_open()) return;
  json line = begin_of(entry.why, entry.what);
  if (entry.found.ok())
    line["values"] = entry.found.values;
  else
    line["failure"] = entry.found.failure;
  line["took_s"] = entry.found.took_s;
  append(line.dump(-1, ' ', false, json::error_handler_t::replace));
}

void journal::remove() {
  if (file_.is_open()) ::unlink(path_.c_str());
}

}  // namespace railpass::internal::tune
