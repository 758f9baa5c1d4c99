// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/settings.hpp"

#include "lib/cli/environment.hpp"
#include "lib/cli/verb.hpp"
#include "lib/report/table.hpp"
#include "railpass/select/policies.hpp"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>

namespace railpass::cli {
namespace {

struct options {
  bool policies = false;
  json_output json;
};

std::string variable_of(std::string_view name) {
  std::string variable = "RAILPASS_";
  for (const char c : name) variable += char(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

int list_policies(const options& o) {
  auto list = nlohmann::ordered_json::array();
  report::table lines({"policy", "what it does"});
  for (const select::policy_description& p : select::policies) {
    list.push_back({{"name", p.name}, {"text", p.text}});
    lines.add({std::string(p.name), std::string(p.text)});
  }
  if (o.json.text()) words() << printed(lines);
  o.json.write(list);
  return succeeded;
}

int run(const options& o) {
  if (o.policies) return list_policies(o);
  const environment_settings report = read_settings();
  auto list = nlohmann::ordered_json::array();
  report::table lines({"setting", "value", "default", "unit", "from", "what it is"});
  for (const setting_description& s : describe(report.values)) {
    const bool set = std::find(report.from_environment.begin(), report.from_environment.end(),
                               s.name) != report.from_environment.end();
    const std::string from = set ? variable_of(s.name) : "default";
    list.push_back({{"name", s.name},
                    {"variable", variable_of(s.name)},
                    {"kind", s.kind},
                    {"default", s.standard},
                    {"value", s.value},
                    {"unit", s.unit},
                    {"source", set ? "environment" : "default"},
                    {"text", s.text}});
    lines.add(
        {std::string(s.name), s.value, s.standard, std::string(s.unit), from, std::string(s.text)});
  }
  if (o.json.text()) words() << printed(lines);
  o.json.write({{"settings", list}, {"problems", report.problems}});
  for (const std::string& problem : report.problems)
    std::cerr << "railpass settings: " << problem << '\n';
  return report.problems.empty() ? succeeded : failed;
}

}  // namespace

const verb settings_verb{
    "settings", "Show every setting, its value in force and where that came from",
    "  railpass settings\n"
    "  RAILPASS_POLICY=thompson railpass settings --json -\n"
    "  railpass settings --policies\n"
    "The exit status is 1 if the environment holds a wrong name or value.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      app.add_flag("--policies", o->policies, "list the values of the setting policy instead");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::cli
