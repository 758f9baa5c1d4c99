# SPDX-License-Identifier: BSL-1.0
"""No message that a user can see has a word of the code's own, or a pronoun or clause as its subject."""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
# All that ends in programs: errors, warnings, records, help, tables, pages, and what the examples print.
FOLDERS = ("collectives", "examples", "include", "lib", "models")
# A title of a table that programs read, too.
TITLES = {"what matters"}
# A word of the code, and the word that users know.
OWN_WORDS = {
    r"settle[sd]?": "choose, converge",
    r"meetings?|duels?": "paired trial",
    r"merges": "syncs of statistics",
    r"lanes?|bases?": "channel, internal communicator",
    r"cells?": "shared memory",
    r"native for good": "falls back to the MPI library",
    r"(?:is|are) (?:thought|believed|taken) to": "is estimated to",
    r"skew|lateness": "arrival imbalance",
    r"nobody|so often|so much longer|so many": "the thing that is counted",
    r"brought together|brings? together": "join",
    r"one another|the others?(?! \w)|(?:the )?other ones?": "the noun",
    r"(?:is|are) none|none of (?:it|them|those)|that there (?:is|are) not": "no NOUN, or: does not exist",
}
# At the beginning of a message, or of a part of it; and pronouns at the beginning of a clause in it.
SUBJECTS = r"(?:it|that|those|they|none|what|who|whoever)"
CLAUSES = (r"(?:, |\b)(?:and|but|or|as|because|if|when|where|while|until|unless|since|before|after|whether|than) "
           r"(?:it|they|those|none|that (?:is|are|was|were|has|had|does|did|can|cannot))|, (?:it|they|none|this is)")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
TOKENS = re.compile(rf"//[^\n]*|/\*.*?\*/|R\"(\w*)\((.*?)\)\1\"|{LITERAL}|'(?:[^'\\]|\\.)+'", re.S)
LEAST_WORDS = 2


def messages(text):
    """Line and text of each message: literals that follow one another or are joined by +, where {} stands for a value."""
    found, end = [], -1
    for token in TOKENS.finditer(text):
        if token[0][0] in "/'":
            continue
        literal = token[2] if token[0].startswith("R") else token[0][1:-1].replace("\\n", "\n").replace('\\"', '"')
        between = text[end:token.start()] if found else ";"
        if re.fullmatch(r"\s*", between):
            found[-1][1] += literal
        elif re.fullmatch(r"\s*\+[^;\"]{0,80}\+\s*", between):
            found[-1][1] += "{}" + literal
        else:
            found.append([text.count("\n", 0, token.start()) + 1, literal])
        end = token.end()
    return [(line, message) for line, message in found
            if len(message.split()) >= LEAST_WORDS and message not in TITLES and "doi:" not in message]


def problems(message):
    for own, known in OWN_WORDS.items():
        if found := re.search(rf"(?<![\w-])(?:{own})(?![\w-])", message, re.I):
            yield f"'{found[0]}' is a word of the code; say: {known}"
    if found := re.search(rf"(?:^|[.:;] |\) ){SUBJECTS} [a-z]+", message.strip(" '"), re.I):
        yield f"'{found[0].strip(' .:;)')}': the subject must be a noun"
    if found := re.search(rf"(?:{CLAUSES}) [a-z]+", message, re.I):
        yield f"'{found[0].strip(' ,')}': the subject must be a noun"


def main():
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=TOP, capture_output=True, text=True, check=True)
    count, wrong = 0, 0
    for name in listed.stdout.split():
        if not re.search(r"\.(cpp|hpp|def|c|h|js)$", name):
            continue
        for line, message in messages((TOP / name).read_text()):
            count += 1
            for problem in problems(message):
                wrong += 1
                print(f"{name}:{line}: {problem}\n    {message.strip()[:160]!r}")
    print(f"{count} messages, {wrong} problems")
    return wrong > 0 or count == 0


if __name__ == "__main__":
    sys.exit(main())
