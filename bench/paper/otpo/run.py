# SPDX-License-Identifier: BSL-1.0
"""Table 2 of the OTPO paper with Open MPI over emulated hosts: the best parameters of a broadcast,
by brute force as OTPO finds them and by railpass tune's own search, at equal repetitions.

    python3 bench/paper/otpo/run.py [--build build/release] [--output FOLDER]

Needs root (bench/cluster) and Open MPI 4.1. Writes exhaustive.json, model.json and tables.md into
the folder; an interrupted run goes on with the journals there.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLUSTER = [sys.executable, str(HERE.parents[1] / "cluster"), "--name", "otpo"]
NETWORK = ["--hosts", "4", "--rate", "200mbit"]
MESSAGE_BYTES = "262144"
SEARCHES = ("model", "exhaustive")


def write_rules(folder):
    """One file of rules for each algorithm and segment size."""
    folder.mkdir(parents=True, exist_ok=True)
    for algorithm in (1, 3, 4, 5, 6):
        for segment in (0, 2048, 4096, 8192, 16384, 32768):
            # 1 collective: number 7, broadcast; 1 number of ranks: any from 2 on; 1 size: any from
            # 0 on; algorithm, fan-out as usual, segment size
            rules = f"1\n7\n1\n2\n1\n0 {algorithm} 0 {segment}\n"
            (folder / f"broadcast_{algorithm}_{segment}.conf").write_text(rules)


def tune(arguments, search, output):
    parameters = output / "parameters.conf"
    text = (HERE / "parameters.conf").read_text().replace("RULES", str(output / "rules"))
    parameters.write_text(text)
    benchmark = [str(arguments.build / "bench" / "paper_otpo_broadcast"), MESSAGE_BYTES]
    command = shlex.join([*CLUSTER, "run", *NETWORK, "--timeout", "20", "--", *benchmark])
    result = output / f"{search}.json"
    begin = time.monotonic()
    subprocess.run([str(arguments.build / "lib" / "cli" / "railpass"), "tune", str(parameters), "--target", "openmpi", "--command",
                    command, "--extract", "broadcast: ([0-9.]+)", "--search", search, "--repetitions",
                    str(arguments.repetitions), "--timeout", "30s", "--resolution", "1.5",
                    "--journal", str(output / f"{search}.journal"), "--json", str(result),
                    "--html", str(output / f"{search}.html")], check=True)
    return json.loads(result.read_text()), time.monotonic() - begin


def combination(settings):
    """The words of a combination that vary, for people."""
    rules = Path(settings["coll_tuned_dynamic_rules_filename"]).stem.split("_")
    names = {"1": "linear", "3": "pipeline", "4": "split binary", "5": "binary", "6": "binomial"}
    return (names[rules[1]], int(rules[2]), int(settings["btl_tcp_eager_limit"]),
            int(settings["btl_tcp_max_send_size"]))


def table(title, found):
    lines = [f"**{title}**: {found['runs']} launches, {found['spent_s'] / 60:.1f} minutes", "",
             "| time of the broadcast | combinations | the first of them |", "|---|---|---|"]
    for group in found["groups"][:6]:
        algorithm, segment, eager, fragment = combination(group["combinations"][0])
        lines.append(f"| {group['value'] / 1e3:.2f} ms | {group['count']} | {algorithm}, segments "
                     f"{segment}, eager limit {eager}, fragments {fragment} |")
    return lines + [""]


def report(results):
    winners = {name: {combination(c) for c in found["groups"][0]["combinations"]}
               for name, found in results.items()}
    values = [g["value"] for g in results["exhaustive"]["groups"]]
    size = sum(g["count"] for g in results["exhaustive"]["groups"])
    both = winners["exhaustive"] & winners["model"]
    lines = table("Brute force", results["exhaustive"]) + table("Model", results["model"])
    lines += [f"{size} combinations; the worst group is {values[-1] / values[0]:.1f} times as slow as "
              f"the best. Best group by brute force: {len(winners['exhaustive'])} combinations "
              f"({100 * len(winners['exhaustive']) / size:.1f} % of the space), by the model "
              f"{len(winners['model'])}, in both {len(both)}. Launches: "
              f"{results['model']['runs'] / results['exhaustive']['runs']:.2f} of those of brute "
              "force."]
    for name, found in results.items():
        best = found["recommended"]
        lines.append(f"{name}: {found['finding']}" + (f" Recommended: {combination(best)}." if best else ""))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: Path(p).resolve(),
                        default=Path("build/release").resolve())
    parser.add_argument("--output", type=lambda p: Path(p).resolve(), default=Path("otpo").resolve())
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=SEARCHES)
    arguments = parser.parse_args()
    write_rules(arguments.output / "rules")
    up = subprocess.run([*CLUSTER, "up", *NETWORK])
    if up.returncode != 0:
        sys.exit(up.returncode)
    try:
        for search in arguments.searches:
            tune(arguments, search, arguments.output)
    finally:
        subprocess.run([*CLUSTER, "down"], check=True)
    results = {}
    for search in SEARCHES:
        path = arguments.output / f"{search}.json"
        if path.exists():
            results[search] = json.loads(path.read_text())
    if len(results) == len(SEARCHES):
        text = report(results)
        (arguments.output / "tables.md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
