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
include_patterns = ["docs/**.md", "*.md", "bench/**.md", "examples/**.md", "build/docs/pictures/*.md"]
extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"  # indented blocks are command lines, mostly

html_theme = "furo"
html_title = "railpass"
html_extra_path = [str(TOP / "docs/site/index.html"), str(MADE / "extra")]
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(TOP / "docs/site/scorer.js")
html_show_sphinx = False
html_show_copyright = False


def is_in(page, folder):
    """A page stands in the contents of one folder. Those of docs have its folders and the pages at the top."""
    if folder == "docs":
        return "/" not in page or re.fullmatch("docs/[^/]+/README", page)
    return page.startswith(folder + "/") or "/" in page and not page.startswith("docs/")


def toctree(pages):
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def table_of_contents(docname, text):
    """The links of a folder's README.md are its table of contents, in this order."""
    folder = os.path.dirname(docname)
    pages = []
    for link in re.findall(r"\]\(([^)\s#:]+)\.md\)", text):
        page = os.path.normpath(os.path.join(folder, link))
        if page not in pages and page != root_doc and is_in(page, folder):
            pages.append(page)
    return toctree("README </README>" if page == "README" else "/" + page for page in pages)


def pictures_of_algorithms():
    """A page for each collective, which docs/site/generate.py wrote."""
    pages = sorted(MADE.glob("pictures/*.md"))
    links = ", ".join(f"[{page.stem}](/{page.relative_to(TOP)})" for page in pages)
    return (f"\n\n## Pictures\n\nEach algorithm that sends messages: {links}.\n" +
            toctree(f"/{page.relative_to(TOP).with_suffix('')}" for page in pages))


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
