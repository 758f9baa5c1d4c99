// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/arguments.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/call_trace.hpp"
#include "lib/files/files.hpp"
#include "lib/report/context_life.hpp"

#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string trace, svg, collective, bytes;
};

int run(const options& o) {
  report::context_choice which{.collective = o.collective};
  if (!o.bytes.empty()) which.bytes = parse_size("--bytes", o.bytes, largest_message_bytes);
  files::write_text(o.svg, report::draw_context_life(files::read_trace(o.trace), which));
  std::cout << "picture: " << o.svg << '\n';
  return succeeded;
}

}  // namespace

const verb timeline_verb{
    "  RAILPASS_TRACE=trace railpass run -n 4 ./program\n"
    "  railpass timeline trace.0 --svg life.svg\n"
    "  railpass timeline trace.0 --collective all_reduce --bytes 1KiB --svg life.svg\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "trace", o->trace, "trace of one rank (RAILPASS_TRACE)")
          .value_name("FILE")
          .required();
      add_option(app, "--svg", o->svg, "file for the picture").value_name("FILE").required();
      add_option(app, "--collective", o->collective, "default: the context with the most calls")
          .value_name("NAME");
      add_option(app, "--bytes", o->bytes, "a message size of the context").value_name("SIZE");
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
