#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes the reference pages that follow from the program and its sources.

    docs/site/generate.py --railpass build/dev/lib/cli/railpass             # writes docs/reference/*.md
    docs/site/generate.py --railpass build/dev/lib/cli/railpass --check     # 1 if one of them is stale
    docs/site/generate.py --railpass ... --pictures FOLDER                  # draws the algorithms instead, a page for
                                                                            # each collective
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = TOP / "docs/reference"
NOTE = "<!-- Written by docs/site/generate.py: change what it reads instead. -->\n"


class Program:
    def __init__(self, path):
        self.path = path
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS_")}
        self.environment["RAILPASS_KNOWLEDGE"] = "off"

    def says(self, *arguments):
        return subprocess.run([self.path, *arguments], check=True, text=True, stdout=subprocess.PIPE,
                              env=self.environment).stdout


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def command_line(program):
    verbs = re.findall(r'^RAILPASS_(?:MPI_|BUILD_)?VERB\((\w+)', (TOP / "lib/cli/verbs.def").read_text(), re.M)
    if not verbs:
        sys.exit("lib/cli/verbs.def: expected lines RAILPASS_VERB(name)")
    text = "# Command line\n\n" + NOTE
    text += "\n`railpass help` lists the verbs, `railpass help VERB` prints the help of a verb as on this page.\n"
    text += ("\nOn a terminal tables are at most 80 columns wide; `--wide` removes this limit. A terminal shows faster results in\n"
             "green, slower and wrong ones in red, unless `NO_COLOR` is set. `--csv` prints tables alone, with times in seconds, sizes in bytes\n"
             "and shares from 0 to 1.\n")
    for verb in verbs:
        text += f"\n## {verb}\n\n```text\n{program.says('help', verb).strip()}\n```\n"
    return text


def settings(program):
    listed = (TOP / "include/railpass/base/settings.def").read_text()
    lines = re.findall(r'^RAILPASS_SETTING\((\w+), (\w+), (.*?), "(\w*)", "(.*)"\)$', listed, re.M)
    if not lines or len(lines) != len(re.findall("^RAILPASS_SETTING", listed, re.M)):
        sys.exit("include/railpass/base/settings.def: expected lines RAILPASS_SETTING(kind, name, default, unit, text)")
    text = "# Settings\n\n" + NOTE + """
Each setting is an environment variable, or a line of the site's file ([a site's
defaults](../how_to/site.md#defaults)), equal on all ranks except for [some](../how_to/site.md#defaults).
`RAILPASS_CONF` names another file, or none if it is empty, and `RAILPASS_SITE` another [folder of the site's
results](../how_to/site.md#results-of-all-users-runs); `RAILPASS=off` keeps the preload library out of the
program. A communicator may have its own value
(`railpass::mpi::configure`), and a call its own arm. `railpass settings` shows the values in force and their origin. One
line on standard error reports a wrong name or value.

| variable | kind | by default | what it is |
|---|---|---|---|
"""
    for kind, name, default, unit, what in lines:
        value = default.strip('"')
        if kind == "boolean":
            value = {"true": "on", "false": "off"}[value]
        elif kind == "bytes" and int(value) >= 1 << 20 and int(value) % (1 << 20) == 0:
            value = f"{int(value) >> 20}MiB"
        if kind == "real" and unit:
            value += f" {unit}"
        value = f"`{value}`" if value else ""
        text += f"| `RAILPASS_{name.upper()}` | {kind} | {value} | {cell(what)} |\n"
    text += "\n## Policies\n\nThe values of `RAILPASS_POLICY`:\n\n```text\n"
    text += program.says("settings", "--policies").strip() + "\n```\n"
    return text + "\n## Strategies\n\nThe values of `RAILPASS_STRATEGY`:\n\n| strategy | |\n|---|---|\n" + strategies()


def strategies():
    """From the lines by which the headers of strategies list themselves."""
    folder = TOP / "include/railpass/transport"
    names = re.findall(r'strategies/(\w+)\.hpp"', (folder / "strategies.def").read_text())
    rows = ""
    for name in names:
        found = re.search(r"RAILPASS_LIST_STRATEGY\(\s*(\w+),((?:\s*\"[^\"]*\")+)\)",
                          (folder / f"strategies/{name}.hpp").read_text())
        if not found:
            sys.exit(f"strategies/{name}.hpp: expected RAILPASS_LIST_STRATEGY(name, text)")
        what = "".join(re.findall(r'"([^"]*)"', found[2]))
        rows += f"| `{found[1]}` | {cell(what)} |\n"
    return rows


def values(name, known):
    known = [size(v) if name.endswith("bytes") else str(v) for v in known]
    return f"`{name}`: " + (", ".join(known) if len(known) < 7 else f"{known[0]}, {known[1]} .. {known[-1]}")


def size(num_bytes):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if num_bytes and num_bytes % unit == 0:
            return f"{num_bytes // unit} {name}"
    return str(num_bytes)


def linked(source):
    """Papers, separated by semicolons, most of them with a doi behind."""
    papers = cell(source).split("; ")
    return "; ".join(re.sub(r"(.+), doi:(\S+)", r"[\1](https://doi.org/\2)", paper) for paper in papers)


def list_of_algorithms(program):
    return json.loads(program.says("algorithms", "--json", "-"))


def algorithms(program):
    text = "# Algorithms\n\n" + NOTE + """
An *arm* is an algorithm with values of its parameters, written `broadcast:binomial+segment_bytes=8KiB`. `native` is the
MPI library's own collective. The first value of a parameter is the default; 0 bytes mean no segments. Scratch memory is in
messages (n) and blocks (b).

`railpass schedule broadcast:binomial -p 8 --svg picture.svg` draws an algorithm; the site shows a picture of each
algorithm that sends messages. `railpass verify --collective broadcast -p 12 --ranks-per-node 4 --ranks-per-cache 4` proves all
algorithms that 12 ranks allow, also those for nodes or caches, and names all others.
"""
    last = None
    for one in list_of_algorithms(program):
        if one["collective"] != last:
            last = one["collective"]
            text += f"\n## {last}\n\n| algorithm | parameters | needs | scratch | source |\n|---|---|---|---|---|\n"
        parameters = "; ".join(values(name, known) for name, known in one["parameters"].items())
        text += (f"| `{one['name']}` | {parameters} | {'; '.join(one['needs'])} | {one['scratch']} | "
                 f"{linked(one['source'])} |\n")
    return text


def sends_messages(one):
    return one["name"] != "native" and "shared memory" not in one["needs"]


def draw_pictures(program, folder):
    folder.mkdir(parents=True, exist_ok=True)
    pages = {}
    for one in filter(sends_messages, list_of_algorithms(program)):
        on_nodes = any(need.startswith("several nodes") for need in one["needs"])
        program.says("schedule", f"{one['collective']}:{one['name']}", "-p", "8", "--bytes", "64KiB",
                     "--ranks-per-node", "4" if on_nodes else "1", "--svg",
                     str(folder / f"{one['collective']}.{one['name']}.svg"))
        pages.setdefault(one["collective"], []).append(one["name"])
    for collective, names in pages.items():
        text = (f"# Pictures of {collective}\n\nEach algorithm with 8 ranks and 64 KiB, by generic constants: one rank on each node, "
                "or 4 where the algorithm needs nodes.\n")
        for name in names:
            text += f"\n## {name}\n\n![timeline of {collective} by {name}]({collective}.{name}.svg)\n"
        (folder / f"{collective}.md").write_text(text)


def first_comment(path):
    """What a header says of itself: the comment at its top, which is Markdown."""
    lines = []
    for line in path.read_text().splitlines():
        if not re.match(r"//|/\*| \*", line) or line.strip() == "*/":
            break
        if "SPDX-" not in line:
            lines.append(re.sub(r"^(//| \*) ?|\*/$", "", line))
    return "\n".join(lines).strip()


def api(program):
    text = "# Interfaces\n\n" + NOTE + """
This page lists the headers that programs include, with the first comment of each. The headers describe every function:
shapes, units, ownership, errors, and whether the function is collective.
"""
    calls = []
    for path in sorted((TOP / "include/railpass").glob("*.h*")):
        name = f"railpass/{path.name}"
        link = os.path.relpath(path, REFERENCE)
        comment = first_comment(path)
        if comment:
            text += f"\n## {name}\n\n[{path.name}]({link})\n\n{comment}\n"
        else:
            calls.append(f"[{path.stem}]({link})")
    text += "\n## One collective each\n\n`railpass/collectives.hpp` includes them all: " + ", ".join(calls) + ".\n"
    return text


PAGES = {"command_line.md": command_line, "settings.md": settings, "algorithms.md": algorithms, "api.md": api}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--railpass", required=True, help="the program")
    parser.add_argument("--check", action="store_true", help="write nothing; say which pages are stale")
    parser.add_argument("--pictures", type=pathlib.Path, help="draw every algorithm into this folder instead")
    options = parser.parse_args()
    program = Program(options.railpass)
    if options.pictures:
        draw_pictures(program, options.pictures)
        return 0
    stale = []
    for name, page in PAGES.items():
        path = REFERENCE / name
        text = page(program)
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not options.check:
                path.write_text(text)
    if options.check and stale:
        print(f"stale in docs/reference: {', '.join(stale)}; `docs/site/generate.py --railpass {options.railpass}` "
              "writes them anew")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
