// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/space.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <set>

namespace railpass::internal::tune {

namespace {

constexpr std::size_t deepest_stack = 100;

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view blanks = " \t\r\n";
  for (std::size_t i = text.find_first_not_of(blanks); i != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, i), text.size());
    words.push_back(text.substr(i, end - i));
    i = text.find_first_not_of(blanks, end);
  }
  return words;
}

[[noreturn]] void wrong_word(std::string_view word, const std::string& expected) {
  throw error("'" + std::string(word.substr(0, 60)) + "': " + expected);
}

}  // namespace

condition::op condition::operator_of(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, op>, 12> operators{
      {{"+", op::add},
       {"-", op::subtract},
       {"*", op::multiply},
       {"/", op::divide},
       {"=", op::equal},
       {"!=", op::not_equal},
       {">", op::greater},
       {"<", op::less},
       {">=", op::greater_equal},
       {"<=", op::less_equal},
       {"&&", op::both},
       {"||", op::either}}};
  for (const auto& [text, what] : operators)
    if (text == word) return what;
  return op::number;
}

condition::condition(std::string_view text, const std::vector<parameter>& parameters)
    : text_(text) {
  // Facts about each operand that do not depend on a combination.
  struct operand {
    bool is_text;
    bool has_words;  // written as such: can be compared with a text
  };
  std::vector<operand> stack;
  const auto words = words_of(text);
  for (const std::string_view w : words) {
    const op what = operator_of(w);
    if (what == op::number) {
      word operand_word;
      bool is_text = false;
      const auto named = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const parameter& p) { return p.name == w; });
      if (named != parameters.end()) {
        if (named->aggregate) wrong_word(w, "expected a parameter with values, not an aggregate");
        operand_word.what = op::parameter;
        operand_word.index = std::size_t(named - parameters.begin());
        is_text = !named->numeric();
        if (std::find(uses_.begin(), uses_.end(), operand_word.index) == uses_.end())
          uses_.push_back(operand_word.index);
      } else if (const auto number = integer(w)) {
        operand_word.number = *number;
      } else {
        operand_word.what = op::text;
        is_text = true;
      }
      operand_word.text = w;
      program_.push_back(std::move(operand_word));
      stack.push_back({is_text, true});
      if (stack.size() > deepest_stack) wrong_word(w, "expected fewer operands before an operator");
      continue;
    }
    if (stack.size() < 2) wrong_word(w, "expected two operands before this operator");
    const operand right = stack.back(), left = stack[stack.size() - 2];
    stack.resize(stack.size() - 2);
    if (what == op::equal || what == op::not_equal) {
      if ((left.is_text && !right.has_words) || (right.is_text && !left.has_words))
        wrong_word(w, "compares a text with a computed number");
    } else if (left.is_text || right.is_text) {
      wrong_word(w, "expected numbers on both sides, found a text or a parameter with such values");
    }
    word operator_word;
    operator_word.what = what;
    program_.push_back(std::move(operator_word));
    stack.push_back({false, false});
  }
  if (words.empty()) throw error("'': expected a condition");
  if (stack.size() != 1)
    wrong_word(words.back(), "expected an operator after it; " + std::to_string(stack.size()) +
                                 " operands are left over");
  if (stack.front().is_text)
    wrong_word(words.back(), "expected a name of a parameter with numbers, or a comparison");
}

bool condition::holds(const std::vector<parameter>& parameters,
                      const std::vector<std::uint16_t>& levels) const {
  struct operand {
    std::int64_t number = 0;
    const std::string* text = nullptr;
    bool is_text = false;
  };
  std::array<operand, deepest_stack> stack;
  std::size_t size = 0;
  for (const word& w : program_) {
    switch (w.what) {
      case op::number:
        stack[size++] = {w.number, &w.text, false};
        continue;
      case op::text:
        stack[size++] = {0, &w.text, true};
        continue;
      case op::parameter: {
        const parameter& p = parameters[w.index];
        const std::size_t level = levels[w.index];
        stack[size++] = {p.numeric() ? p.numbers[level] : 0, &p.values[level], !p.numeric()};
        continue;
      }
      default:
        break;
    }
    const operand b = stack[--size], a = stack[--size];
    std::int64_t result = 0;
    bool impossible = false;
    const auto equal = [&] {
      return a.is_text || b.is_text ? *a.text == *b.text : a.number == b.number;
    };
    switch (w.what) {
      case op::add:
        impossible = __builtin_add_overflow(a.number, b.number, &result);
        break;
      case op::subtract:
        impossible = __builtin_sub_overflow(a.number, b.number, &result);
        break;
      case op::multiply:
        impossible = __builtin_mul_overflow(a.number, b.number, &result);
        break;
      case op::divide:
        impossible = b.number == 0 ||
                     (b.number == -1 && a.number == std::numeric_limits<std::int64_t>::min());
        if (!impossible) result = a.number / b.number;
        break;
      case op::equal:
        result = equal();
        break;
      case op::not_equal:
        result = !equal();
        break;
      case op::greater:
        result = a.number > b.number;
        break;
      case op::less:
        result = a.number < b.number;
        break;
      case op::greater_equal:
        result = a.number >= b.number;
        break;
      case op::less_equal:
        result = a.number <= b.number;
        break;
      case op::both:
        result = a.number != 0 && b.number != 0;
        break;
      default:
        result = a.number != 0 || b.number != 0;
        break;
    }
    if (impossible) return false;
    stack[size++] = {result, nullptr, false};
  }
  return stack[0].number != 0;
}

space::space(std::vector<parameter> parameters) : parameters_(std::move(parameters)) {
  if (parameters_.empty()) throw error("expected at least one parameter");
  std::set<std::string> names;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameter& p = parameters_[i];
    if (p.name.empty()) throw parameter_error(i, "'': expected a name");
    if (std::any_of(p.name.begin(), p.name.end(), [](char c) { return is_control(c) || c == '='; }))
      throw parameter_error(i, "expected a name without control characters and =");
    if (!names.insert(p.name).second)
      throw parameter_error(i, "'" + p.name + "': expected a new name; this name is used above");
    if (p.aggregate && (!p.values.empty() || p.is_virtual))
      throw parameter_error(
          i, "'" + p.name + "': an aggregate has no values of its own and is not virtual");
    if (!p.aggregate && p.values.empty())
      throw parameter_error(i, "'" + p.name + "': expected values, a range or an aggregate");
    if (p.values.size() > most_levels)
      throw parameter_error(
          i, "'" + p.name + "': expected at most " + std::to_string(most_levels) + " values");
    std::set<std::string> values;
    p.numbers.clear();
    for (const std::string& v : p.values) {
      if (v.find('\0') != v.npos)
        throw parameter_error(i, "'" + p.name + "': expected values without a zero byte");
      if (!values.insert(v).second)
        throw parameter_error(i, "'" + v + "': this value is given twice");
      if (const auto number = integer(v)) p.numbers.push_back(*number);
    }
    if (p.numbers.size() != p.values.size()) p.numbers.clear();
  }
  formats_.resize(parameters_.size());
  decided_at_.resize(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameter& p = parameters_[i];
    if (!p.condition_text.empty()) {
      if (p.aggregate)
        throw parameter_error(
            i, "'" + p.name + "': an aggregate has no condition; its parts may have some");
      try {
        p.when = condition(p.condition_text, parameters_);
      } catch (const error& wrong) {
        throw parameter_error(i, wrong.what());
      }
      std::size_t last = i;
      for (const std::size_t used : p.when.uses()) last = std::max(last, used);
      decided_at_[last].push_back(i);
    }
    if (!p.aggregate) continue;
    std::string_view rest = *p.aggregate;
    if (rest.find('\0') != rest.npos)
      throw parameter_error(i, "'" + p.name + "': expected an aggregate without a zero byte");
    while (!rest.empty()) {
      const std::size_t begin = rest.find('$');
      if (begin != 0) formats_[i].push_back({std::string(rest.substr(0, begin)), std::nullopt});
      if (begin == std::string_view::npos) break;
      const std::size_t end = rest.find('$', begin + 1);
      if (end == std::string_view::npos)
        throw parameter_error(i, "'" + std::string(rest.substr(begin, 60)) +
                                     "': expected a second $ after the name of a parameter");
      const std::string_view name = rest.substr(begin + 1, end - begin - 1);
      const auto part = std::find_if(parameters_.begin(), parameters_.end(),
                                     [&](const parameter& q) { return q.name == name; });
      if (part == parameters_.end() || part->aggregate)
        throw parameter_error(
            i, "'$" + std::string(name.substr(0, 60)) + "$': expected a parameter with values");
      formats_[i].push_back({"", std::size_t(part - parameters_.begin())});
      rest.remove_prefix(end + 1);
    }
  }
}

bool space::holds(std::size_t i, const combination& c, condition_rule rule) const {
  return parameters_[i].when.empty() || (rule == condition_rule::first_value && c[i] == 0) ||
         parameters_[i].when.holds(parameters_, c);
}

bool space::settle(combination& c, std::size_t depth, condition_rule rule) const {
  const auto fits = [&](std::size_t at) {
    if (rule == condition_rule::none) return true;
    return std::all_of(decided_at_[at].begin(), decided_at_[at].end(),
                       [&](std::size_t i) { return holds(i, c, rule); });
  };
  for (;;) {
    if (c[depth] < parameters_[depth].levels()) {
      if (!fits(depth)) {
        ++c[depth];
      } else if (++depth == c.size()) {
        return true;
      } else {
        c[depth] = 0;
      }
    } else {
      if (depth == 0) return false;
      ++c[--depth];
    }
  }
}

std::optional<combination> space::first(condition_rule rule) const {
  combination c(parameters_.size(), 0);
  return settle(c, 0, rule) ? std::optional(c) : std::nullopt;
}

bool space::next(combination& c, condition_rule rule) const {
  ++c.back();
  return settle(c, c.size() - 1, rule);
}

std::uint64_t space::count(condition_rule rule, std::uint64_t limit) const {
  if (rule == condition_rule::none) {
    std::uint64_t product = 1;
    for (const parameter& p : parameters_)
      if (__builtin_mul_overflow(product, std::uint64_t(p.levels()), &product)) return limit;
    return std::min(product, limit);
  }
  std::uint64_t n = 0;
  auto c = first(rule);
  for (bool more = c.has_value(); more && n < limit; more = next(*c, rule)) ++n;
  return n;
}

bool space::allows(const combination& c, condition_rule rule) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (rule != condition_rule::none && !holds(i, c, rule)) return false;
  return true;
}

combination space::draw(std::mt19937_64& random) const {
  combination c(parameters_.size());
  const auto any = [&](std::size_t n) { return std::uint16_t(random() % n); };
  for (int attempt = 0; attempt < 200; ++attempt) {
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = any(parameters_[i].levels());
    if (allows(c)) return c;
  }
  // Few are left: parameters whose conditions fail go to their first values, at most all of them.
  while (!allows(c))
    for (std::size_t i = 0; i < c.size(); ++i)
      if (!holds(i, c, condition_rule::first_value)) c[i] = 0;
  return c;
}

combination space::nearest_to_defaults() const {
  combination c(parameters_.size(), 0);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const parameter& p = parameters_[i];
    if (!p.default_value) continue;
    const auto found = std::find(p.values.begin(), p.values.end(), *p.default_value);
    if (found != p.values.end()) c[i] = std::uint16_t(found - p.values.begin());
  }
  return allows(c) ? c : *first();
}

template <typename Value>
settings_list space::settings_by(Value value_of) const {
  settings_list result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].is_virtual) continue;
    std::string text;
    if (parameters_[i].aggregate)
      for (const piece& part : formats_[i])
        text += part.parameter ? value_of(*part.parameter) : part.text;
    else
      text = value_of(i);
    result.emplace_back(parameters_[i].name, std::move(text));
  }
  return result;
}

settings_list space::settings(const combination& c) const {
  return settings_by([&](std::size_t i) { return parameters_[i].values[c[i]]; });
}

settings_list space::default_settings() const {
  return settings_by([&](std::size_t i) {
    const parameter& p = parameters_[i];
    return p.default_value.value_or(p.values.front());
  });
}

std::string space::value(const combination& c, std::size_t i) const {
  if (!parameters_[i].aggregate) return parameters_[i].values[c[i]];
  std::string text;
  for (const piece& part : formats_[i])
    text += part.parameter ? parameters_[*part.parameter].values[c[*part.parameter]] : part.text;
  return text;
}

}  // namespace railpass::internal::tune
