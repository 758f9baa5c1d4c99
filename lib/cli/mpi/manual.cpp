// SPDX-License-Identifier: BSL-1.0
//
// Manual pages and completion of words, made of what the verbs declare. The build runs it; it is
// not shown to users.
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/runtime/settings_in_force.hpp"
#include "railpass/version.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>

namespace railpass::internal::cli {
namespace {

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

/// "railpass knowledge list", or with another separator.
std::string full_name(const CLI::App& app, char separator = ' ') {
  const CLI::App* const parent = app.get_parent();
  return parent ? full_name(*parent, separator) + separator + app.get_name() : app.get_name();
}

/// Text that troff prints as it is.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool begins_line = result.empty() || result.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

void add_item(std::ostream& page, const std::string& name, std::string_view text) {
  page << ".TP\n.B " << roff(name) << '\n' << roff(text) << '\n';
}

void add_options(std::ostream& page, const CLI::App& app) {
  const CLI::Formatter help;
  for (const CLI::Option* const option : app.get_options())
    add_item(
        page,
        help.make_option_name(option, option->get_positional()) + help.make_option_opts(option),
        option->get_description());
}

void add_example(std::ostream& page, std::string_view footer) {
  constexpr std::string_view heading = "Examples:\n";
  if (footer.starts_with(heading))
    page << ".SH EXAMPLES\n.nf\n" << roff(footer.substr(heading.size())) << ".fi\n";
}

std::string manual_page(const CLI::App& app) {
  std::ostringstream page;
  const std::string name = full_name(app, '-');
  const std::string usage =
      dynamic_cast<CLI::Formatter&>(*app.get_formatter()).make_usage(&app, full_name(app));
  page << ".TH " << roff(name) << " 1 \"\" \"railpass " RAILPASS_VERSION "\" railpass\n"
       << ".SH NAME\n"
       << roff(name) << " \\- " << roff(app.get_description()) << '\n'
       << ".SH SYNOPSIS\n.B " << roff(usage.substr(usage.find(' ') + 1)) << ".SH OPTIONS\n";
  add_options(page, app);
  const bool is_whole_program = !app.get_parent();
  if (is_whole_program) page << ".SH COMMANDS\n";
  for (const CLI::App* const sub : shown_verbs(app)) {
    if (is_whole_program) {
      add_item(page, full_name(*sub, '-') + "(1)", sub->get_description());
    } else {
      page << ".SH " << roff(full_name(*sub)) << '\n' << roff(sub->get_description()) << '\n';
      add_options(page, *sub);
    }
  }
  add_example(page, app.get_footer());
  if (is_whole_program) {
    page << ".SH ENVIRONMENT\n";
    for (const setting_description& s : describe(settings{}))
      add_item(page, variable_of(s.name) + (s.standard.empty() ? "" : '=' + s.standard), s.text);
    page << ".SH FILES\n";
    add_item(page, read_settings(nullptr).site_file,
             "settings of the site, a line name = value each; the environment takes precedence; "
             "RAILPASS_CONF names another file, or no file if empty");
    add_item(page, "/var/lib/railpass",
             "store of the site; RAILPASS_SITE names another store, or no store if empty");
  } else {
    page << ".SH SEE ALSO\n.BR railpass (1)\n";
  }
  return page.str();
}

std::string words_of_verbs(const CLI::App& app) {
  std::string words;
  for (const CLI::App* const sub : shown_verbs(app)) words += sub->get_name() + ' ';
  return words;
}

std::string words_of_options(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_snames()) words += '-' + name + ' ';
    for (const std::string& name : option->get_lnames()) words += "--" + name + ' ';
  }
  return words;
}

/// Cases of a line's words up to the one that is typed, the longer ones first.
void add_cases(std::ostream& script, const CLI::App& app) {
  for (const CLI::App* const sub : shown_verbs(app)) add_cases(script, *sub);
  script << "    '" << full_name(app) << (app.get_parent() ? " '*" : " '") << ") verbs='"
         << words_of_verbs(app) << (app.get_parent() ? "" : "help version ") << "' options='"
         << words_of_options(app) << "' ;;\n";
}

std::string cases(const CLI::App& app) {
  std::ostringstream script;
  add_cases(script, app);
  script << "    'railpass help ') verbs='" << words_of_verbs(app) << "' ;;\n";
  return script.str();
}

std::string words_of_collectives(std::string_view suffix = "") {
  std::string words;
  for (const collective op : all_collectives)
    words += std::string(name_of(op)) + std::string(suffix) + ' ';
  return words;
}

/// Cases of a collective's name; of any other word, the algorithms of all collectives.
std::string cases_of_algorithms() {
  std::string script;
  std::set<std::string_view> every;
  for (const collective op : all_collectives) {
    script += "    " + std::string(name_of(op)) + ") words='";
    for (const algorithm* const a : all_algorithms)
      if (a->op == op) {
        script += std::string(a->name) + ' ';
        every.insert(a->name);
      }
    script += "' ;;\n";
  }
  script += "    *) words='";
  for (const std::string_view name : every) script += std::string(name) + ' ';
  return script + "' ;;\n";
}

// Bash takes = and : for words of their own.
std::string bash_completion(const CLI::App& app) {
  return "# Completes the words of railpass in bash; made by the build.\n"
         "_railpass_algorithms() {\n"
         "  case $1 in\n" +
         cases_of_algorithms() +
         "  esac\n"
         "}\n"
         "_railpass() {\n"
         "  local at=$COMP_CWORD word=${COMP_WORDS[COMP_CWORD]} before= words= verbs= options= "
         "of=\n"
         "  local line=${COMP_WORDS[*]:1:COMP_CWORD-1}\n"
         "  [[ $word == [=:] ]] && word= && at=$((at + 1))\n"
         "  [[ ${COMP_WORDS[at-1]} == = ]] && at=$((at - 1))\n"
         "  [[ \" $line \" =~ ' --collective '(= )?([a-z_]+)' ' ]] && of=${BASH_REMATCH[2]}\n"
         "  case \"railpass ${line:+$line }\" in\n" +
         cases(app) +
         "  esac\n"
         "  words=$verbs\n"
         "  [[ $word == -* ]] && words=$options\n"
         "  case ${COMP_WORDS[at-1]} in\n"
         "    --collective | --collectives) words='" +
         words_of_collectives() +
         "' ;;\n"
         "    --algorithm | --arms | --arm) _railpass_algorithms \"$of\" ;;\n"
         "    :) _railpass_algorithms \"${COMP_WORDS[at-2]}\" ;;\n"
         "    schedule) [[ $word == -* ]] || words='" +
         words_of_collectives(":") +
         "'\n"
         "      [[ $word == -* ]] || compopt -o nospace 2>/dev/null ;;\n"
         "  esac\n"
         "  [[ $word == *,* ]] && before=${word%,*},\n"
         "  mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- \"${word##*,}\")\n"
         "}\n"
         "complete -o default -F _railpass railpass\n";
}

std::string zsh_completion(const CLI::App& app) {
  return "#compdef railpass\n"
         "# Completes the words of railpass in zsh; made by the build.\n"
         "_railpass() {\n"
         "  local line=\"${(j: :)words[2,CURRENT-1]}\" verbs= options=\n"
         "  case \"railpass ${line:+$line }\" in\n" +
         cases(app) +
         "  esac\n"
         "  if [[ $PREFIX == -* ]]; then\n"
         "    compadd -- ${=options}\n"
         "  elif [[ -n $verbs ]]; then\n"
         "    compadd -- ${=verbs}\n"
         "  else\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         "_railpass\n";
}

int run(const std::filesystem::path& folder, const CLI::App& app) {
  const auto write = [&](const char* below, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder / below);
    files::write_text(folder / below / name, text);
  };
  write("man/man1", "railpass.1", manual_page(app));
  for (const CLI::App* const verb : shown_verbs(app))
    write("man/man1", full_name(*verb, '-') + ".1", manual_page(*verb));
  write("bash-completion/completions", "railpass", bash_completion(app));
  write("zsh/site-functions", "_railpass", zsh_completion(app));
  return succeeded;
}

}  // namespace

const verb manual_verb{"  railpass manual build/share\n",
                       [](CLI::App& app) -> std::function<int()> {
                         const auto folder = std::make_shared<std::string>();
                         add_option(app, "folder", *folder, "where to write to").required();
                         return [folder, &app] { return run(*folder, *app.get_parent()); };
                       }};

}  // namespace railpass::internal::cli
