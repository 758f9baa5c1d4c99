// SPDX-License-Identifier: BSL-1.0
//
// Every reader of files, on random changes of the files in tests/fuzz. A reader returns or throws
// railpass::error, takes a bounded amount of memory, and its result can be written and read again.
// Meant for the sanitizers. RAILPASS_FUZZ_ROUNDS sets longer runs; RAILPASS_FUZZ_SEED repeats one.
#include "lib/files/comparison.hpp"
#include "lib/files/files.hpp"
#include "lib/store/database.hpp"
#include "lib/store/record.hpp"
#include "lib/store/store.hpp"
#include "lib/tune/journal.hpp"
#include "lib/tune/parameter_file.hpp"
#include "lib/tune/results.hpp"
#include "lib/tune/target.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/knowledge/advisories.hpp"
#include "support/catch.hpp"
#include "support/replaced_new.hpp"
#include "support/scratch_directory.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

constexpr std::size_t most_bytes = 16 << 10;                  // of an input
constexpr std::size_t most_allocated = std::size_t{1} << 30;  // in all, for one input
std::size_t allocated = 0;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class mutator {
 public:
  mutator(std::vector<std::string> corpus, std::uint64_t seed)
      : corpus_(std::move(corpus)), random_(seed) {}

  std::string next() {
    std::string text = any(corpus_);
    if (below(2)) change_document(text);
    for (std::size_t changes = below(4); changes > 0; --changes) change(text);
    text.resize(std::min(text.size(), most_bytes));
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : std::size_t(random_() % n); }
  template <class List>
  auto any(const List& list) -> decltype(list[0]) {
    return list[below(std::size(list))];
  }

  // A part that usually starts and ends at a boundary of the text.
  std::pair<std::size_t, std::size_t> part_of(const std::string& text) {
    const std::size_t begin = below(text.size() + 1);
    std::size_t size = below(2) ? below(8) : below(text.size());
    if (below(2)) size = text.find_first_of(" ,:]}\n\"", begin + 1) - begin;
    return {begin, std::min(size, text.size() - begin)};
  }

  // For JSON texts: another value, one more, or one less; the text stays JSON.
  void change_document(std::string& text) {
    auto document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_discarded()) return;
    static const nlohmann::json values[] = {0,
                                            -1,
                                            1,
                                            1e308,
                                            -1e308,
                                            1e-320,
                                            0.5,
                                            2147483648,
                                            std::int64_t{1} << 53,
                                            65535,
                                            std::numeric_limits<std::int64_t>::max(),
                                            std::numeric_limits<std::int64_t>::min(),
                                            std::numeric_limits<std::uint64_t>::max(),
                                            nullptr,
                                            true,
                                            false,
                                            "",
                                            "\n",
                                            "broadcast",
                                            nlohmann::json::array(),
                                            nlohmann::json::object(),
                                            {1, 2, 3},
                                            {{"a", 1}}};
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      nlohmann::json* at = &document;
      while (at->is_structured() && !at->empty() && below(8)) {
        auto inside = at->begin();
        std::advance(inside, std::ptrdiff_t(below(at->size())));
        const std::size_t what = below(20);
        if (what == 0) {
          at->erase(inside);
          break;
        }
        if (what == 1 && at->is_array()) {
          const nlohmann::json again = *inside;
          for (std::size_t n = below(4) ? 1 : below(300); n > 0; --n) at->push_back(again);
          break;
        }
        at = &*inside;
      }
      if (below(4)) *at = any(values);
    }
    text = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  void change(std::string& text) {
    static const std::string words[] = {"0",
                                        "-1",
                                        "1e308",
                                        "-1e308",
                                        "1e999",
                                        "1e-320",
                                        "0.5",
                                        "2147483648",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551616",
                                        "nan",
                                        "inf",
                                        "null",
                                        "true",
                                        "[]",
                                        "{}",
                                        "\"\"",
                                        "\"\\u0000\"",
                                        "\xff",
                                        "\xf0\x9f\x9a\x82",
                                        "#",
                                        "$",
                                        "-",
                                        "-r",
                                        "-i",
                                        "1000000000",
                                        "65535",
                                        "\n",
                                        "\r\n",
                                        "\t"};
    const auto [begin, size] = part_of(text);
    switch (below(9)) {
      case 0:
        text.erase(begin, size);
        break;
      case 1:
        text.insert(begin, any(words));
        break;
      case 2:
        text.replace(begin, size, any(words));
        break;
      case 3:
        if (begin < text.size()) text[begin] = char(random_());
        break;
      case 4: {  // replaces a number
        const std::size_t at = text.find_first_of("0123456789", begin);
        if (at == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_not_of("0123456789.e-", at), text.size());
        text.replace(at, end - at, any(words));
        break;
      }
      case 5: {  // repeats a part, sometimes very often
        const std::string part = text.substr(begin, size);
        for (std::size_t n = below(8) ? 1 : below(2000); n > 0 && text.size() < most_bytes; --n)
          text.insert(begin, part);
        break;
      }
      case 6: {  // continues like another file
        const std::string& other = any(corpus_);
        text = text.substr(0, begin) + other.substr(below(other.size()));
        break;
      }
      case 7: {  // inserts a part of another file
        const std::string& other = any(corpus_);
        const auto [from, n] = part_of(other);
        text.insert(begin, other.substr(from, n));
        break;
      }
      default: {
        const std::size_t depth = below(2) ? below(10) : below(5000);
        const char* const bracket = any(std::vector<const char*>{"[", "{\"a\":", "(", "\""});
        std::string nested;
        for (std::size_t i = 0; i < depth; ++i) nested += bracket;
        text.insert(begin, nested);
      }
    }
  }

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

std::vector<std::string> corpus_of(const std::string& kind) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RAILPASS_FUZZ_CORPUS) / kind))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) texts.push_back(files::read_text(path.string()));
  return texts;
}

/// `read` receives texts; any exception except railpass::error is reported with the text.
void fuzz(const std::string& kind, const std::function<void(const std::string&)>& read) {
  const std::vector<std::string> corpus = corpus_of(kind);
  REQUIRE_FALSE(corpus.empty());
  const std::uint64_t rounds = number_from("RAILPASS_FUZZ_ROUNDS", 5000),
                      seed = number_from("RAILPASS_FUZZ_SEED", std::random_device()());
  // Printed before the run, because after a crash nothing else remains.
  std::cerr << "fuzz " << kind << ": RAILPASS_FUZZ_SEED=" << seed << std::endl;
  mutator next(corpus, seed);
  std::uint64_t accepted = 0;
  const auto feed = [&](const std::string& text) {
    std::string wrong;
    allocated = 0;
    try {
      read(text);
      ++accepted;
    } catch (const error&) {
    } catch (const std::exception& problem) {
      wrong = problem.what();
    }
    if (wrong.empty()) return;
    const std::string path = "fuzz-" + kind + ".txt";
    std::ofstream(path) << text;
    FAIL("seed " << seed << ", input in " << path << ": " << wrong);
  };
  for (const std::string& text : corpus) feed(text);
  CHECK(accepted > 0);
  for (std::uint64_t round = 0; round < rounds; ++round) feed(next.next());
  std::cerr << "  " << accepted << " of " << corpus.size() + rounds << " accepted" << std::endl;
}

/// A result must be readable again after it is written.
template <class Parse>
void fuzz_json(const std::string& kind, Parse parse) {
  fuzz(kind, [&](const std::string& text) {
    const std::string written = files::to_json(parse(text, "file"));
    try {
      parse(written, "file");
    } catch (const error& refused) {
      throw std::logic_error(std::string("what it wrote is refused: ") + refused.what());
    }
  });
}

template <class Parse>
void fuzz_importer(const std::string& kind, Parse parse) {
  fuzz(kind, [&](const std::string& text) {
    parse(text, "file", files::import_facts{.num_ranks = 4, .ranks_per_node = 2, .arm = "native"});
  });
}

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) {
  allocated += bytes;
  if (allocated > most_allocated) {
    allocated = 0;
    throw std::bad_alloc();
  }
  return aligned_memory(bytes, alignment);
}

TEST_CASE("profiles") {
  fuzz_json("profile", [](auto&&... a) { return files::parse_profile(a...); });
}
TEST_CASE("advisories") { fuzz_json("advisories", files::parse_advisories); }
TEST_CASE("samples") { fuzz_json("samples", files::parse_samples); }
TEST_CASE("bench results") { fuzz_json("bench", files::parse_bench); }
TEST_CASE("comparisons") { fuzz_json("comparison", files::parse_comparison); }
TEST_CASE("statistics") { fuzz_json("statistics", files::parse_statistics); }
TEST_CASE("knowledge") {
  fuzz_json("knowledge", [](auto&&... a) { return files::parse_knowledge(a...); });
}
TEST_CASE("contexts that are handed out") {
  fuzz("contexts", [](const std::string& bytes) {
    const std::vector<knowledge::experience> read = store::decode(bytes);
    const std::string written = store::encode(read, bytes.size() + (1 << 20));
    try {
      if (store::encode(store::decode(written), written.size() + 16) != written)
        throw std::logic_error("what it wrote is read as something else");
    } catch (const error& refused) {
      throw std::logic_error(std::string("what it wrote is refused: ") + refused.what());
    }
  });
}
TEST_CASE("databases") {
  fuzz("database", [](const std::string& bytes) {
    const store::database_contents read = store::contents_of_database(bytes, "file");
    const std::string written = store::database_of(read);
    if (store::database_of(store::contents_of_database(written, "file")) != written)
      throw std::logic_error("what it wrote is read as something else");
  });
}
TEST_CASE("records of runs") {
  fuzz("run", [](const std::string& bytes) {
    const std::string written = store::packed(store::unpacked_run(bytes, "file"));
    try {
      store::unpacked_run(written, "file");
    } catch (const error& refused) {
      throw std::logic_error(std::string("what it wrote is refused: ") + refused.what());
    }
  });
}
TEST_CASE("text that is shown") {
  fuzz("shown", [](const std::string& text) {
    const std::string shown = printable(text);
    if (printable(shown) != shown || shown.find('\033') != std::string::npos)
      throw std::logic_error("what it shows is not fit to be shown");
  });
}
TEST_CASE("measurements of rails") { fuzz_json("rails", files::parse_rails); }
TEST_CASE("OSU's output") { fuzz_importer("osu", files::parse_osu); }
TEST_CASE("IMB's output") { fuzz_importer("imb", files::parse_imb); }
TEST_CASE("NetPIPE's output") { fuzz_importer("netpipe", files::parse_netpipe); }

TEST_CASE("journals") {
  const scratch_directory folder;
  const std::string path = folder.file("journal");
  fuzz("journal", [&](const std::string& text) {
    write_anew(path, text);
    try {
      tune::journal(path, "me", 1);
    } catch (const error&) {
      if (files::read_text(path) != text) throw std::logic_error("it changed what it refuses");
      throw;
    }
  });
}

TEST_CASE("results of a tuning") {
  const scratch_directory folder;
  const std::string path = folder.file("results");
  fuzz("results", [&](const std::string& text) {
    write_anew(path, text);
    tune::read_winners(path);
  });
}

TEST_CASE("parameter files") {
  fuzz("parameters", [](const std::string& text) {
    const tune::space where = tune::parse_parameters(text, "file");
    where.default_settings();
    const std::string json = tune::to_parameter_json(where.parameters());
    std::string lines;
    try {
      lines = tune::to_parameter_file(where.parameters());
    } catch (const error&) {  // values that OTPO's format cannot hold
    }
    for (const std::string& written : {json, lines}) try {
        if (!written.empty() &&
            tune::to_parameter_json(tune::parse_parameters(written, "again").parameters()) != json)
          throw std::logic_error("what it wrote is read as something else: " + written);
      } catch (const error& refused) {
        throw std::logic_error("what it wrote is refused: " + std::string(refused.what()) + '\n' +
                               written);
      }
  });
}

TEST_CASE("what libraries report") {
  fuzz("reported", [](const std::string& text) {
    for (const tune::target& t : tune::targets()) tune::proposal(tune::parse_reported(t, text));
  });
}
