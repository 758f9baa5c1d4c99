# SPDX-License-Identifier: BSL-1.0
"""What librailpass exports: in the node RAILPASS what the headers name that users include, and nothing of
a dependency; in the node RAILPASS_PRIVATE only what is in namespace railpass; nothing else.

    boundary.py SOURCE_DIR LIBRAILPASS
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT, LIBRARY = Path(sys.argv[1]), sys.argv[2]
DEPENDENCIES = re.compile(r"nlohmann|boost|asio|Eigen|CLI::|re2|sqlite|CRYPTO|EVP_")
# Not of railpass::internal, but declared where only railpass itself includes.
PRIVATE = {"railpass_preload_attach", "railpass_engine_built_for", "railpass::all_algorithms"}

users_headers = "\n".join(p.read_text() for p in (ROOT / "include/railpass").rglob("*.h*")
                          if p.parent.name in ("railpass", "detail", "base"))
words = set(re.findall(r"\w+", users_headers))

symbols = {"": set(), "RAILPASS": set(), "RAILPASS_PRIVATE": set()}  # by node: kinds and names
for line in subprocess.run(["nm", "-D", "-C", "--defined-only", "--with-symbol-versions", LIBRARY],
                           capture_output=True, text=True, check=True).stdout.splitlines():
    kind, name = re.fullmatch(r"\S* +(\S) (.*)", line).groups()
    found = re.fullmatch(r"(.*?)@@?(RAILPASS\w*)", name)
    if kind != "A":  # the nodes themselves
        symbols[found[2] if found else ""].add((kind, found[1] if found else name))

problems = [f"{name}: exported without a node" for _, name in symbols[""]]
for _, name in symbols["RAILPASS"]:
    plain = re.sub(r"^(typeinfo name|typeinfo|vtable) for ", "", name).split("(")[0].split("[abi")[0]
    last = plain.split("::")[-1].lstrip("~").removesuffix("=")
    if DEPENDENCIES.search(name) or "internal::" in plain:
        problems.append(f"{name}: in node RAILPASS, but not of railpass' own interface")
    elif last not in words:
        problems.append(f"{name}: in node RAILPASS, but no header that users include names it")
for kind, name in symbols["RAILPASS_PRIVATE"]:
    if "railpass::internal::" not in name and name not in PRIVATE:
        problems.append(f"{name}: exported without need")
    elif kind == "W" and not re.search(r"internal::executor<| std::", name):  # executors are made once
        problems.append(f"{name}: a header defines it, so each program has it itself")

print(", ".join(f"{len(names)} in {node or 'no node'}" for node, names in symbols.items()))
print("\n".join(sorted(problems)[:50]))
sys.exit(1 if problems or len(symbols["RAILPASS"]) < 40 else 0)
