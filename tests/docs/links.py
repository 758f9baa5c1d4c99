# SPDX-License-Identifier: BSL-1.0
"""Every link of a Markdown page to a file of the repository, or to a heading, leads somewhere, and every
page is in the list of a README.md of docs, from which the site has its contents. Paragraphs are short
enough to be read.

    links.py [FOLDER]    only the links, of documents that were installed there
"""

import pathlib
import re
import subprocess
import sys

INSTALLED = len(sys.argv) > 1
TOP = pathlib.Path(sys.argv[1]).resolve() if INSTALLED else pathlib.Path(__file__).resolve().parents[2]
MOST_WORDS = 120
# What was measured or tried is kept as it was written down.
LONG = ("docs/measurements", "docs/experiments", "bench", "CHANGELOG.md")


def without_code(text):
    text = re.sub(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$", "", text, flags=re.M | re.S)
    return re.sub(r"(`+)(.+?)\1", lambda code: re.sub(r"[\[\]()]", "", code[0]), text)


def anchor(heading):
    """As GitHub names a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(path):
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6} +(.*)$", without_code(path.read_text()), re.M):
        name = anchor(heading)
        found.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return found


def links(text):
    return re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", without_code(text))


def broken(page, link):
    if re.match(r"[a-z]+:", link):
        return None
    path, _, heading = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_relative_to(TOP) or not target.exists():
        return f"there is no {link}"
    if heading and target.suffix == ".md" and heading not in anchors(target):
        return f"{link}: there is no such heading in {target.relative_to(TOP)}"
    return None


def paragraphs(text):
    """Where each begins and its words; lists by their items; no tables, headings and code."""
    lines, start, in_code = [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        begins = re.match(r" *([-*]|\d+\.) ", line)
        ends = in_code or not line.strip() or re.match(r" *(#|\||```|>|    )", line)
        if lines and (ends or begins):
            yield start, " ".join(lines).split()
            lines = []
        if not ends:
            start = start if lines else number
            lines.append(line)


def all_pages():
    if INSTALLED:
        return sorted(TOP.rglob("*.md"))
    tracked = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=TOP,
                             check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    return [TOP / name for name in tracked if (TOP / name).exists()]


def main():
    pages = all_pages()
    listed = {(contents.parent / link).resolve() for contents in (TOP / "docs").rglob("README.md")
              for link in links(contents.read_text())}
    wrong = []
    for page in pages:
        name, text = page.relative_to(TOP), page.read_text()
        for link in links(text):
            what = broken(page, link)
            if what:
                wrong.append(f"{name}: {what}")
        if INSTALLED:
            continue
        if not str(name).startswith(LONG):
            for line, words in paragraphs(text):
                if len(words) > MOST_WORDS:
                    wrong.append(f"{name}:{line}: a paragraph of {len(words)} words, {MOST_WORDS} at most")
        if page not in listed and page != TOP / "docs/README.md":
            wrong.append(f"{name}: no README.md of docs has a link to it")
    print("\n".join(wrong) or f"{len(pages)} pages")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
