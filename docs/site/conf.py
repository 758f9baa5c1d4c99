# SPDX-License-Identifier: BSL-1.0
"""How Sphinx makes the site of the Markdown that GitHub shows as it is. The source folder is the
repository, so that links between its pages are the same in both; docs/build calls it."""

import os
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
MADE = TOP / "build/docs"  # what docs/build makes beside the pages: pictures of schedules, Doxygen's pages

project = "railpass"
author = "the authors of railpass"
root_doc = "docs/README"
include_patterns = ["docs/**.md", "*.md", "bench/**.md", "examples/**.md"]
exclude_patterns = ["build", ".git", "install"]
extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"  # indented blocks are command lines, mostly

html_theme = "furo"
html_title = "railpass"
html_extra_path = [str(TOP / "docs/site/index.html"), str(MADE / "extra")]
html_theme_options = {"navigation_with_keys": True}
html_show_sphinx = False
html_show_copyright = False


def table_of_contents(docname, text):
    """The links of a folder's README.md are its table of contents, in this order."""
    here = pathlib.PurePosixPath(docname).parent
    pages = []
    for link in re.findall(r"\]\(([^)\s#:]+)\.md\)", text):
        page = os.path.normpath(here / link)
        if page not in pages and page != root_doc:
            pages.append(page)
    entries = "\n".join("/" + page for page in pages)
    return f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def pictures_of_algorithms():
    """One picture for each file that docs/site/generate.py drew."""
    text = "\n\n## Pictures\n\nEach algorithm with 8 ranks, one on each node, and 64 KiB, by generic constants.\n"
    last = None
    for path in sorted(MADE.glob("pictures/*.svg")):
        collective, algorithm = path.stem.split(".")
        if collective != last:
            text += f"\n### {collective}\n"
            last = collective
        target = os.path.relpath(path, TOP)
        text += f"\n**{algorithm}**\n\n![timeline of {collective} by {algorithm}](/{target})\n"
    return text


def complete(app, docname, source):
    """Adds what only the site has."""
    if docname.startswith("docs/") and docname.endswith("/README"):
        source[0] += table_of_contents(docname, source[0])
    if docname == "docs/reference/algorithms":
        source[0] += pictures_of_algorithms()
    if docname == "docs/reference/api":
        source[0] += ('\n\n<p>All declarations and what they promise: <a href="../../api/files.html">by header</a>, '
                      '<a href="../../api/annotated.html">classes</a>.</p>\n')


def setup(app):
    app.connect("source-read", complete)
