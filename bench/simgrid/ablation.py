# SPDX-License-Identifier: BSL-1.0
"""What each rule and each constant of the default policy buys, for bench/regret --ablate.

The sources are copied and every constant of RULED_FILES is made one that the environment halves or
doubles, every rule of RULES one that it switches off. Each of these variants then plays the recorded
cells and the generated worlds with the same seeds as the policy as it is; the difference and its
standard error are over cells (recorded) or worlds.
"""
import concurrent.futures
import json
import math
import os
import re
import subprocess

from machine import Failure, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SELECT = "include/railpass/select/"
RULED_FILES = [SELECT + name for name in ("policy/arm_book.hpp", "policy/policy.hpp", "policy/guard.hpp",
                                          "belief/belief.hpp", "belief/belief_policy.hpp",
                                          "policies/knowledge_gradient.hpp")]
# (rule, file, its text, the text in which WITHOUT switches the rule off)
RULES = [
    ("a pair is a call after its own arm's", "lockstep/leader.hpp", ".after_itself = one.arm",
     ".after_itself = WITHOUT || one.arm"),
    ("an arm's own slow calls count", "policy/arm_book.hpp", "if (mine.slow < least_slow) return 0;",
     "if (WITHOUT || mine.slow < least_slow) return 0;"),
    ("the arm in use is doubted when it becomes slow", "policy/guard.hpp", "one.level_s > slower * one.level_before_s",
     "!WITHOUT && one.level_s > slower * one.level_before_s"),
    ("predictions from times of this machine are used at once", "policy/guard.hpp",
     "arms()[std::size_t(position)].spread <= trusted_spread &&",
     "!WITHOUT && arms()[std::size_t(position)].spread <= trusted_spread &&"),
    ("old contexts need more pairs", "policy/guard.hpp", "return std::min(4.0, double(learnt_at_) / 512);",
     "return WITHOUT ? 1 : std::min(4.0, double(learnt_at_) / 512);"),
    ("a budget for trials", "policy/guard.hpp", "if (price > 0 && price > left_s) return true;",
     "if (!WITHOUT && price > 0 && price > left_s) return true;"),
    ("an arm's calls one after the other", "policy/guard.hpp", "if (explore[k].arm == explore[i].arm) {",
     "if (!WITHOUT && explore[k].arm == explore[i].arm) {"),
    ("arms of an algorithm err together", "belief/belief.hpp", "      if (a.family == b.family)\n",
     "      if (!WITHOUT && a.family == b.family)\n"),
    ("slow calls count in the belief", "belief/belief.hpp", "a.tail = std::log1p(book.tail(a.number));",
     "a.tail = WITHOUT ? 0 : std::log1p(book.tail(a.number));"),
    ("native's slow calls count", "policy/guard.hpp", "(native ? std::log1p(tail(*native)) : 0)",
     "(native && !WITHOUT ? std::log1p(tail(*native)) : 0)"),
    ("changes are looked for", "belief/belief.hpp", "changed_ = (above_ > enough", "changed_ = !WITHOUT && (above_ > enough"),
    ("a bad first sample is an upper bound", "belief/belief.hpp", "!a.doubted && s.arm != incumbent",
     "!WITHOUT && !a.doubted && s.arm != incumbent"),
    ("what nobody expected is the arm's own", "belief/belief.hpp", "own > 0 && w > 0.5) {",
     "!WITHOUT && own > 0 && w > 0.5) {"),
    ("the common offset first", "belief/belief.hpp", "epoch[i].mean - mean(epoch[i].arm) - typical), i);",
     "epoch[i].mean - mean(epoch[i].arm) - (WITHOUT ? 0 : typical)), i);"),
    ("beliefs keep to the samples", "belief/belief.hpp", "    mean = std::max(std::min(mean, most",
     "    if (!WITHOUT) mean = std::max(std::min(mean, most"),
    ("outsiders may come in", "belief/belief_policy.hpp", "if (one == outsiders_.end()) return;",
     "if (WITHOUT || one == outsiders_.end()) return;"),
    ("predictions that do not hold do not count", "belief/belief_policy.hpp",
     "bool predictions_hold() const { return ", "bool predictions_hold() const { return WITHOUT || "),
    ("short calls: only what was measured", "belief/belief_policy.hpp", "if (is_short(best) &&",
     "if (!WITHOUT && is_short(best) &&"),
    ("native measured first where predictions are good", "belief/belief_policy.hpp",
     "if (unmeasured && p.spread", "if (!WITHOUT && unmeasured && p.spread"),
    ("less risk the more were tried", "belief/belief_policy.hpp", "/ (1 + tried / 5);\n  }", "/ (1 + (WITHOUT ? 0 : tried) / 5);\n  }"),
    ("untried arms must be worth the risk", "belief/belief_policy.hpp", "return tried && lead <",
     "return !WITHOUT && tried && lead <"),
    ("short epochs before the first sample", "belief/belief_policy.hpp",
     "if (incumbent_ != native_ && belief_.samples(incumbent_) == 0) return 3;",
     "if (!WITHOUT && incumbent_ != native_ && belief_.samples(incumbent_) == 0) return 3;"),
    ("looks at what became slow", "policies/knowledge_gradient.hpp",
     "    look_at_slowed(now, room, explore);", "    if (!WITHOUT) look_at_slowed(now, room, explore);"),
    ("heavy tails of untried arms", "policies/knowledge_gradient.hpp", "beliefs().samples(a) > 0 ? plain_",
     "WITHOUT || beliefs().samples(a) > 0 ? plain_"),
    ("a limit for slow trials", "policies/knowledge_gradient.hpp",
     "if (d + std::sqrt(v) > largest", "if (!WITHOUT && d + std::sqrt(v) > largest"),
    ("a bad first sample is dear", "policies/knowledge_gradient.hpp", "if (const auto bad = b.bad_first(a))",
     "if (const auto bad = b.bad_first(a); !WITHOUT && bad)"),
    ("the risk in the price of a trial", "policies/knowledge_gradient.hpp",
     "|| b.bad_first(a) ? 0 : risk;", "|| b.bad_first(a) || WITHOUT ? 0 : risk;"),
    ("calls until the reply are used after a change", "policies/knowledge_gradient.hpp",
     "(has_changed() ? now.reply_calls : 0)", "(has_changed() && !WITHOUT ? now.reply_calls : 0)"),
    ("epochs grow where there is little to gain", "policies/knowledge_gradient.hpp",
     "return std::min(longest_length(now), std::max(length,",
     "return WITHOUT ? length : std::min(longest_length(now), std::max(length,"),
    ("looks at arms that nobody looked at for long", "policies/knowledge_gradient.hpp",
     "if (now.calls == 0 || explore.size() >= room) return;",
     "if (WITHOUT || now.calls == 0 || explore.size() >= room) return;"),
    ("each arm is tried once", "policies/knowledge_gradient.hpp",
     "if (double(now.calls) < untried_periods * look_period) return;",
     "if (WITHOUT || double(now.calls) < untried_periods * look_period) return;"),
    ("looks at outsiders", "policies/knowledge_gradient.hpp", "for (const outsider& o : outsiders())\n      consider(",
     "for (const outsider& o : outsiders())\n      if (!WITHOUT) consider("),
    ("traps in the mixture", "belief/belief.hpp", "(first ? trap_share", "(first && !WITHOUT ? trap_share"),
    ("one outlier is not believed", "belief/belief.hpp", "!a.doubted ? outlier_share", "!a.doubted && !WITHOUT ? outlier_share"),
    ("native stays until the lead is clear", "belief/belief_policy.hpp", "native_) >= needed ?",
     "native_) >= (WITHOUT ? 0 : needed) ?"),
]
HEADER = """#pragma once
#include <cstdlib>
#include <string>
#include <string_view>
namespace railpass::select {
inline double ablated(std::string_view name, double value) {
  const char* const said = std::getenv("RAILPASS_ABLATE");
  if (said && said == "half " + std::string(name)) return value / 2;
  if (said && said == "twice " + std::string(name)) return value * 2;
  return value;
}
inline bool without(std::string_view rule) {
  const char* const said = std::getenv("RAILPASS_ABLATE");  // one, or several with ; between
  return said && (";" + std::string(said) + ";").find(";" + std::string(rule) + ";") != std::string::npos;
}
}
#define RAILPASS_WITHOUT(rule) ([]{ static const bool is = railpass::select::without(rule); return is; }())
#define RAILPASS_ABLATED(name, value) \\
  ([]{ static const double is = railpass::select::ablated(name, value); return is; }())
"""
# Numbers that are no choice: halves of sums, signs, guards against division by zero.
NO_CHOICE = {0.0, 0.5, 1.0, 2.0}
NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e-?\d+)?|\d+e-\d+)(?![\w.])")
NAMED = re.compile(r"\b(\w+) = ([^,;{}]+)(?=[,;])")


def ruled_source(path, text, constants):
    """The text of a file with its constants and rules to be switched; adds their names."""
    short, before = path[len(SELECT):], text
    included = '#include "railpass/select/ablation.hpp"\n'
    for rule, file, old, new in RULES:
        if file != short:
            continue
        if text.count(old) != 1:
            raise Failure(f"ablation: {path} has {text.count(old)} of {old!r} for the rule '{rule}'")
        text = text.replace(old, new.replace("WITHOUT", f'RAILPASS_WITHOUT("{rule}")'))
    if path not in RULED_FILES:
        return text if text == before else included + text
    lines, in_constant = [], False
    for number, line in enumerate(text.split("\n"), 1):
        code = line.split("//")[0]
        stem = os.path.basename(short).removesuffix(".hpp")
        if re.search(r"\bconstexpr double\b", code) and "(" not in code.split("=")[0]:
            in_constant = True
            line = re.sub(r"\bstatic constexpr double\b", "static inline const double", line)
            line = re.sub(r"\bconstexpr double\b", "const double", line)
        if in_constant:
            def named(match):
                name = f"{stem}: {match[1]}"
                constants.append(name)
                return f'{match[1]} = RAILPASS_ABLATED("{name}", {match[2]})'
            head, slashes, comment = line.partition("//")
            line = NAMED.sub(named, head) + slashes + comment
            in_constant = ";" not in code
        elif not re.match(r"\s*(//|#|static constexpr|constexpr)", line):
            def plain(match):
                if float(match[1]) in NO_CHOICE or float(match[1]) < 1e-5:
                    return match[0]
                name = f"{stem}: {match[1]} in '{code.strip()[:50]}'".replace('"', "")
                constants.append(name)
                return f'RAILPASS_ABLATED("{name}", {match[1]})'
            # Members have initializers that run for each context: these stay.
            if not re.match(r"\s{2}(double|std::optional<double>|bool) \w+_? = ", line):
                line = NUMBER.sub(plain, code) + line[len(code):]
        lines.append(line)
    return included + "\n".join(lines)


def build(folder):
    """Builds regret_replay and worlds_play of sources that can be switched; returns the names."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], stdout=subprocess.PIPE, text=True, check=True)
    constants = []
    sources = os.path.join(folder, "source")
    for path in listed.stdout.splitlines():
        target = os.path.join(sources, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(os.path.join(ROOT, path), "rb") as file:
            data = file.read()
        if path.startswith(SELECT) and path.endswith(".hpp"):
            data = ruled_source(path, data.decode(), constants).encode()
        with open(target, "wb") as file:
            file.write(data)
    with open(os.path.join(sources, SELECT, "ablation.hpp"), "w") as file:
        file.write(HEADER)
    built = os.path.join(folder, "build")
    run(["cmake", "--preset", "release", "-S", sources, "-B", built], 300)
    run(["cmake", "--build", built, "--target", "regret_replay", "worlds_play"], 1800)
    return os.path.join(built, "bench"), list(dict.fromkeys(constants))


def play(programs, machines, variant, seeds, worlds):
    """Values by row and cell or world: {row: {cell: value}}."""
    environment = dict(os.environ, RAILPASS_ABLATE=variant)
    rows = {}

    def note(row, cell, value):
        rows.setdefault(row, {})[cell] = value

    def output(command):
        ran = subprocess.run([str(c) for c in command], env=environment, stdout=subprocess.PIPE, text=True)
        if ran.returncode:
            raise Failure(f"ablation, {variant}: {command[0]} ended with {ran.returncode}")
        return ran.stdout

    for machine in machines:
        replayed = json.loads(output([os.path.join(programs, "regret_replay"), "default", machine.profile,
                                      machine.samples_only, machine.path_of_cells, seeds, 0.1]))
        for r in replayed["results"]:
            note(f"{r['policy'].removeprefix('default, ')[:28]} {r['calls']}",
                 (machine.name, r["collective"], r["bytes"]), 100 * r["ratio_to_best_arm"])
        for r in replayed["recovery"]:
            calls = [3000 if c is None else c for c in r["calls_in_use"]]
            note(f"calls / 30 after '{r['change']}'", (machine.name, r["collective"], r["bytes"]),
                 sum(calls) / len(calls) / 30)
    played = output([os.path.join(programs, "worlds_play"), "default", 1, worlds, 1, 3])
    for line in played.splitlines():
        world = json.loads(line)
        note("worlds: time", world["seed"], 100 / world["gain"])
        note("worlds: beyond a bound", world["seed"],
             100 * (world["excess"] > world["allowed"]
                    or world["settled_within"] > world["settled_allowed"]))
    return rows


def difference(before, after):
    """Mean and standard error of the difference, over the cells or worlds."""
    apart = [after[k] - before[k] for k in before if k in after]
    mean = sum(apart) / len(apart)
    spread = sum((a - mean) ** 2 for a in apart) / max(1, len(apart) - 1)
    return mean, math.sqrt(spread / len(apart))


def ablate(machines, folder, seeds, worlds):
    """Prints a line per variant: what it costs, in percent, and its standard error; [{...}]."""
    programs, constants = build(folder)
    variants = [rule for rule, *_ in RULES]
    variants += [f"{by} {name}" for name in constants for by in ("half", "twice")]
    before = play(programs, machines, "", seeds, worlds)
    print(f"{len(RULES)} rules, {len(constants)} constants; what leaving out, halving and doubling costs "
          "in % of the best arm's time (recorded cells) or of native's (worlds), and the standard error; "
          "rows of at least 0.2 % and two standard errors")
    found = []
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for variant, rows in zip(variants, pool.map(
                lambda v: play(programs, machines, v, seeds, worlds), variants)):
            costs = {row: difference(before[row], rows[row]) for row in before}
            found.append({"variant": variant, "costs": costs})
            marked = [f"{row} {mean:+.2f} ({error:.2f})" for row, (mean, error) in costs.items()
                      if abs(mean) >= 0.2 and abs(mean) > 2 * error]
            print(f"{variant}: " + ("; ".join(marked) or "nothing"), flush=True)
    return found
