// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/settings.hpp"

#include "lib/cli/environment.hpp"
#include "lib/cli/verb.hpp"
#include "lib/report/table.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/select/policies.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  bool policies = false;
  json_output json;
};

int list_policies(const options& o) {
  auto list = nlohmann::ordered_json::array();
  report::table lines({"policy", "effect"});
  for (const select::policy_description& p : select::policies) {
    list.push_back({{"name", p.name}, {"text", p.text}});
    lines.add({std::string(p.name), std::string(p.text)});
  }
  if (o.json.text()) screen().words() << screen().printed(lines);
  o.json.write(list);
  return succeeded;
}

int run(const options& o) {
  if (o.policies) return list_policies(o);
  const settings_in_force report = checked_settings();
  auto list = nlohmann::ordered_json::array();
  report::table lines({"setting", "value", "default", "unit", "from", "meaning"});
  for (const setting_description& s : describe(report.values)) {
    const auto origin = report.origins.find(s.name);
    const std::string from = origin == report.origins.end() ? "default" : origin->second;
    const std::string variable = variable_of(s.name);
    list.push_back({{"name", s.name},
                    {"variable", variable},
                    {"kind", s.kind},
                    {"default", s.standard},
                    {"value", s.value},
                    {"unit", s.unit},
                    {"source", from == variable ? "environment" : from},
                    {"text", s.text}});
    lines.add(
        {std::string(s.name), s.value, s.standard, std::string(s.unit), from, std::string(s.text)});
  }
  if (o.json.text()) {
    screen().words() << screen().printed(lines);
    if (!report.site_file.empty())
      screen().words() << "The site's file is " << report.site_file
                       << (std::filesystem::exists(report.site_file) ? ".\n"
                                                                     : ", which is not there.\n");
  }
  o.json.write(
      {{"settings", list}, {"site_file", report.site_file}, {"problems", report.problems}});
  for (const std::string& problem : report.problems)
    std::cerr << "railpass settings: " << printable(problem) << '\n';
  return report.problems.empty() ? succeeded : failed;
}

}  // namespace

const verb settings_verb{
    "  railpass settings\n"
    "  RAILPASS_POLICY=thompson railpass settings --json -\n"
    "  railpass settings --policies\n"
    "The exit status is 1 if the environment or the site's file (or the file that RAILPASS_CONF "
    "names)\n"
    "holds a wrong name or value.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_flag(app, "--policies", o->policies, "list the values of the setting policy instead");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
