// SPDX-License-Identifier: BSL-1.0
//
// Spaces of run-time parameters and their files, against a brute-force evaluator.
#include "lib/tune/parameter_file.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

using namespace railpass;
using namespace railpass::internal;
using namespace railpass::internal::tune;

namespace {

std::string complaint(const std::string& text) {
  try {
    parse_parameters(text, "p.conf");
  } catch (const error& wrong) {
    return wrong.what();
  }
  return "";
}

std::vector<std::string> values_of(const std::string& line) {
  return parse_parameters(line, "p.conf").parameters().at(0).values;
}

using strings = std::vector<std::string>;

// The shape of the receive-queue sample that OTPO ships: two queues, each described by virtual
// parameters, in one aggregate, and a size bounded by both.
const std::string two_queues = R"(# two queues

one_type -v -p {P}
one_size -v -d 8 -r 65536 262144 -t increment * 2
one_num -v -d 8 -r 1 256 -t increment * 2
one_low -v -d 32 -r 1 64 -t increment * 2 -i "one_num one_low >"
two_type -v -p {S}
two_size -v -d 8 -r 65536 262144 -t increment * 2
two_num -v -d 8 -r 1 256 -t increment * 2
two_low -v -d 32 -r 1 64 -t increment * 2 -i "two_num two_low >"
two_pending -v -d 128 -r 1 32 -t increment * 2 -i "two_low two_pending >"
queues -a "$one_type$,$one_size$,$one_num$,$one_low$:$two_type$,$one_size$,$two_num$,$two_low$,$two_pending$"
send_size -d 8 -r 65536 262144 -t increment * 2 -i "one_size send_size <= two_size send_size <= &&"
)";

}  // namespace

TEST_CASE("the counts of OTPO's sample") {
  const space s = parse_parameters(two_queues, "p.conf");
  CHECK(s.count(condition_rule::none) == 642978);
  CHECK(s.count(condition_rule::strict) == 37730);
  CHECK(s.count(condition_rule::first_value) == 68112);
  const auto first = s.settings(*s.first());
  REQUIRE(first.size() == 2);
  CHECK(first[0] == std::pair<std::string, std::string>("queues", "P,65536,1,1:S,65536,1,1,1"));
  CHECK(first[1] == std::pair<std::string, std::string>("send_size", "65536"));
  CHECK(s.default_settings()[0].second == "P,8,8,32:S,8,8,32,128");
}

TEST_CASE("conditional parameters collapse to one value where they do not matter") {
  const space s = parse_parameters(
      "use -p {0 1}\nthreshold -p {16 32 64} -i use\nkind -p {a, b}\nbeta -p {1 2} -i \"kind b "
      "=\"\n",
      "p.conf");
  CHECK(s.count(condition_rule::none) == 24);
  CHECK(s.count() == 4 * 3);
  CHECK(s.count(condition_rule::strict) == 3 * 2);
}

TEST_CASE("ranges") {
  CHECK(values_of("a -r 1 9 -t increment + 3") == strings{"1", "4", "7"});
  CHECK(values_of("a -r 1 8 -t increment * 2") == strings{"1", "2", "4", "8"});
  CHECK(values_of("a -r 0 8 -t increment * 2") == strings{"0", "2", "4", "8"});
  CHECK(values_of("a -t increment - 5 -r 9 -2") == strings{"9", "4", "-1"});
  CHECK(values_of("a -r 9 0 -t increment / 2") == strings{"9", "4", "2", "1", "0"});
  CHECK(values_of("a -r 9223372036854775806 9223372036854775807 -t increment + 1").size() == 2);
  CHECK(values_of("a -p -1 1 2, 3 -d -1") == strings{"-1", "1", "2", "3"});
  CHECK(values_of("a -p{x,y}") == strings{"x", "y"});
}

TEST_CASE("errors name file, line and word") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"a -p {1 2}\nb -x\n", {"p.conf: line 2: '-x'"}},
      {"a -p {1 2}\n\n# c\nb -q {3}\n", {"line 4: '-q'"}},
      {"a\n", {"line 1: 'a'", "-p, -r and -a"}},
      {"a -d 1\n", {"line 1: 'a'"}},
      {"a -p {1 2} -r 1 2 -t increment + 1\n", {"exactly one"}},
      {"a -p {1 2\n", {"line 1: '{1 2'", "closing }"}},
      {"a -p\n", {"'-p'", "values"}},
      {"a -p {}\n", {"'-p'", "values"}},
      {"a -p {1 1}\n", {"line 1: '1'", "twice"}},
      {"a -p {1} -p {2}\n", {"'-p'", "twice"}},
      {"a -p {1}\na -p {2}\n", {"line 2: 'a'", "above"}},
      {"a -r 1 5\n", {"'-r'", "-t"}},
      {"a -t increment + 1\n", {"'-t'", "-r"}},
      {"a -r 1 x -t increment + 1\n", {"'x'", "integer"}},
      {"a -r 1 99999999999999999999 -t increment + 1\n", {"'99999999999999999999'"}},
      {"a -r 1 5 -t decrement + 1\n", {"'decrement'"}},
      {"a -r 1 5 -t increment % 1\n", {"'%'"}},
      {"a -r 1 5 -t increment + 0\n", {"'0'"}},
      {"a -r 1 5 -t increment + -1\n", {"'-1'"}},
      {"a -r 1 5 -t increment * 1\n", {"'1'"}},
      {"a -r 1 5 -t increment - 1\n", {"'-'"}},  // would never end in OTPO
      {"a -r 1 5 -t increment / 2\n", {"'/'"}},
      {"a -r 0 1000000 -t increment + 1\n", {"at most"}},
      {"a -p {1 2} -i\n", {"'-i'"}},
      {"a -p {1 2} -i b\n", {"line 1: 'b'"}},
      {"a -p {1 2} -i \"a 1\"\n", {"left over"}},
      {"a -p {1 2} -i \"a >\"\n", {"'>'", "two operands"}},
      {"a -p {x y} -i \"a 1 >\"\n", {"'>'", "numbers"}},
      {"a -p {x y} -i \"a 1 1 + =\"\n", {"'='"}},
      {"a -p {1 2} -i \"a 3 =\"\n", {}},  // the first value is always left
      {"a -v\n", {"'a'"}},
      {"b -p {1}\na -a \"$c$\"\n", {"line 2: '$c$'"}},
      {"b -p {1}\na -a \"x$b\"\n", {"line 2: '$b'", "second $"}},
      {"b -p {1}\na -a \"$b$\" -v\n", {"line 2: 'a'"}},
      {"b -p {1}\na -a \"$b$\" -i b\n", {"line 2: 'a'"}},
      {"b -p {1}\na -a \"$b$\"\nc -p {1} -i \"a 1 =\"\n", {"line 3: 'a'"}},
      {"-p {1}\n", {"line 1: '-p'"}},
      {"", {"p.conf", "at least one"}},
      {"# nothing\n", {"p.conf"}},
      {"{\"format\": \"railpass parameters\", \"version\": 1, \"parameters\": [{\"name\": \"a\", "
       "\"values\": [1, 1]}]}",
       {"p.conf: parameters[0]", "'1'"}},
      {"{\"format\": \"railpass parameters\", \"version\": 1, \"parameters\": [{\"name\": \"a\", "
       "\"range\": {\"first\": 1, \"last\": 8, \"step\": \"*\"}}]}",
       {"parameters[0].range", "step"}},
      {"{\"format\": \"railpass parameters\", \"version\": 1,\n \"parameters\": [}",
       {"line 2", "JSON"}},
  };
  for (const auto& [text, expected] : cases) {
    const std::string said = complaint(text);
    INFO(text << "-> " << said);
    CHECK(said.empty() == expected.empty());
    for (const std::string& word : expected) CHECK(said.find(word) != std::string::npos);
  }
}

TEST_CASE("both forms say the same") {
  const std::string json = R"({"format": "railpass parameters", "version": 1, "parameters": [
    {"name": "use", "values": [0, 1], "default": 1},
    {"name": "size", "range": {"first": 1, "last": 8, "step": "* 2"}, "condition": "use"},
    {"name": "kind", "values": ["a b", "c"], "virtual": true},
    {"name": "all", "aggregate": "$kind$:$size$"}]})";
  const space s = parse_parameters(json, "p.json");
  CHECK(s.count() == (1 + 4) * 2);
  combination c = *s.first();
  CHECK(s.settings(c) == settings_list{{"use", "0"}, {"size", "1"}, {"all", "a b:1"}});
  const space again = parse_parameters(to_parameter_json(s.parameters()), "again.json");
  CHECK(again.count() == s.count());
  CHECK_THROWS_AS(to_parameter_file(s.parameters()), error);  // a blank in a value

  const space lines = parse_parameters(two_queues, "p.conf");
  for (const std::string& text :
       {to_parameter_file(lines.parameters()), to_parameter_json(lines.parameters())})
    CHECK(parse_parameters(text, "again").count() == 68112);
}

TEST_CASE("conditions and enumeration agree with a brute-force evaluator") {
  // The oracle: the condition as a tree of functions, evaluated directly for every raw combination.
  using evaluator = std::function<std::optional<long>(const std::vector<long>&)>;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto any = [&](std::size_t n) { return std::size_t(random() % n); };
    const std::size_t count = 1 + any(5);
    std::vector<std::vector<long>> values(count);
    std::vector<std::string> conditions(count);
    std::vector<evaluator> oracles(count, [](const auto&) { return 1L; });
    const auto grow = [&](auto&& self, int depth) -> std::pair<std::string, evaluator> {
      if (depth == 0 || any(4) == 0) {
        if (any(2)) {
          const long n = long(any(7)) - 2;
          return {std::to_string(n), [n](const auto&) { return n; }};
        }
        const std::size_t i = any(count);
        return {"p" + std::to_string(i), [i](const auto& v) { return v[i]; }};
      }
      const auto [left, l] = self(self, depth - 1);
      const auto [right, r] = self(self, depth - 1);
      static const strings operators{
          "+", "-", "*", "/", "=", "!=", ">", "<", ">=", "<=", "&&", "||"};
      const std::size_t o = any(operators.size());
      return {left + " " + right + " " + operators[o],
              [l = l, r = r, o](const auto& v) -> std::optional<long> {
                const auto a = l(v), b = r(v);
                if (!a || !b || (o == 3 && *b == 0)) return std::nullopt;
                switch (o) {
                  case 0:
                    return *a + *b;
                  case 1:
                    return *a - *b;
                  case 2:
                    return *a * *b;
                  case 3:
                    return *a / *b;
                  case 4:
                    return *a == *b;
                  case 5:
                    return *a != *b;
                  case 6:
                    return *a > *b;
                  case 7:
                    return *a < *b;
                  case 8:
                    return *a >= *b;
                  case 9:
                    return *a <= *b;
                  case 10:
                    return *a && *b;
                  default:
                    return *a || *b;
                }
              }};
    };
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      std::set<long> chosen;
      for (std::size_t n = 1 + any(4); n > 0; --n) chosen.insert(long(any(6)) - 1);
      values[i].assign(chosen.begin(), chosen.end());
      std::shuffle(values[i].begin(), values[i].end(), random);
      text += "p" + std::to_string(i) + " -p {";
      for (const long v : values[i]) text += std::to_string(v) + " ";
      text += "}";
      if (any(2)) {
        std::tie(conditions[i], oracles[i]) = grow(grow, 3);
        text += " -i \"" + conditions[i] + "\"";
      }
      text += "\n";
    }
    INFO(text);
    std::set<combination> expected, strict;
    combination c(count, 0);
    for (bool more = true; more;) {
      std::vector<long> v;
      for (std::size_t i = 0; i < count; ++i) v.push_back(values[i][c[i]]);
      bool kept = true, all = true;
      for (std::size_t i = 0; i < count; ++i) {
        const bool holds = oracles[i](v).value_or(0) != 0;
        all = all && holds;
        kept = kept && (holds || c[i] == 0);
      }
      if (kept) expected.insert(c);
      if (all) strict.insert(c);
      more = false;
      for (std::size_t i = count; i-- > 0 && !more;)
        if (++c[i] < values[i].size())
          more = true;
        else
          c[i] = 0;
    }
    const auto check = [&](const space& s, condition_rule rule, const std::set<combination>& set) {
      std::set<combination> found;
      auto at = s.first(rule);
      combination last;
      for (bool more = at.has_value(); more; more = s.next(*at, rule)) {
        CHECK((last.empty() || last < *at));
        last = *at;
        found.insert(*at);
      }
      CHECK(found == set);
      CHECK(s.count(rule) == set.size());
    };
    const space s = parse_parameters(text, "p.conf");
    check(s, condition_rule::first_value, expected);
    check(s, condition_rule::strict, strict);
    for (int i = 0; i < 20; ++i) CHECK(expected.count(s.draw(random)) == 1);
    CHECK(expected.count(s.nearest_to_defaults()) == 1);
  }
}

TEST_CASE("spaces too large to list are walked and drawn from") {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "p" + std::to_string(i) + " -r 1 10 -t increment + 1" +
            (i ? " -i \"p" + std::to_string(i - 1) + " 5 >\"" : "") + "\n";
  const space s = parse_parameters(text, "p.conf");
  CHECK(s.count(condition_rule::none, 1000) == 1000);
  CHECK(s.count(condition_rule::first_value, 100000) == 100000);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) CHECK(s.allows(s.draw(random)));
}

TEST_CASE("no text makes the parser do anything but answer") {
  const std::string json = to_parameter_json(parse_parameters(two_queues, "p.conf").parameters());
  const std::string pieces[] = {
      "-p", "{", "}",  "\"", "$",   "-r",   "-t increment", "9999999", "-i",   "\n",  "* 2", "-1",
      "&&", "a", "\\", "# ", " / ", "\xff", "[[[[",         "1e9",     "null", "-v ", ",",   ":"};
  int accepted = 0;
  for (unsigned seed = 1; seed <= 4000; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::string text = seed % 3 ? two_queues : json;
    for (std::size_t n = 1 + random() % 2; n > 0; --n) {
      const std::size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0:
          text.insert(at, pieces[random() % std::size(pieces)]);
          break;
        case 1:
          text.erase(at, random() % 30);
          break;
        case 2:
          if (at < text.size()) text[at] = char(random());
          break;
        default:
          text.resize(at);
          break;
      }
    }
    try {
      const space s = parse_parameters(text, "p.conf");
      ++accepted;
      auto c = s.first();
      for (int i = 0; i < 50 && c; ++i) {
        s.settings(*c);
        if (!s.next(*c)) break;
      }
    } catch (const error& wrong) {
      CHECK(std::string(wrong.what()).find("p.conf") == 0);
    }
  }
  CHECK(accepted > 100);
}

TEST_CASE("a file cannot ask for all memory, nor write a broken one") {
  std::string lines;
  for (int i = 0; i < 17; ++i) lines += "p" + std::to_string(i) + " -r 1 65535 -t increment + 1\n";
  CHECK_THROWS_WITH(parse_parameters(lines, "f"),
                    ContainsSubstring("f: line 17: expected at most 1048576 values"));
  CHECK_THROWS_WITH(parse_parameters("a -p {1}\nb -p {\xff}\n", "f"),
                    ContainsSubstring("f: line 2: expected UTF-8"));
  const auto json = [](const std::string& name, const std::string& value) {
    return parse_parameters(
        "{\"format\": \"railpass parameters\", \"version\": 1, \"parameters\": "
        "[{\"name\": \"" +
            name + "\", \"values\": [\"" + value + "\"]}]}",
        "f");
  };
  for (const char* name : {"a\\nb", "a\\u0000", "a=b", "\\u007f"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(json(name, "1"), ContainsSubstring("f: parameters[0]: expected a name"));
  }
  CHECK_THROWS_WITH(json("a", "\\u0000"), ContainsSubstring("without a zero byte"));
  for (const char* name : {"a b", "#a", "-d", "a{b", "a$"})
    CHECK_THROWS_WITH(to_parameter_file(json(name, "1").parameters()),
                      ContainsSubstring("cannot hold"));
  CHECK_THROWS_WITH(to_parameter_file(json("a", "1\\n2").parameters()),
                    ContainsSubstring("cannot hold"));
}
