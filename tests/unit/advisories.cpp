// SPDX-License-Identifier: BSL-1.0
//
// Known faults of MPI libraries: which versions and calls they concern, and their files.
#include "railpass/knowledge/advisories.hpp"

#include "lib/files/files.hpp"
#include "support/catch.hpp"

#include <set>

using namespace railpass;
using namespace railpass::knowledge;
namespace files = railpass::internal::files;

namespace {

library_version version(const char* text) { return *library_version::parse(text); }

bool has_fault(const char* library, const char* from, const char* before, const char* mpi_library) {
  advisory a{.library = library};
  if (from) a.from_version = from;
  if (before) a.before_version = before;
  return is_of(a, release_of(mpi_library));
}

std::string file_with(const std::string& fields) {
  return R"({"format": "railpass advisories", "version": 1, "advisories": [{)" + fields + "}]}";
}

std::string refusal_of(const std::string& fields) {
  try {
    static_cast<void>(files::parse_advisories(file_with(fields), "site.json"));
  } catch (const error& problem) {
    return problem.what();
  }
  return "";
}

constexpr const char* open_mpi =
    "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";

}  // namespace

TEST_CASE("Versions are ordered by their numbers, and candidates come before releases") {
  CHECK(version("4.1.2") < version("4.1.10"));
  CHECK(version("4.1") == version("4.1.0"));
  CHECK(version("4.1") < version("5"));
  CHECK(version("5.0.0rc12") < version("5.0.0"));
  CHECK(version("5.0.0a1") < version("5.0.0"));
  CHECK(version("4.0.9") < version("5.0.0rc1"));
  CHECK(version("2018 Update 4") == version("2018"));
  CHECK_FALSE(library_version::parse("v4.1"));
  CHECK_FALSE(library_version::parse(""));
}

TEST_CASE("The text of MPI_Get_library_version names library and version") {
  CHECK(release_of(open_mpi).name == "Open MPI");
  CHECK(release_of(open_mpi).version == version("4.1.4"));
  CHECK(release_of("MPICH Version:\t4.0.2").name == "MPICH");
  CHECK(release_of("MPICH Version:      4.0.2").version == version("4.0.2"));
  CHECK(release_of("Intel(R) MPI Library 2021.19 for Linux* OS").version == version("2021.19"));
  CHECK(release_of("MPI VERSION    : CRAY MPICH version 8.1.29 (ANL base 3.4a2)").name.empty());
  CHECK(release_of("").name.empty());
}

TEST_CASE("A fault concerns the versions from the first on, before the first without it") {
  CHECK(has_fault("Open MPI", nullptr, nullptr, open_mpi));
  CHECK(has_fault("Open MPI", "4.1.4", nullptr, open_mpi));
  CHECK_FALSE(has_fault("Open MPI", "4.1.5", nullptr, open_mpi));
  CHECK_FALSE(has_fault("Open MPI", "4.1.0", "4.1.4", open_mpi));
  CHECK(has_fault("Open MPI", "4.1.0", "4.1.5", open_mpi));
  CHECK_FALSE(has_fault("MPICH", nullptr, nullptr, open_mpi));
  CHECK_FALSE(has_fault("Open MPI", nullptr, nullptr, "Some MPI 4.1.4"));
}

TEST_CASE("A fault concerns the calls that it names") {
  const advisory a{.collective = "reduce", .from_bytes = 2048, .from_ranks = 3, .from_hosts = 2};
  const select::excludable_call c{
      .operation = select::operation_class::builtin, .bytes = 4096, .num_ranks = 4, .num_hosts = 2};
  CHECK(concerns(a, collective::reduce, c));
  CHECK_FALSE(concerns(a, collective::all_reduce, c));
  select::excludable_call other = c;
  other.bytes = 1024;
  CHECK_FALSE(concerns(a, collective::reduce, other));
  other = c;
  other.num_hosts = 1;
  CHECK_FALSE(concerns(a, collective::reduce, other));
  CHECK(may_meet(a, 3, 2));
  CHECK_FALSE(may_meet(a, 2, 2));
  CHECK_FALSE(concerns({.library = "MPICH"}, collective::reduce, c));
  CHECK_FALSE(concerns({.collective = "reduce", .condition = "in place"}, collective::reduce, c));
}

TEST_CASE("A fault of single algorithms concerns these algorithms alone") {
  const advisory a{.collective = "reduce_scatter",
                   .algorithms = {"ring", "butterfly"},
                   .operation = "user_ordered"};
  const library_calls any{.num_ranks = 4, .commutative = false};
  CHECK(names_algorithm(a, collective::reduce_scatter, "butterfly", any));
  CHECK_FALSE(names_algorithm(a, collective::reduce_scatter, "butterfly", {.num_ranks = 4}));
  CHECK_FALSE(names_algorithm(a, collective::reduce_scatter, "recursive_halving", any));
  CHECK_FALSE(names_algorithm(a, collective::reduce_scatter_block, "ring", any));
  CHECK_FALSE(concerns(a, collective::reduce_scatter,
                       {.operation = select::operation_class::user_ordered, .num_ranks = 4}));
}

TEST_CASE("A site's advisory may exclude native or an algorithm of railpass") {
  const advisory a =
      files::parse_advisories(file_with(R"("library": "MPICH", "collective": "all_reduce",
              "operation": "builtin", "from_bytes": 4096, "to_ranks": 8, "effect": "is wrong",
              "avoid": "native", "link": "https://example.org")"),
                              "site.json")
          .advisories.at(0);
  const auto e = exclusion_of(a);
  REQUIRE(e);
  CHECK(e->what == find_algorithm(collective::all_reduce, "native"));
  CHECK(e->operation == select::operation_class::builtin);
  CHECK(e->from_bytes == 4096);
  CHECK(e->to_ranks == 8);
  CHECK(text_of(a) ==
        "all_reduce of MPICH, operations builtin, 4KiB or more, 1 to 8 ranks: is wrong "
        "(https://example.org)");
  CHECK_FALSE(exclusion_of(advisory{.collective = "all_reduce"}));
}

TEST_CASE("A wrong file of advisories is refused with the field's name") {
  const std::string rest = R"(, "effect": "x", "link": "y")";
  const auto refused = [&](const std::string& fields) { return refusal_of(fields + rest); };
  using Catch::Matchers::Contains;
  CHECK(refused(R"("library": "MPICH")").empty());
  CHECK_THAT(refused(R"("library": "MPI")"), Contains("library") && Contains("Open MPI"));
  CHECK_THAT(refused(R"("library": "MPICH", "from_version": "four")"), Contains("from_version"));
  CHECK_THAT(refused(R"("library": "MPICH", "collective": "gossip")"), Contains("collective"));
  CHECK_THAT(refused(R"("library": "MPICH", "collective": "Allreduce")"), Contains("collective"));
  CHECK_THAT(refused(R"("library": "MPICH", "operation": "sum")"), Contains("operation"));
  CHECK_THAT(refused(R"("library": "MPICH", "from_ranks": 9, "to_ranks": 8)"),
             Contains("to_ranks"));
  CHECK_THAT(refused(R"("library": "MPICH", "avoid": "native")"), Contains("avoid"));
  CHECK_THAT(refused(R"("library": "MPICH", "collective": "reduce", "avoid": "nothing")"),
             Contains("avoid") && Contains("railpass algorithms"));
  CHECK_THAT(refused(R"("library": "MPICH", "collective": "reduce", "avoid": "native",
                        "condition": "in place")"),
             Contains("avoid"));
  CHECK_THAT(refused(R"("library": "MPICH", "because": "z")"), Contains("because"));
  CHECK_THAT(refusal_of(R"("library": "MPICH", "effect": "x")"), Contains("link"));
}

TEST_CASE("The advisories of railpass name public reports, and exclude no native") {
  const advisory_list shipped = files::shipped_advisories();
  int reports = 0;
  for (const advisory& a : shipped.advisories) {
    INFO(text_of(a));
    CHECK_FALSE(a.avoid);
    CHECK((a.from_version || a.before_version));
    reports += int(a.link.starts_with("https://"));
  }
  CHECK(reports >= 15);
  CHECK(files::to_json(files::parse_advisories(files::to_json(shipped), "again")) ==
        files::to_json(shipped));
}
