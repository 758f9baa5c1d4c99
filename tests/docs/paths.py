# SPDX-License-Identifier: BSL-1.0
"""Every path that a comment, a page or a script names leads to a file or folder of the repository. Paths begin in
its root, in include, in include/railpass or in the folder of the file that names them, and may leave out how the
file's name ends."""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
KINDS = re.compile(r"\.(hpp|cpp|def|h|c|f90|map|py|cmake|js|css|md)$|/CMakeLists\.txt$")
# What was measured or tried is kept as it was written down.
PAST = ("docs/measurements/", "docs/experiments/", "CHANGELOG.md")
# Of a build or an installed railpass.
BUILT = {"lib/librailpass_preload.so", "lib/cmake/railpass"}


def tracked():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=TOP, check=True,
                            text=True, stdout=subprocess.PIPE).stdout.split("\n")
    return [name for name in listed if (TOP / name).is_file()]


def main():
    names = tracked()
    known = set()  # every file and folder, from each beginning, with and without its ending
    for name in names:
        for path in [pathlib.PurePath(name), *pathlib.PurePath(name).parents]:
            for root in ("", "include", "include/railpass"):
                if path.is_relative_to(root):
                    short = path.relative_to(root)
                    known |= {str(short), str(short.with_suffix("")) if short.name else "."}
    firsts = "|".join(sorted({re.escape(path.split("/")[0]) for path in known if "/" in path}))
    path = re.compile(rf"(?<![\w/.<>$}}{{\"*-])(?:{firsts})/[\w./<>*-]*[\w>*]")

    def gone(text, folder="."):
        return [word for word in path.findall(text) if not re.search(r"[<>*]", word)
                and not {word, str(pathlib.PurePath(folder) / word)} & (known | BUILT)]

    assert gone("// lib/none/file.cpp does this, lib/files/files.hpp that; select/none.hpp") == [
        "lib/none/file.cpp", "select/none.hpp"]
    read = [name for name in names if KINDS.search("/" + name) and not name.startswith(PAST)]
    wrong = [f"{name}:{number}: there is no {word}" for name in read if name != "tests/docs/paths.py"
             for number, line in enumerate((TOP / name).read_text().splitlines(), 1)
             for word in gone(line, pathlib.PurePath(name).parent)]
    print("\n".join(wrong) or f"{len(read)} files")
    sys.exit(1 if wrong else 0)


main()
