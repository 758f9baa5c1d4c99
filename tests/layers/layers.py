# SPDX-License-Identifier: BSL-1.0
"""Every file includes only the layers that its CMake target depends on, and the rooms of its layer
that come before its own. No header that users include pulls in the algorithms, Eigen or JSON.

    layers.py SOURCE_DIR facade|no-facade LAYER=ALLOWED,ALLOWED... -- COMPILER FLAGS...
"""

import re
import subprocess
import sys
from pathlib import Path

split = sys.argv.index("--")
ROOT = Path(sys.argv[1])
DEPENDS = {name: set(filter(None, allowed.split(",")))
           for name, allowed in (word.split("=") for word in sys.argv[3:split])}
COMPILER = sys.argv[split + 1:]

# Who is above the layers: what users include may use only base, the command line everything.
DEPENDS["api"] = {"base"}
DEPENDS["facade"] = {"api"}
DEPENDS["calls"].add("api")
DEPENDS["halo"].add("api")
DEPENDS["c"].add("api")
DEPENDS["preload"].add("api")
DEPENDS["cli"] = set(DEPENDS)

# The rooms of a layer: a room includes itself and the rooms before it.
ROOMS = {"calls": ("lib/call/", "lib/buffers/", "lib/group/"),
         "session": ("lib/runtime/", "lib/rails/communicator/", "lib/tuner/", "lib/sets/", "lib/communicator/")}

# Longest first: where the files of a layer are.
PLACES = [("include/railpass/mpi.hpp", "api"), ("include/railpass/options.hpp", "api"),
          ("include/railpass/rails.hpp", "api"), ("include/railpass/function_set.hpp", "api"),
          ("include/railpass/region.hpp", "api"), ("include/railpass/detail/set_call.hpp", "api"),
          ("include/railpass/array_view.hpp", "api"), ("include/railpass/cartesian.hpp", "api"),
          ("include/railpass/halo_exchange.hpp", "api"), ("include/railpass/railpass.h", "api"),
          ("include/railpass/version.hpp", "base"),
          ("include/railpass/base/", "base"), ("lib/base/", "base"), ("include/railpass/schedule/", "schedule"),
          ("include/railpass/select/", "select"), ("lib/select/", "select"), ("include/railpass/predict/", "predict"),
          ("include/railpass/knowledge/", "knowledge"), ("lib/store/", "store"),
          ("include/railpass/fit/", "fit"), ("include/railpass/transport/", "transport"), ("lib/transport/", "transport"),
          ("include/railpass/", "facade"),
          ("models/", "models"), ("collectives/", "collectives"), ("lib/cli/", "cli"), ("lib/measure/", "measure"),
          *((room, layer) for layer, rooms in ROOMS.items() for room in rooms),
          ("lib/halo/", "halo"), ("lib/c/", "c"), ("lib/preload/", "preload"),
          ("lib/exec/", "exec"), ("lib/rails/", "rails"), ("lib/files/", "files"), ("lib/report/", "report"), ("lib/libraries/", "libraries"), ("lib/tune/", "tune"),
          ("lib/launch/", "launch"), ("lib/characterise/", "characterise")]

# Which layers may include what is not ours.
OUTSIDE = {"Eigen/": {"fit", "tune"}, "nlohmann/": {"files", "report", "libraries", "measure", "tune", "cli"}, "CLI/": {"cli"}, "boost/": {"facade", "rails"},
           "sqlite3.h": {"store"}, "re2/": {"tune"},
           "mpi.h": {"api", "rails", "exec", "calls", "session", "halo", "c", "measure", "preload", "cli"}}

USERS_HEADERS = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "include/railpass").glob("*.hpp"))
                 if p.name not in ("options.hpp", "version.hpp")]  # part of mpi.hpp; macros alone
NOT_FOR_USERS = re.compile(r"/(Eigen|nlohmann|asio|CLI|collectives/(?!.*boost)|models|"
                           r"railpass/(schedule|select|knowledge|predict|fit|transport))/")

problems = []


def layer_of(path):
    for place, layer in PLACES:
        if path.startswith(place):
            return layer
    problems.append(f"{path}: belongs to no layer; say which in {Path(__file__).name}")
    return None


def room_of(path, layer):
    return next(number for number, room in enumerate(ROOMS[layer]) if path.startswith(room))


def below(layer):
    found, open_ = {layer}, [layer]
    while open_:
        for lower in DEPENDS[open_.pop()] - found:
            found.add(lower)
            open_.append(lower)
    return found


def check_includes(path):
    layer = layer_of(path)
    if layer is None:
        return
    allowed = below(layer)
    for line, text in enumerate((ROOT / path).read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', text)
        if not match:
            continue
        kind, name = match.groups()
        if kind == '"':
            if name.startswith("."):
                problems.append(f"{path}:{line}: {name}: write includes from the root")
                continue
            target = layer_of("include/" + name if name.startswith("railpass/") else name)
            if target is not None and target not in allowed:
                problems.append(f"{path}:{line}: layer {layer} may not include {name} ({target})")
            if target == layer and layer in ROOMS and room_of(name, layer) > room_of(path, layer):
                problems.append(f"{path}:{line}: room {ROOMS[layer][room_of(path, layer)]} may not include {name}")
        else:
            for prefix, layers in OUTSIDE.items():
                if name.startswith(prefix) and layer not in layers:
                    problems.append(f"{path}:{line}: layer {layer} may not include <{name}>")


def check_users_header(path):
    listed = subprocess.run([*COMPILER, "-M", "-x", "c++", str(ROOT / path)], capture_output=True,
                            text=True, check=True).stdout
    files = listed.replace("\\\n", " ").split()[2:]
    if not any(name.endswith("/mpi.h") for name in files):
        problems.append(f"{path}: its includes could not be listed")
    for name in files:
        if NOT_FOR_USERS.search(name.replace("/boost/mpi/collectives/", "/boost/")):
            problems.append(f"{path}: users would include {name}")


# Files from outside are opened by lib/files/input.hpp, and their JSON is parsed by
# lib/files/json_reader.hpp: nothing else opens a file to read it, but for what the kernel says.
OPENS = re.compile(r"\b(i|basic_i)?fstream\b|\bf(re)?open\(|(?<!\w)::open(at)?\(|"
                   r"\bopen(at)?\(.*\bO_|\bsqlite3_open|\bistreambuf_iterator|json::(sax_)?parse\(|json::from_")
MAY_OPEN = {"lib/files/input.cpp": "the gate", "lib/files/json_reader.cpp": "the gate of JSON",
            "lib/store/untrusted.cpp": "the gate of SQLite", "lib/store/record.cpp": "the gate of CBOR",
            "lib/files/text.cpp": "writes", "lib/runtime/log.cpp": "writes",
            "lib/runtime/trace_file.cpp": "writes", "lib/tune/journal.cpp": "locks what it writes",
            "lib/files/provenance.cpp": "/proc", "lib/runtime/knowledge.cpp": "/sys",
            "lib/group/caches.cpp": "/sys", "lib/tune/command.cpp": "/proc",
            "lib/group/shared_clock.cpp": "/proc", "lib/cli/launched.cpp": "/proc",
            "lib/runtime/host_ledger.cpp": "/proc", "lib/store/halts.cpp": "locks what it writes",
            "lib/measure/findings_of_ranks.cpp": "JSON of its own",
            "lib/measure/findings.cpp": "/proc, /sys", "lib/cli/demo.cpp": "/sys",
            "lib/report/terminal.cpp": "/proc, terminals",
            "lib/launch/launcher.cpp": "programs", "lib/measure/rails_report.cpp": "JSON of its own",
            "lib/rails/board_file.cpp": "no links, and no files of other users",
            "lib/tune/results.cpp": "JSON of its own"}


def check_openings(path):
    if path in MAY_OPEN:
        return
    for line, text in enumerate((ROOT / path).read_text().splitlines(), 1):
        if match := OPENS.search(text):
            problems.append(f"{path}:{line}: {match[0]}: read files by lib/files/input.hpp, and JSON by "
                            "lib/files/json_reader.hpp")


sources = [str(p.relative_to(ROOT)) for folder in ("include", "models", "collectives", "lib")
           for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".hpp", ".cpp", ".def")]
for source in sources:
    check_includes(source)
    check_openings(source)
for header in USERS_HEADERS:
    if layer_of(header) == "api" or sys.argv[2] == "facade":
        check_users_header(header)
print(f"{len(sources)} files looked at")
print("\n".join(problems))
sys.exit(1 if problems or len(sources) < 50 else 0)
