// SPDX-License-Identifier: BSL-1.0
//
// The railpass program: finds the verb, runs it, turns errors into one sentence and a status.
#include "lib/cli/help.hpp"
#include "lib/cli/launched.hpp"
#include "lib/cli/verb.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

// One sentence on standard error, in one write. Under mpirun every rank comes here, and one of them
// speaks.
int complain(const std::string& who, const std::string& what, int status) {
  if (speaks_for_the_job())
    std::cerr << who + ": " + printable(what) + '\n';
  else
    let_rank_0_speak();
  return status;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// What CLI11 says of wrong use, as users would say it.
std::string in_users_terms(const std::string& text) {
  constexpr std::string_view value = ": Value ", range = " not in range ", choice = " not in {",
                             missing = " missing", required = " is required",
                             extra = "The following argument was not expected: ";
  if (const std::size_t at = text.find(value), behind = text.find(range);
      at != std::string::npos && behind != std::string::npos)
    return text.substr(0, at) + ": " + text.substr(at + value.size(), behind - at - value.size()) +
           " is not in the range " + text.substr(behind + range.size());
  if (const std::size_t colon = text.find(": 1 required ");
      colon != std::string::npos && text.ends_with(missing))
    return text.substr(0, colon) + ": the value is missing";
  if (const std::size_t at = text.find(": "), behind = text.find(choice);
      at != std::string::npos && behind != std::string::npos && text.ends_with('}')) {
    const std::size_t begin = behind + choice.size();
    return text.substr(0, at) + ": '" + text.substr(at + 2, behind - at - 2) +
           "': expected one of " + text.substr(begin, text.size() - begin - 1);
  }
  if (text.ends_with(required) && !text.starts_with('-'))
    return "the argument '" + text.substr(0, text.size() - required.size()) + "' is missing";
  if (text.starts_with(extra)) return '\'' + text.substr(extra.size()) + "' is not expected here";
  return text;
}

// The message if the words name none of a verb's own verbs. It replaces the message of CLI11.
std::string wrong_subcommand(const CLI::App& verb) {
  std::vector<std::string> known;
  std::string list;
  for (const CLI::App* const sub : verb.get_subcommands({})) {
    known.push_back(sub->get_name());
    list += (list.empty() ? "" : ", ") + sub->get_name();
  }
  const std::vector<std::string> extra = verb.remaining();
  return extra.empty() || extra.front().starts_with('-')
             ? "expected a subcommand: " + list
             : "there is no subcommand '" + extra.front() + "': expected one of " + list +
                   did_you_mean(extra.front(), known);
}

// Translates habits of other programs: the words `help` and `version`, and the options -np (for -n)
// and -- before the user's program.
std::vector<std::string> as_declared(std::vector<std::string> words, const CLI::App& app) {
  if (words.empty()) return words;
  if (words[0] == "version") words[0] = "--version";
  if (words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  for (const CLI::App* const verb : app.get_subcommands({})) {
    const bool has_ranks = verb->get_option_no_throw("-n") != nullptr;
    if (verb->get_name() != words[0] || !(has_ranks || verb->get_prefix_command())) continue;
    std::size_t i = 1;
    for (; i < words.size() && words[i].starts_with('-') && words[i] != "--"; ++i) {
      if (has_ranks && words[i] == "-np") words[i] = "-n";
      const CLI::Option* const option = verb->get_option_no_throw(words[i]);
      if (option && option->get_items_expected_min() > 0) ++i;
    }
    if (i < words.size() && words[i] == "--") words.erase(words.begin() + std::ptrdiff_t(i));
  }
  return words;
}

// The verb that the words are of, or whose help they ask for, if another program does it.
const named_verb* verb_of_other_program(int argc, char** argv) {
  const int at = argc > 2 && std::string_view(argv[1]) == "help" ? 2 : 1;
  for (const named_verb& v : verbs())
    if (argc > at && v.name == argv[at] && !v.work) return &v;
  return nullptr;
}

int run(int argc, char** argv) {
  CLI::App app("MPI collectives that learn the machine they run on", "railpass");
  app.set_version_flag("-v,--version", "railpass " RAILPASS_VERSION);
  app.formatter(std::make_shared<help_formatter>());
  app.require_subcommand(1);
  app.footer("railpass VERB --help says more, with an example.");
  std::string who = "railpass";
  int status = succeeded;
  for (const named_verb& v : verbs()) {
    CLI::App* const sub = app.add_subcommand(std::string(v.name), std::string(v.summary));
    if (!v.is_listed) sub->group("");
    if (!v.work) continue;
    sub->footer("Examples:\n" + std::string(v.work->examples));
    sub->callback([&v, &who, &status, work = v.work->declare(*sub)] {
      who += ' ';
      who += v.name;
      status = work();
    });
  }
  try {
    if (const named_verb* const v = verb_of_other_program(argc, argv)) v->elsewhere();
    std::vector<std::string> words = as_declared({argv + 1, argv + argc}, app);
    std::ranges::reverse(words);
    app.parse(std::move(words));
  } catch (const CLI::Success& shown) {
    if (speaks_for_the_job()) app.exit(shown);
    return succeeded;
  } catch (const CLI::ParseError& wrong) {
    if (app.get_subcommands().empty() && argc == 1)
      return complain(who, "expected a verb (railpass --help lists the verbs)", wrong_use);
    if (app.get_subcommands().empty())
      return complain(who,
                      "there is no verb or option '" + std::string(argv[1]) +
                          "' (railpass --help lists them)" +
                          did_you_mean(argv[1], verbs(), &named_verb::name),
                      wrong_use);
    std::string meant;
    for (const CLI::App* verb = &app; !verb->get_subcommands().empty();) {
      verb = verb->get_subcommands().front();
      who += ' ' + verb->get_name();
      if (!verb->get_subcommands({}).empty() && verb->get_subcommands().empty())
        return complain(who, wrong_subcommand(*verb), wrong_use);
      meant = meant_option(*verb);
    }
    return complain(
        who, in_users_terms(first_line(wrong.what())) + " (" + who + " --help says how)" + meant,
        wrong_use);
  } catch (const usage_error& wrong) {
    return complain(who, wrong.what(), wrong_use);
  } catch (const std::bad_alloc&) {
    return complain(who, "not enough memory for what was asked", failed);
  } catch (const std::exception& problem) {
    return complain(who, problem.what(), failed);
  }
  std::cout.flush();
  if (!std::cout) return complain(who, "standard output cannot be written", failed);
  return status;
}

}  // namespace
}  // namespace railpass::internal::cli

// An exception that no handler of run() expects is an error of railpass: the process aborts.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) { return railpass::internal::cli::run(argc, argv); }
