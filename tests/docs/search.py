# SPDX-License-Identifier: BSL-1.0
"""Questions in users' words lead to the one page that answers each: that page is the first one that the
search of the site finds. As there (docs/site/scorer.js), a page is found if it has all words, words of headings count
three times as much as others, and endings do not matter."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("docs/**/*.md", "*.md", "bench/**/*.md", "examples/**/*.md")  # as docs/site/conf.py
QUESTIONS = {
    "does it work with Cray MPICH": "docs/questions/mpi_libraries.md",
    "MVAPICH": "docs/questions/mpi_libraries.md",
    "HPC-X": "docs/questions/mpi_libraries.md",
    "MPI_Ibcast": "docs/questions/nonblocking.md",
    "are nonblocking collectives tuned": "docs/questions/nonblocking.md",
    "bitwise reproducible from run to run": "docs/questions/reproducible.md",
    "last bits of sums": "docs/questions/reproducible.md",
    "CUDA-aware MPI": "docs/questions/cuda_aware.md",
    "GPU buffers": "docs/questions/cuda_aware.md",
    "how much memory per rank": "docs/questions/memory.md",
    "memory use": "docs/questions/memory.md",
    "share what was learnt with colleagues": "docs/questions/share.md",
    "share knowledge with colleagues": "docs/questions/share.md",
    "why is an 8-byte all_reduce slower": "docs/questions/short_calls.md",
    "MPI_Allreduce of 8 bytes is slower": "docs/questions/short_calls.md",
    "switch off": "docs/questions/switch_off.md",
    "switch off for one call": "docs/questions/switch_off.md",
    "switching railpass off for a site": "docs/questions/switch_off.md",
    "switch off for a user": "docs/questions/switch_off.md",
    "switch railpass off for a run": "docs/questions/switch_off.md",
    "disable railpass": "docs/questions/switch_off.md",
    "how to uninstall": "docs/questions/uninstall.md",
    "uninstalling railpass": "docs/questions/uninstall.md",
    "how to remove railpass": "docs/questions/uninstall.md",
    "containers": "docs/how_to/containers.md",
    "Docker": "docs/how_to/containers.md",
    "Singularity": "docs/how_to/containers.md",
    "characterise a cluster": "docs/how_to/characterise.md",
    "Open MPI rules": "docs/questions/open_mpi_rules.md",
    "MPICH selection file": "docs/how_to/ship_rules.md",
    "write a rules file for Open MPI": "docs/how_to/ship_rules.md",
    "programs built with sanitizers": "docs/questions/sanitizers.md",
    "AddressSanitizer": "docs/questions/sanitizers.md",
    "administrators": "docs/how_to/administrators.md",
    "risks": "docs/how_to/administrators.md",
}
# As Sphinx.
LEFT_OUT = set("a an and are as at be but by for if in into is it near no not of on or such that the "
               "their then there these they this to was will with".split())


def words_of(text):
    """Without endings; a word with a hyphen counts by its parts."""
    words = [word for word in re.findall(r"[a-z0-9_]+", text.lower()) if not word.isdigit()]
    return {re.sub(r"(?<=\w{3})(?:ers?|ings?|es|ed|s|e|ly)$", "", word) for word in words} - LEFT_OUT


def indexed(path):
    text = re.sub(r"\]\([^)]*\)", "]", path.read_text())
    return words_of("\n".join(re.findall(r"^#+ (.*)$", text, re.M))), words_of(text)


def main():
    pages = {str(path.relative_to(TOP)): indexed(path)
             for pattern in PAGES for path in TOP.glob(pattern)}
    wrong = []
    for question, answer in QUESTIONS.items():
        asked = words_of(question)
        scores = {page: sum(15 if word in headings else 5 for word in asked)
                  for page, (headings, text) in pages.items() if asked <= text}
        first = {page for page in scores if scores[page] == max(scores.values())}
        if answer not in first:
            wrong.append(f"'{question}': expected {answer}, found {', '.join(sorted(first)) or 'nothing'}")
        elif len(first) > 1:
            wrong.append(f"'{question}': found beside {answer}: {', '.join(sorted(first - {answer}))}")
    print("\n".join(wrong) or f"{len(QUESTIONS)} questions are answered")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
