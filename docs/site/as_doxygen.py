# SPDX-License-Identifier: BSL-1.0
"""Doxygen's filter of headers: the comment at a header's top, which is Markdown, is what the list of files says of it."""

import pathlib
import re
import sys


def filtered(path):
    text = path.read_text()
    if text.startswith("/* SPDX"):
        return re.sub(r"^/\* SPDX.*", "/** @file", text, count=1)
    head = re.match(r"(?://.*\n)*", text)[0]
    if head.count("\n") == 1:  # a header of one call
        return f"/// @file\n/// The tuned call `railpass::{path.stem}`.\n" + text[len(head):]
    lines = [re.sub("^//", "///", line) for line in head.splitlines()[1:]]
    return "\n".join(["/// @file", *lines]) + "\n" + text[len(head):]


sys.stdout.write(filtered(pathlib.Path(sys.argv[1])))
