// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/parameter_file.hpp"

#include "lib/files/files.hpp"
#include "lib/files/json_reader.hpp"

#include <charconv>

namespace railpass::internal::tune {

namespace {

constexpr std::string_view json_format = "railpass parameters";
constexpr int json_version = 1;
constexpr std::string_view blanks = " \t\r\f\v";

[[noreturn]] void fail(std::string_view word, const std::string& expected) {
  throw error("'" + std::string(word.substr(0, 60)) + "': " + expected);
}

std::int64_t integer(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc{} || end != word.data() + word.size()) fail(word, "expected an integer");
  return value;
}

// The values of a range. Every step must come nearer to the last value.
std::vector<std::string> walk(std::int64_t first, std::int64_t last, std::string_view op,
                              std::string_view step_word) {
  const std::int64_t step = integer(step_word);
  const bool up = op == "+" || op == "*";
  if (!up && op != "-" && op != "/") fail(op, "expected one of + - * /");
  const bool factor = op == "*" || op == "/";
  if (step < (factor ? 2 : 1))
    fail(step_word, factor ? "expected a factor of at least 2" : "expected a step of at least 1");
  if (up ? first > last : first < last)
    fail(op, up ? "expected a range whose last value is not below its first"
                : "expected a range whose last value is not above its first");
  if (factor && (first < 0 || last < 0)) fail(op, "expected a range without negative values");
  std::vector<std::string> values;
  for (std::int64_t value = first;;) {
    values.push_back(std::to_string(value));
    if (values.size() > most_levels)
      fail(step_word, "expected a range of at most " + std::to_string(most_levels) + " values");
    std::int64_t following = 0;
    const bool impossible = op == "+"   ? __builtin_add_overflow(value, step, &following)
                            : op == "-" ? __builtin_sub_overflow(value, step, &following)
                            : op == "*"
                                ? __builtin_mul_overflow(value == 0 ? 1 : value, step, &following)
                                : (following = value / step, false);
    if (impossible || following == value || (up ? following > last : following < last))
      return values;
    value = following;
  }
}

void expect_utf8(std::string_view line) {
  try {
    nlohmann::json(line).dump();
  } catch (const nlohmann::json::type_error&) {
    throw error("expected UTF-8");
  }
}

// So that a short file cannot ask for all memory.
void add(parameter p, std::vector<parameter>& parameters, std::size_t& values) {
  values += p.values.size();
  if (values > most_values)
    throw error("expected at most " + std::to_string(most_values) + " values of all parameters");
  parameters.push_back(std::move(p));
}

// The words of a line; "..." and {...} are one, without what encloses them.
struct token {
  std::string_view text;
  char kind = 'w';  // w: a bare word, " or {: what enclosed it
};

std::vector<token> tokens_of(std::string_view line) {
  std::vector<token> tokens;
  for (std::size_t i = line.find_first_not_of(blanks); i != std::string_view::npos;
       i = line.find_first_not_of(blanks, i)) {
    if (line[i] == '"' || line[i] == '{') {
      const std::size_t end = line.find(line[i] == '"' ? '"' : '}', i + 1);
      if (end == std::string_view::npos)
        fail(line.substr(i), line[i] == '"' ? "expected a closing quote" : "expected a closing }");
      tokens.push_back({line.substr(i + 1, end - i - 1), line[i]});
      i = end + 1;
    } else {
      const std::size_t end = std::min(line.find_first_of(" \t\r\f\v\"{", i), line.size());
      tokens.push_back({line.substr(i, end - i)});
      i = end;
    }
  }
  return tokens;
}

void add_values(std::vector<std::string>& values, std::string_view list) {
  constexpr std::string_view separators = " \t\r\f\v,";
  for (std::size_t i = list.find_first_not_of(separators); i != std::string_view::npos;) {
    const std::size_t end = std::min(list.find_first_of(separators, i), list.size());
    values.emplace_back(list.substr(i, end - i));
    i = list.find_first_not_of(separators, end);
  }
}

class line_parser {
 public:
  explicit line_parser(std::string_view line) : tokens_(tokens_of(line)) {}

  parameter parse() {
    parameter p;
    const token name = tokens_[at_++];
    if (name.kind != 'w' || is_option(name) || name.text.find('$') != std::string_view::npos)
      fail(name.text, "expected the name of a parameter");
    p.name = name.text;
    std::string seen;
    std::optional<std::pair<std::int64_t, std::int64_t>> range;
    std::optional<std::pair<std::string_view, std::string_view>> steps;
    std::string_view range_word;
    while (at_ < tokens_.size()) {
      const token option = tokens_[at_++];
      if (!is_option(option)) fail(option.text, "expected one of -d -p -r -t -i -v -a");
      const char letter = option.text[1];
      if (seen.find(letter) != std::string::npos) fail(option.text, "this option is given twice");
      seen += letter;
      switch (letter) {
        case 'v':
          p.is_virtual = true;
          break;
        case 'd':
          p.default_value = word(option, "a default value").text;
          break;
        case 'a':
          p.aggregate = word(option, "a format such as \"$name$,...\"").text;
          break;
        case 'i':
          p.condition_text = word(option, "a condition").text;
          if (p.condition_text.find_first_not_of(blanks) == std::string::npos)
            fail(option.text, "expected a condition after it");
          break;
        case 'p':
          while (at_ < tokens_.size() && !is_option(tokens_[at_])) {
            add_values(p.values, tokens_[at_++].text);
            if (tokens_[at_ - 1].kind == '{') break;
          }
          if (p.values.empty()) fail(option.text, "expected values after it, such as {a b c}");
          break;
        case 'r': {
          const std::int64_t low = integer(word(option, "the first value of a range").text);
          range = {low, integer(word(option, "the last value of a range").text)};
          range_word = option.text;
          break;
        }
        default: {
          const token method = word(option, "increment, the way to walk a range");
          if (method.text != "increment") fail(method.text, "expected increment");
          const std::string_view op = word(option, "one of + - * /").text;
          steps = {op, word(option, "the step of a range").text};
          range_word = option.text;
        }
      }
    }
    if (range.has_value() != steps.has_value())
      fail(range_word, range ? "expected -t with a range" : "expected -r with -t");
    if (int(range.has_value()) + int(!p.values.empty()) + int(p.aggregate.has_value()) != 1)
      fail(p.name, "expected exactly one of -p, -r and -a");
    if (range) p.values = walk(range->first, range->second, steps->first, steps->second);
    return p;
  }

 private:
  static bool is_option(const token& t) {
    return t.kind == 'w' && t.text.size() == 2 && t.text[0] == '-' &&
           std::string_view("dprtiva").find(t.text[1]) != std::string_view::npos;
  }
  token word(const token& option, const std::string& expected) {
    if (at_ == tokens_.size() || is_option(tokens_[at_]))
      fail(option.text, "expected " + expected + " after it");
    return tokens_[at_++];
  }

  std::vector<token> tokens_;
  std::size_t at_ = 0;
};

space parse_lines(std::string_view text, const std::string& name) {
  std::vector<parameter> parameters;
  std::vector<int> lines;
  std::size_t values = 0;
  int number = 0;
  const auto where = [&](int line) { return name + ": line " + std::to_string(line) + ": "; };
  try {
    while (!text.empty()) {
      ++number;
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const std::size_t begin = line.find_first_not_of(blanks);
      if (begin == std::string_view::npos || line[begin] == '#') continue;
      expect_utf8(line);
      add(line_parser(line).parse(), parameters, values);
      lines.push_back(number);
    }
  } catch (const error& wrong) {
    throw error(where(number) + wrong.what());
  }
  try {
    return space(std::move(parameters));
  } catch (const space::parameter_error& wrong) {
    throw error(where(lines[wrong.index]) + wrong.what());
  } catch (const error& wrong) {
    throw error(name + ": " + wrong.what());
  }
}

space parse_json(std::string_view text, const std::string& name) {
  const files::json_document document(text, name);
  const files::json_reader top = document.expect(json_format, json_version);
  top.expect_fields({"format", "version", "parameters"});
  std::vector<parameter> parameters;
  std::size_t values = 0;
  const auto read = top.list("parameters");
  for (const files::json_reader& j : read) {
    j.expect_fields({"name", "default", "values", "range", "condition", "virtual", "aggregate"});
    parameter p;
    p.name = j.name("name");
    if (j.has("default")) p.default_value = j.word("default");
    if (j.has("aggregate")) p.aggregate = j.text("aggregate");
    if (j.has("condition")) p.condition_text = j.name("condition");
    if (j.has("virtual")) p.is_virtual = j.boolean("virtual");
    if (j.has("values")) p.values = j.words("values");
    if (j.has("range")) {
      const files::json_reader r = j.field("range");
      r.expect_fields({"first", "last", "step"});
      constexpr std::int64_t most = files::largest_integer;
      const std::string step = r.text("step");
      if (!p.values.empty()) r.fail("expected either values or a range");
      if (step.size() < 2) r.fail("expected a step such as \"* 2\", found '" + step + "'");
      try {
        p.values = walk(r.integer("first", -most, most), r.integer("last", -most, most),
                        std::string_view(step).substr(0, 1),
                        std::string_view(step).substr(step.find_first_not_of(' ', 1)));
      } catch (const std::out_of_range&) {
        r.fail("expected a step such as \"* 2\", found '" + step + "'");
      } catch (const error& wrong) {
        r.fail(wrong.what());
      }
    }
    try {
      add(std::move(p), parameters, values);
    } catch (const error& wrong) {
      j.fail(wrong.what());
    }
  }
  try {
    return space(std::move(parameters));
  } catch (const space::parameter_error& wrong) {
    read[wrong.index].fail(wrong.what());
  } catch (const error& wrong) {
    top.fail(wrong.what());
  }
}

}  // namespace

space parse_parameters(std::string_view text, const std::string& name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? parse_json(text, name)
                                                               : parse_lines(text, name);
}

space read_parameters(const std::string& path) {
  return parse_parameters(files::read_text(path), path);
}

std::string to_parameter_file(const std::vector<parameter>& parameters) {
  std::string text;
  for (const parameter& p : parameters) {
    const auto holdable = [&](const std::string& word, std::string_view forbidden) {
      if (word.empty() || word.find_first_of(forbidden) != std::string::npos)
        throw error("'" + p.name + "': OTPO's format cannot hold '" + word +
                    "'; the JSON form can");
      return word;
    };
    const auto quoted = [&](const std::string& word) { return '"' + holdable(word, "\"\n") + '"'; };
    const bool looks_like_else =
        p.name.starts_with('#') || (p.name.size() == 2 && p.name[0] == '-');
    text += holdable(looks_like_else ? "" : p.name, " \t\r\f\v\n\"{$");
    if (p.is_virtual) text += " -v";
    if (p.default_value) text += " -d " + quoted(*p.default_value);
    if (p.aggregate) text += " -a " + quoted(*p.aggregate);
    if (!p.values.empty()) {
      text += " -p {";
      for (std::size_t i = 0; i < p.values.size(); ++i)
        text += (i ? " " : "") + holdable(p.values[i], " \t\r\f\v\n,\"{}");
      text += '}';
    }
    if (!p.condition_text.empty()) text += " -i " + quoted(p.condition_text);
    text += '\n';
  }
  return text;
}

std::string to_parameter_json(const std::vector<parameter>& parameters) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const parameter& p : parameters) {
    nlohmann::ordered_json j{{"name", p.name}};
    if (p.default_value) j["default"] = *p.default_value;
    if (p.is_virtual) j["virtual"] = true;
    if (p.aggregate) j["aggregate"] = *p.aggregate;
    if (!p.values.empty()) j["values"] = p.values;
    if (!p.condition_text.empty()) j["condition"] = p.condition_text;
    list.push_back(std::move(j));
  }
  return nlohmann::ordered_json{
             {"format", json_format}, {"version", json_version}, {"parameters", std::move(list)}}
             .dump(2) +
         '\n';
}

}  // namespace railpass::internal::tune
