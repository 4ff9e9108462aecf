"""scripts/mutate --meaning: draws mutants, tries them, and records which check noticed each."""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import time

import meaning
import schemata
import trials

HEADINGS = {
    "killers.tsv": "# What noticed each mutant of meaning: file, function, line of source, change, check (kind, program, test). "
                   "scripts/mutate --meaning writes it.",
    "equivalents.tsv": "# Mutants of meaning that no check can notice, each with the reason: file, function, line of source, change, "
                       "reason. scripts/mutate --meaning reads it.",
}


def rows_of(path):
    if not path.is_file():
        return {}
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {tuple(row[:4]): row[4] for row in rows}


class Table:
    """A table of killers, sorted by file. Each new row is written at once, and rows that another run has added stay."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.rows = rows_of(path)

    def note(self, key, value):
        with self.lock:
            self.rows = rows_of(self.path)
            self.rows[key] = value
            self.write()

    def forget(self, known):
        """
        Drops the rows of mutants that no longer exist. Of a file without any mutant, nothing is known: clang may lack a header here.
        The rows of a file that is gone are reported by scripts/check_mutants.
        """
        files = {key[0] for key in known}
        stale = [key for key in self.rows if key not in known and key[0] in files]
        for key in stale:
            del self.rows[key]
        if stale:
            self.write()

    def write(self):
        text = "\n".join([HEADINGS[self.path.name], *("\t".join((*k, v)) for k, v in sorted(self.rows.items()))])
        self.path.with_suffix(".new").write_text(text + "\n")
        self.path.with_suffix(".new").replace(self.path)


def find_all(root, jobs):
    """Returns all mutants. If no source and no header has changed, they come from a cache."""
    digest = hashlib.sha256()
    for path in [*sorted(root.glob("lib/*/*/*.[ch]")), *sorted(root.glob("include/weir/**/*.h")), pathlib.Path(meaning.__file__)]:
        digest.update(path.read_bytes())
    cache = root / "build" / "meaning.found"
    if cache.is_file():
        known, found = pickle.loads(cache.read_bytes())
        if known == digest.hexdigest():
            return found
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        found = [m for those in pool.map(mutants_of, [(root, file) for file in meaning.sources_of(root)]) for m in those]
    cache.parent.mkdir(exist_ok=True)
    cache.write_bytes(pickle.dumps((digest.hexdigest(), found)))
    return found


def changed_lines(root, commit):
    """Returns, for each file of lib/ and each public header, the numbers of its lines that `commit` does not have."""
    text = subprocess.run(["git", "diff", "-U0", "--no-color", "--no-ext-diff", commit, "--", "lib", "include"], cwd=root, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    lines, file = collections.defaultdict(set), None
    for line in text.splitlines():
        name = re.match(r"\+\+\+ b/(.+)", line)
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if name:
            file = name[1]
        elif hunk:
            lines[file].update(range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1)))
    return lines


def mutants_of(root_and_file):
    root, file = root_and_file
    return list(meaning.all_mutants(root, [file]))


def check_named(text):
    words = text.removesuffix(trials.OUT_OF_TIME).split()
    return trials.Check(words[0], words[1], words[2] if len(words) > 2 else "") if len(words) >= 2 else None


def description(m):
    return f"{m.file}:{m.line}: {m.function}: {m.change}"


class Campaign:
    def __init__(self, root, options):
        self.root, self.options = root, options
        self.killers = Table(root / "tests" / "mutants" / "killers.tsv")
        self.explained = rows_of(root / "tests" / "mutants" / "equivalents.tsv")
        every = find_all(root, options.jobs)
        if options.since:
            lines = changed_lines(root, options.since)
            drawn = [m for m in every if m.line in lines[m.file]]
        else:
            drawn = meaning.sample(every, options.seed, options.count, options.least, {*self.killers.rows, *self.explained})
        # All that are drawn are compiled, so that runs of several layers share a build. Runs of named programs are of one layer, and short.
        self.drawn = [m for m in drawn if not options.program or self.is_asked_for(m)]
        self.total = len(every)
        self.known = {meaning.key_of(m) for m in every}
        self.result = {}

    def is_asked_for(self, m):
        options = self.options
        return ((not options.layer or m.layer in options.layer)
                and (not options.only or any(text in f"{description(m)}: {m.text}" for text in options.only)))

    def is_chosen(self, m):
        key, options = meaning.key_of(m), self.options
        return (self.is_asked_for(m)
                and not (options.owed and (key in self.killers.rows or key in self.explained))
                and not (options.killed and key not in self.killers.rows)
                and not (options.explained and key not in self.explained))

    def run(self):
        chosen = [m for m in self.drawn if self.is_chosen(m)]
        if self.options.list:
            print("".join(f"{description(m)}\n" for m in chosen), end="")
            return 0
        if self.options.table:
            return self.summary([])
        self.killers.forget(self.known)  # Only a run that tries mutants writes: to list is to read.
        numbers = meaning.numbered(self.drawn)
        copy = schemata.Copy(self.root, self.drawn, numbers)
        kinds = [kind for kind in trials.KINDS if kind in (self.options.by or trials.KINDS)]
        builds = ["plain", *(["asan"] if "asan" in kinds else [])]
        for build in builds:
            say(f"{len(copy.mutants)} mutants: building {copy.folder(build)}")
            copy.build(build, kinds, self.options.program)
        out = {meaning.key_of(m) for m in copy.left_out}
        for m in copy.left_out:
            say(f"  does not compile: {description(m)}")
        self.trials = trials.Trials(copy, trials.Programs(copy, builds, kinds, self.options.program), self.options.jobs, say)
        self.trials.record([kind for kind in kinds if kind != "asan"])
        for m in chosen:
            if meaning.key_of(m) in out:
                self.result[meaning.key_of(m)] = "not compiled"
        left = [m for m in chosen if meaning.key_of(m) not in out]
        for group in [[k for k in kinds if k in those] for those in (("unit", "example"), ("asan",), ("model", "stress"))]:
            if group:
                left = self.pass_over(left, group, numbers)
                self.write_survivors(left, numbers)
        return self.summary(chosen)

    def pass_over(self, mutants, kinds, numbers):
        """Tries the mutants with checks of these kinds. Returns the mutants that none of them notices."""
        left, done = [], 0
        for m in mutants:
            killer = self.killers.rows.get(meaning.key_of(m))
            for test in [check_named(killer)] if killer else []:
                self.trials.noticed[m.file, m.function][test] += 1
                self.trials.noticed[m.file, ""][test] += 1

        def one(m):
            key = meaning.key_of(m)
            known = self.killers.rows.get(key)
            remembered = check_named(known) if known else None
            killer, asked = self.trials.killer(m, numbers[key], kinds, remembered, self.options.budget)
            if killer is not None and killer != known:
                self.killers.note(key, killer)
            return killer, asked

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for m, (killer, asked) in zip(mutants, pool.map(one, mutants)):
                done += 1
                if killer is None:
                    left.append(m)
                else:
                    self.result[meaning.key_of(m)] = killer
                say(f"[{'+'.join(kinds)} {done}/{len(mutants)}] {killer or f'passes {asked}'}: {description(m)}")
        return left

    def write_survivors(self, left, numbers):
        """Writes build/meaning.survivors: the survivors that equivalents.tsv does not explain, with the checks that reach them."""
        lines = []
        for m in left:
            if meaning.key_of(m) in self.explained:
                continue
            programs = collections.Counter(f"{c.kind} {c.program}" for c in self.trials.by_mutant[numbers[meaning.key_of(m)]])
            lines.append("\t".join((m.layer, f"{m.file}:{m.line}", m.function, m.change, m.text,
                                    "; ".join(f"{name} ({count})" for name, count in programs.most_common(6)) or "NOT REACHED")))
        (self.root / "build" / "meaning.survivors").write_text("\n".join(lines) + "\n")

    def summary(self, chosen):
        table = collections.defaultdict(collections.Counter)
        survived, stale = [], []
        tried = {meaning.key_of(m) for m in chosen}
        for m in self.drawn if self.options.owed or self.options.table else chosen:
            key = meaning.key_of(m)
            if not self.is_asked_for(m):
                continue
            # The table has the results of the mutants that were not tried again.
            result = self.result.get(key) if key in tried else self.killers.rows.get(key)
            if result == "not compiled":
                table[m.layer]["not compiled"] += 1
                continue
            table[m.layer]["tried"] += 1
            if result is not None:
                table[m.layer]["killed"] += 1
                if key in self.explained:
                    stale.append(m)
            elif key in self.explained:
                table[m.layer]["equivalent"] += 1
            else:
                table[m.layer]["survived"] += 1
                survived.append(m)
        for m in survived:
            print(f"SURVIVED {description(m)}")
        for m in stale:
            print(f"KILLED, though equivalents.tsv explains it: {description(m)}")
        columns = ("tried", "killed", "equivalent", "survived", "not compiled")
        print("| layer | tried | killed | equivalent | survived | not compiled |\n|---|---:|---:|---:|---:|---:|")
        sums = collections.Counter()
        for layer, counts in sorted(table.items()):
            print(f"| {layer} | " + " | ".join(str(counts[c]) for c in columns) + " |")
            sums.update(counts)
        print("| all | " + " | ".join(str(sums[c]) for c in columns) + " |")
        different = sums["tried"] - sums["equivalent"]
        share = 100 * sums["killed"] / max(different, 1)
        drawn = f"lines changed since {self.options.since}" if self.options.since else f"seed {self.options.seed}"
        print(f"{drawn}, drawn from {self.total} mutants: {share:.1f} % of those that change something are killed")
        return 1 if survived or stale else 0


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def main(root, words):
    parser = argparse.ArgumentParser(prog="mutate --meaning")
    parser.add_argument("--count", type=int, default=1000, help="how many mutants are drawn, from each layer in proportion to its mutants")
    parser.add_argument("--least", type=int, default=40, help="the least number that is drawn from each layer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[],
                        help="only those of the drawn mutants that have this text in their description or line")
    parser.add_argument("--layer", action="append", default=[], help="a folder of sources, relative to lib/")
    parser.add_argument("--since", metavar="COMMIT", help="draw all mutants of the lines that changed since COMMIT, and no others")
    parser.add_argument("--program", action="append", default=[],
                        help="build and run only the tests, examples, model programs and stress scenarios of these names, and compile only the "
                             "mutants that are asked for")
    parser.add_argument("--by", action="append", choices=trials.KINDS, help="only checks of this kind; may be repeated")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--budget", type=float, default=25,
                        help="for each mutant, run only as many unit tests as together take this many seconds without a mutant")
    parser.add_argument("--owed", action="store_true", help="only mutants that neither table has")
    parser.add_argument("--killed", action="store_true", help="only mutants that killers.tsv has")
    parser.add_argument("--explained", action="store_true", help="only mutants that equivalents.tsv has")
    parser.add_argument("--table", action="store_true", help="try no mutant, and print what the tables say of the drawn ones")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(words)
    return Campaign(pathlib.Path(root), options).run()
