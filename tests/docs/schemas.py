# SPDX-License-Identifier: BSL-1.0
"""The schemas of docs/reference/schemas hold of what railpass writes, and of nothing that has a field
more or one less.

    schemas.py PROGRAM PRELOAD_LIBRARY MPIEXEC
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print("SKIPPED: needs python3-jsonschema")
    sys.exit(77)

PROGRAM, PRELOAD, MPIEXEC = sys.argv[1:]
TOP = Path(__file__).resolve().parents[2]
SCHEMAS = TOP / "docs/reference/schemas"
CALLS = """
from mpi4py import MPI
import numpy
one, other = numpy.ones(1000), numpy.empty(1000)
for _ in range(200):
    MPI.COMM_WORLD.Allreduce(one, other)
"""


def run(*command, **settings):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **settings})
    if done.returncode != 0:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}")


def written(folder):
    """One file of each kind, and those that the repository keeps."""
    ranks = (MPIEXEC, "-n", "2", PROGRAM)
    run(*ranks, "sample", "--budget", "5s", "--collectives", "broadcast", "--json", folder / "samples.json")
    run(*ranks, "bench", "--collectives", "broadcast", "--bytes", "1KiB", "--arms", "native,tuned,binomial",
        "--learning", "20", "--budget", "1s", "--json", folder / "bench.json")
    run(PROGRAM, "bench", "--launches", "2", "-n", "2", "--launcher", MPIEXEC, "--collectives", "broadcast", "--bytes",
        "1KiB", "--arms", "native,tuned", "--budget", "0.5s", "--json", folder / "launches.json")
    run(PROGRAM, "compare", "--repetitions", "1", "--json", folder / "compare.json", "--", MPIEXEC, "-n", "2", "true")
    run(PROGRAM, "fit", folder / "samples.json", folder / "bench.json", "-o", folder / "profile.json")
    run(*ranks, "rails", "--bytes", "64KiB", "--budget", "0.3s", RAILPASS_RAILS="127.0.0.2,127.0.0.3",
        RAILPASS_RAILS_PROFILE=str(folder / "rails.json"))
    run(MPIEXEC, "-n", "2", "/usr/bin/python3", "-c", CALLS, LD_PRELOAD=PRELOAD, RAILPASS_ALL_RANKS="1",
        RAILPASS_RAILS="127.0.0.2,127.0.0.3", RAILPASS_STATS=str(folder / "statistics.json"),
        RAILPASS_KNOWLEDGE=str(folder / "store"))
    run(PROGRAM, "knowledge", "export", "--store", folder / "store", "-o", folder / "knowledge.json")
    run(PROGRAM, "freeze", folder / "bench.json", "-o", folder / "plan.json")
    return (sorted(folder.glob("*.json")) + sorted((TOP / "tests/data").glob("*.json")) +
            [TOP / "lib/files/advisories.json", *(TOP / "tests/fuzz/advisories").glob("*.json")])


def refuses(schema, document):
    try:
        jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    except jsonschema.ValidationError:
        return True
    return False


def main():
    schemas = {path.stem: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        for path in written(Path(folder)):
            document = json.loads(path.read_text())
            kind = document["format"].removeprefix("railpass ")
            seen.add(kind)
            error = next(jsonschema.Draft202012Validator(schemas[kind]).iter_errors(document), None)
            if error:
                sys.exit(f"{path.name}: {error.json_path}: {error.message}; "
                         f"docs/reference/schemas/{kind}.json says otherwise")
            more = {**document, "something_else": 1}
            less = copy.deepcopy(document)
            del less["version"]
            assert refuses(schemas[kind], more) and refuses(schemas[kind], less), kind
    assert seen == set(schemas), f"files of {sorted(seen)}, schemas of {sorted(schemas)}"
    print(f"{len(schemas)} schemas")


main()
