# SPDX-License-Identifier: BSL-1.0
"""The version of include/railpass/version.hpp is that of the program, of the newest heading of CHANGELOG.md and of
CITATION.cff, and the Spack recipe asks for the versions that CMake asks for.

    release.py SOURCE_DIR VERSION RAILPASS
"""

import re
import subprocess
import sys
import types
from pathlib import Path

ROOT, VERSION, RAILPASS = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
# By the names of CMake's packages; those that Spack has under another one or not at all.
SPACK_NAMES = {"Boost": "boost", "CLI11": "cli11", "Eigen3": "eigen", "MPI": "mpi",
               "nlohmann_json": "nlohmann-json", "OpenSSL": "openssl", "PkgConfig": "pkgconfig", "SQLite3": "sqlite"}
NOT_IN_SPACK = {"Threads"}
# CMake finds such a package only if its major version is the one that is asked for.
OF_ONE_MAJOR_VERSION = {"eigen"}

problems = []


def check(is_right, what):
    if not is_right:
        problems.append(what)


def wanted_by_cmake():
    """{Spack's name: least version or ""}"""
    found = {}
    for file in "CMakeLists.txt", "cmake/sqlite.cmake":
        text = (ROOT / file).read_text()
        for name, version in re.findall(r"find_package\((\w+)(?: ([\d.]+))?", text):
            if name not in NOT_IN_SPACK:
                check(name in SPACK_NAMES, f"{file} wants {name}: say how Spack calls it")
                spack_name = SPACK_NAMES.get(name, name)
                found[spack_name] = version or found.get(spack_name, "")
        for name in re.findall(r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET (\w+)\)", text):
            found[name] = ""
        for version in re.findall(r"cmake_minimum_required\(VERSION ([\d.]+)\)", text):
            found["cmake"] = version
    return found


def read_recipe():
    """What the recipe says to Spack: the class, the specs it depends on, and its versions."""
    specs, versions, options = [], {}, {}
    spack = types.ModuleType("spack.package")
    spack.depends_on = lambda spec, **_: specs.append(spec)
    spack.version = lambda name, **where: versions.update({name: where})
    spack.variant = lambda name, **about: options.update({name: about})
    spack.license = spack.resource = lambda *_, **__: None
    spack.join_path = lambda *parts: "/".join(parts)
    cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    cmake.CMakePackage = type("CMakePackage", (), {
        "define": lambda _, name, value: f"{name}={value}",
        "define_from_variant": lambda _, name, option: f"{name}={options[option]['default']}"})
    for module in spack, cmake:
        for parent in module.__name__.split(".")[:-1]:
            sys.modules.setdefault(parent, types.ModuleType(parent))
        sys.modules[module.__name__] = module
    sys.modules["spack_repo.builtin"] = sys.modules["spack_repo.builtin.build_systems"] = cmake
    path = ROOT / "packaging/spack_repo/railpass/packages/railpass/package.py"
    names = {"__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["Railpass"], specs, versions


program = subprocess.run([RAILPASS, "version"], capture_output=True, text=True, check=True).stdout
check(program.strip() == f"railpass {VERSION}", f"railpass version: {program}")

headings = re.findall(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$",
                      (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
check(headings and headings[0][0] == VERSION, f"CHANGELOG.md begins with {headings[:1]}")
check("unreleased" not in [date for _, date in headings[1:]],
      "CHANGELOG.md: an older version is unreleased")
cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
check(cited and cited[1] == VERSION, f"CITATION.cff: expected version: {VERSION}")

recipe, specs, versions = read_recipe()
address = re.search(r'set\(RAILPASS_ADDRESS "(.*)"\)', (ROOT / "CMakeLists.txt").read_text())[1]
check((recipe.git or "") == address, f"the Spack recipe builds {recipe.git}")
check(not address or any(address in (ROOT / page).read_text() for page in ("README.md", "docs/how_to/install.md")),
      f"no document names {address}, where railpass is published")
released = {version: f"v{version}" for version, date in headings if date != "unreleased"}
check({name: where.get("tag") for name, where in versions.items() if name != "main"} == released,
      f"the Spack recipe has versions {list(versions)}, released are {list(released)}")
wanted = wanted_by_cmake()
for name, least in wanted.items():
    spec = f"{name}@{least}:" if least else name
    if name in OF_ONE_MAJOR_VERSION:
        spec += least.split(".")[0]
    check(spec in specs, f"the Spack recipe does not depend on {spec}, which CMake wants")
for spec in specs:
    name = re.split(r"[@+~]", spec)[0]
    check(name in wanted or name in ("c", "cxx"), f"the Spack recipe wants {name}, CMake does not")


class Installed(recipe):
    """As Spack calls it, with an MPI."""
    stage = types.SimpleNamespace(source_path="/sources")
    spec = {"mpi": types.SimpleNamespace(mpicc="mpicc", mpicxx="mpicxx")}


variables = dict(word.split("=") for word in Installed().cmake_args())
known = "\n".join(path.read_text() for path in (ROOT / "CMakeLists.txt", ROOT / "cmake/assets.cmake"))
for variable in variables:
    check(variable.startswith("MPI_") or variable in known, f"CMake knows no {variable}")
check(variables["RAILPASS_DEVELOPER"] == "False", "the Spack recipe builds tests")

print("\n".join(problems) or f"{VERSION} everywhere; {len(specs)} dependencies")
sys.exit(1 if problems else 0)
