// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/target.hpp"

#include "railpass/base/names.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace railpass::internal::tune {

namespace {

constexpr target all_targets[] = {
    {"openmpi", "OMPI_MCA_", "Open MPI's MCA parameters", "ompi_info --all --level 9 --parsable"},
    {"mpich", "MPIR_CVAR_", "MPICH's control variables", "mpivars"},
    {"intel", "I_MPI_", "Intel MPI's variables", "impi_info -a"},
    {"ucx", "UCX_", "UCX's variables", "ucx_info -cf"},
    {"ofi", "FI_", "libfabric's variables", "fi_info -e"},
    {"env", "", "any variables of the environment", ""},
    {"words", "", "words of the command: {name} stands for the value", ""},
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

template <typename Use>
void each_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  for (std::size_t i = text.find_first_not_of(separators); i != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, i), text.size());
    words.push_back(text.substr(i, end - i));
    i = text.find_first_not_of(separators, end);
  }
  return words;
}

bool is_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
}

// mca:coll:tuned:param:NAME:KIND:VALUE, where a quoted value may hold colons.
std::vector<reported_parameter> parse_ompi_info(std::string_view text) {
  std::vector<reported_parameter> found;
  std::map<std::string, std::size_t, std::less<>> index_of_name;
  each_line(text, [&](std::string_view line) {
    if (!line.starts_with("mca:")) return;
    const std::size_t at = line.find(":param:");
    if (at == std::string_view::npos) return;
    line.remove_prefix(at + 7);
    const std::size_t name_end = line.find(':');
    if (name_end == std::string_view::npos) return;
    const std::string_view name = line.substr(0, name_end);
    line.remove_prefix(name_end + 1);
    const std::size_t kind_end = std::min(line.find(':'), line.size());
    const std::string_view kind = line.substr(0, kind_end);
    std::string_view value = line.substr(std::min(kind_end + 1, line.size()));
    auto it = index_of_name.find(name);
    if (it == index_of_name.end()) {
      it = index_of_name.emplace(std::string(name), found.size()).first;
      found.emplace_back().name = name;
    }
    reported_parameter& p = found[it->second];
    if (value.size() > 1 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    if (kind == "value") p.default_value = value;
    if (kind == "type") p.type = value;
    if (kind == "help") p.help = value;
    if (kind == "enumerator") {  // value:NUMBER:TEXT
      const auto words = split(value, ":");
      if (words.size() == 3 && words[0] == "value") p.values.emplace_back(words[1]);
    }
  });
  std::erase_if(found, [](const reported_parameter& p) { return p.type.empty(); });
  for (reported_parameter& p : found)
    if (p.type == "bool" && p.values.empty()) p.values = {"0", "1"};
  return found;
}

// MPICH's mpivars: NAME=VALUE and what MPI_T says of it, separated by tabs.
std::vector<reported_parameter> parse_mpivars(std::string_view text) {
  std::vector<reported_parameter> found;
  each_line(text, [&](std::string_view line) {
    const auto fields = split(line, "\t");
    if (fields.size() < 3) return;
    const std::size_t equals = std::min(fields[0].find('='), fields[0].size());
    const std::string_view name = trimmed(fields[0].substr(0, equals));
    if (!name.starts_with("MPIR_CVAR_") || !is_name(name) || equals == fields[0].size()) return;
    reported_parameter p;
    p.name = name.substr(10);
    p.default_value = trimmed(fields[0].substr(equals + 1));
    for (const std::string_view f : fields)
      if (f.starts_with("MPI_")) p.type = f;
    p.help = fields.back();
    found.push_back(std::move(p));
  });
  return found;
}

// fi_info: "# NAME: TYPE", then lines of # with a description and "(default: VALUE)" or "(default
// VALUE)".
std::vector<reported_parameter> parse_fi_info(std::string_view prefix, std::string_view text) {
  std::vector<reported_parameter> found;
  bool fresh = true;  // behind an empty line
  each_line(text, [&](std::string_view line) {
    line = trimmed(line);
    const bool begins = fresh;
    fresh = line.empty();
    if (!line.starts_with("# ")) return;
    line = trimmed(line.substr(2));
    const std::size_t colon = std::min(line.find(':'), line.size());
    if (begins && line.starts_with(prefix) && is_name(line.substr(0, colon))) {
      reported_parameter p;
      p.name = line.substr(prefix.size(), colon - prefix.size());
      const std::string_view type = trimmed(line.substr(std::min(colon + 1, line.size())));
      p.type = type.substr(0, type.find_first_of(" ("));
      if (p.type == "Boolean") p.values = {"0", "1"};
      found.push_back(std::move(p));
    } else if (!begins && !found.empty()) {
      reported_parameter& p = found.back();
      p.help += (p.help.empty() ? "" : " ") + std::string(line);
      constexpr std::string_view mark = "(default";
      if (const std::size_t at = line.find(mark); at != std::string_view::npos) {
        const std::size_t end = std::min(line.find(')', at), line.size());
        const auto words = split(line.substr(at + mark.size(), end - at - mark.size()), ": .");
        if (words.size() == 1) p.default_value = words[0];  // more are an explanation
      }
    }
  });
  return found;
}

// NAME=VALUE; lines of # before it describe the parameter.
std::vector<reported_parameter> parse_assignments(std::string_view prefix, std::string_view text) {
  std::vector<reported_parameter> found;
  std::string help;
  each_line(text, [&](std::string_view line) {
    line = trimmed(line);
    if (line.empty()) help.clear();
    const bool comment = line.starts_with("#");
    if (comment)
      line = trimmed(line.substr(
          line.find_first_not_of("# ") == line.npos ? line.size() : line.find_first_not_of("# ")));
    if (line.starts_with("| ")) line = trimmed(line.substr(2));
    const std::size_t end = line.find_first_of("= \t");
    const std::string_view name = line.substr(0, end);
    if (!name.starts_with(prefix) || !is_name(name) || end == std::string_view::npos) {
      if (comment && !line.empty() && help.size() < 300) {
        help += (help.empty() ? "" : " ") + std::string(line);
      } else if (!comment && !found.empty() && found.back().help.empty()) {
        found.back().help = line;  // what follows the name
      }
      return;
    }
    reported_parameter p;
    p.name = name.substr(prefix.size());
    const std::string_view rest = trimmed(line.substr(end + 1));
    p.default_value = rest;
    const std::size_t syntax = help.find("syntax:");
    if (syntax != std::string::npos) {
      p.type = trimmed(std::string_view(help).substr(syntax + 7));
      if (p.type.starts_with("[") && p.type.ends_with("]") && p.type.find('|') != std::string::npos)
        for (const auto w : split(std::string_view(p.type).substr(1, p.type.size() - 2), "|"))
          p.values.emplace_back(w);
    }
    p.help = help;
    help.clear();
    found.push_back(std::move(p));
  });
  return found;
}

std::string one_line(std::string text, std::size_t longest) {
  std::replace_if(text.begin(), text.end(), is_control, ' ');
  return text.substr(0, longest);
}

}  // namespace

std::span<const target> targets() { return all_targets; }

const target& find_target(std::string_view name) {
  for (const target& t : all_targets)
    if (t.name == name) return t;
  throw error(expected_one_of(name, all_targets, &target::name));
}

std::string variable_of(const target& t, std::string_view name) {
  return name.starts_with(t.prefix) ? std::string(name) : std::string(t.prefix) + std::string(name);
}

command_request apply(const target& t, const std::string& command, const settings_list& settings) {
  command_request request{.line = command, .environment = {}};
  if (t.name != "words") {
    for (const auto& [name, value] : settings)
      request.environment.emplace_back(variable_of(t, name), value);
    return request;
  }
  // Each character of the command is looked at once, so that values are never looked at.
  request.line.clear();
  std::vector<bool> used(settings.size(), false);
  for (std::size_t i = 0; i < command.size();) {
    std::size_t which = settings.size();
    if (command[i] == '{')
      for (std::size_t k = 0; k < settings.size(); ++k)
        if (command.compare(i + 1, settings[k].first.size() + 1, settings[k].first + '}') == 0)
          which = k;
    if (which == settings.size()) {
      request.line += command[i++];
    } else {
      used[which] = true;
      request.line += settings[which].second;
      i += settings[which].first.size() + 2;
    }
  }
  for (std::size_t k = 0; k < settings.size(); ++k)
    if (!used[k])
      throw error("the command has no {" + settings[k].first + "}, where its value could stand");
  return request;
}

std::string settings_file(const target& t, const settings_list& settings) {
  std::string text = "# Found by railpass tune.\n";
  for (const auto& [given, value] : settings) {
    if (t.name == "openmpi") {
      const std::string name = variable_of(t, given).substr(t.prefix.size());
      const bool word = !name.empty() && name.find_first_of(" \t#") == name.npos;
      if (!word || trimmed(value) != value || std::any_of(value.begin(), value.end(), is_control))
        throw error("'" + one_line(name + " = " + value, 60) +
                    "': mca-params.conf holds a word and a value of one line without blanks "
                    "around it");
      text += name + " = " + value + '\n';
      continue;
    }
    const std::string variable = variable_of(t, given);
    if (!is_name(variable) || (variable[0] >= '0' && variable[0] <= '9'))
      throw error("'" + one_line(variable, 60) + "': a shell takes no variable of this name");
    std::string quoted;
    for (const char c : value) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += (t.name == "words" ? "" : "export ") + variable + "='" + quoted + "'\n";
  }
  return text;
}

void check_settings_file(const target& t, const space& where) {
  settings_file(t, where.default_settings());
  for (const parameter& p : where.parameters())
    for (const std::string& value : p.values)
      if (!p.is_virtual) settings_file(t, {{p.name, value}});
}

std::vector<reported_parameter> parse_reported(const target& t, std::string_view text) {
  if (t.name == "openmpi") return parse_ompi_info(text);
  if (t.name == "mpich") return parse_mpivars(text);
  if (t.name == "ofi") return parse_fi_info(t.prefix, text);
  return parse_assignments(t.prefix, text);
}

std::string proposal(const std::vector<reported_parameter>& parameters) {
  std::string text =
      "# Take the # from the lines to be tuned; the ranges are proposals around the defaults.\n";
  for (const reported_parameter& p : parameters) {
    text += "\n# " + one_line(p.type + (p.help.empty() ? "" : ": " + p.help), 200) + '\n';
    text += "#" + p.name;
    const bool plain = p.default_value.find_first_of("\"\n") == std::string::npos;
    if (!p.default_value.empty() && plain) text += " -d \"" + p.default_value + '"';
    std::int64_t number = 0;
    const char* const last = p.default_value.data() + p.default_value.size();
    const auto [end, failure] = std::from_chars(p.default_value.data(), last, number);
    if (!p.values.empty()) {
      text += " -p {";
      for (std::size_t i = 0; i < p.values.size(); ++i) text += (i ? " " : "") + p.values[i];
      text += '}';
    } else if (failure == std::errc{} && end == last && !p.default_value.empty() && number >= 16) {
      text += " -r " + std::to_string(number / 8) + ' ' +
              std::to_string(number > (std::int64_t{1} << 60) ? number : number * 8) +
              " -t increment * 2";
    } else if (failure == std::errc{} && end == last && !p.default_value.empty() && number >= 0) {
      text += " -r 0 " + std::to_string(2 * number + 2) + " -t increment + 1";
    } else {
      text += " -p {" +
              (plain && p.default_value.find_first_of(" ,{}") == std::string::npos ? p.default_value
                                                                                   : "") +
              " ...}";
    }
    text += '\n';
  }
  return text;
}

}  // namespace railpass::internal::tune
