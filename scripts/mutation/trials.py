"""Finds which checks reach a mutant, and which of them notices it."""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import threading

import limits
from counted import counted

# test: a test of a unit test program, or a scope; "": the whole program.
Check = collections.namedtuple("Check", "kind program test")

KINDS = ("unit", "example", "asan", "model", "stress")  # In the order in which they are tried.
TIMES = 10  # A check runs out of time after so many times the time that it takes without a mutant,
SPARE = 4  # and so many seconds more.
SANITIZED = 6  # A check takes so many times as long under a sanitizer.
SIZE = 65536
OUT_OF_TIME = "out of time"
STRESS_SECONDS = "1"
LOOK = "300"  # The executions of each search of the model checker.

ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1:"
                    "hard_rss_limit_mb=4000",
    "UBSAN_OPTIONS": "print_stacktrace=0",
    "MALLOC_PERTURB_": "165",  # Memory that was freed or never written does not read as 0.
    "WEIR_MODEL_FIRST": LOOK,
}

Outcome = collections.namedtuple("Outcome", "failed seconds wall")  # failed: None, or how in a word or two.


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, environment, seconds, patience, folder):
    """
    Runs a command to its end or its first failure, and ends the processes that it leaves. `patience`: for so many seconds it may be
    idle. On a busy machine it does not count as idle.
    """
    limited = ["sh", "-c", 'ulimit -c 0; ulimit -St "$0"; ulimit -Ht $(($0 + 3)); exec "$@"', str(int(seconds) + 1), *command]
    begun = resource_clock()
    process = subprocess.Popen(limited, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               errors="replace", start_new_session=True, cwd=folder,
                               env={**os.environ, **ENVIRONMENT, "TMPDIR": folder, **environment})
    guard = limits.Guard(process, seconds, patience)
    failed = None
    size = 0
    for line in process.stdout:
        size += len(line)
        if re.match(r"FAIL(ED)? ", line):
            failed = "failed " + line.split()[1].rstrip(":")
            break
        if size > 1 << 26:
            failed = "failed"
            break
    if failed is not None:
        end_group(process)
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    guard.stop()
    process.returncode = os.waitstatus_to_exitcode(status)
    end_group(process)
    spent = usage.ru_utime + usage.ru_stime
    if guard.why is not None or process.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and failed is None:
        failed = OUT_OF_TIME
    elif failed is not None and "took" in failed:
        failed = OUT_OF_TIME
    elif failed is None and process.returncode != 0:
        failed = "ended"
    return Outcome(failed, spent, resource_clock() - begun)


def resource_clock():
    return os.times().elapsed


class Programs:
    """All checks of the builds, or only those of the named programs, and the commands that run them."""

    def __init__(self, copy, builds, kinds, only=()):
        self.copy, self.kinds, self.only = copy, kinds, only
        self.commands = {}
        suites = [("unit", "plain", "unit"), ("asan", "asan", "unit"), ("example", "plain", "example"), ("model", "plain", "model")]
        for kind, build, suite in suites:
            if build in builds:
                for name, command in copy.tests(build, suite).items():
                    if only and name not in only:
                        continue
                    if open(command[0], "rb").read(2) != b"#!" and not name.startswith("treiber"):
                        self.commands[kind, name] = command
        self.stress = copy.folder("plain") / "stress" / "weir-stress"

    def command(self, check):
        if check.kind == "stress":
            return [str(self.stress), "--scenario", check.program, "--duration", STRESS_SECONDS, "--seed", "1"]
        command = self.commands[check.kind, check.program]
        if check.kind in ("unit", "asan"):
            return [*command, "--filter", check.test]
        return [*command, *([check.test] if check.test else [])]

    def all(self):
        for (kind, name), command in sorted(self.commands.items(), key=lambda item: KINDS.index(item[0][0])):
            if kind == "unit":
                listing = subprocess.run([*command, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
                yield from (Check(kind, name, test) for test in listing.split())
            elif kind in ("example", "model"):
                yield Check(kind, name, "")
        if "stress" not in self.kinds:
            return
        listing = subprocess.run([str(self.stress), "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
        scenarios = [line.split()[0] for line in listing.splitlines() if line.strip()]
        yield from (Check("stress", name, "") for name in scenarios if not self.only or name in self.only)

    def digest(self, check):
        path = pathlib.Path(self.stress if check.kind == "stress" else self.commands[check.kind, check.program][0])
        # The programs of the model have the library beside them, in an object of its own.
        objects = [path] + (sorted(path.parent.glob("*.so")) if check.kind == "model" else [])
        return "".join(digest_of(str(each), os.stat(each).st_mtime_ns) for each in objects)


digests = {}


def digest_of(path, changed):
    if (path, changed) not in digests:
        digests[path, changed] = hashlib.sha1(open(path, "rb").read()).hexdigest()
    return digests[path, changed]


class Trials:
    def __init__(self, copy, programs, jobs, say):
        self.copy, self.programs, self.jobs, self.say = copy, programs, jobs, say
        self.reached = {}  # For each check, the numbers of the mutants that it reaches.
        self.base = {}  # For each check, the time that it takes without a mutant.
        self.sound = {}  # For each check, whether it passes without a mutant in this build.
        self.by_mutant = collections.defaultdict(list)
        self.noticed = collections.defaultdict(collections.Counter)
        self.local = threading.local()
        self.count = 0
        self.lock = threading.Lock()

    def folder(self):
        """Returns an empty folder of this thread."""
        if not hasattr(self.local, "folder"):
            with self.lock:
                self.count += 1
                self.local.folder = str(self.copy.tree / f".work{self.count}")
        shutil.rmtree(self.local.folder, ignore_errors=True)
        os.makedirs(self.local.folder)
        return self.local.folder

    # -- which check reaches which mutant ----------------------------------------------------------------------------------------

    def look(self, check):
        folder = self.folder()
        path = os.path.join(folder, "reached")
        with open(path, "wb") as file:
            file.write(bytes(SIZE))
        outcome = run(self.programs.command(check), {"WEIR_MUTANTS_REACHED": path}, 600, 1200, folder)
        with open(path, "rb") as file:
            found = [number for number, byte in enumerate(file.read()) if byte]
        return outcome, found

    def record(self, kinds):
        """Runs each check once, to see which mutants it reaches. The results of unchanged programs come from a cache."""
        cache = self.copy.tree / "reach.json"
        known = json.loads(cache.read_text()) if cache.is_file() else {}
        checks = [check for check in self.programs.all() if check.kind in kinds]
        fresh = [c for c in checks if self.cache_key(c) not in known]
        self.say(f"{counted(len(checks), 'check')}, of which {len(fresh)} must run to show which mutants they reach")
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for done, (check, (outcome, found)) in enumerate(zip(fresh, pool.map(self.look, fresh)), 1):
                known[self.cache_key(check)] = [outcome.failed, outcome.seconds, outcome.wall, found]
                if done % 20 == 0 or done == len(fresh):
                    cache.with_suffix(".new").write_text(json.dumps(known))
                    cache.with_suffix(".new").replace(cache)
                    self.say(f"  {done} of {len(fresh)}")
        unsound = []
        for check in checks:
            failed, seconds, wall, found = known[self.cache_key(check)]
            if failed:
                unsound.append(check)
                continue
            self.base[check] = (seconds, wall)
            for number in found:
                self.by_mutant[number].append(check)
        for check in unsound:
            self.say(f"  left out, because it fails without a mutant: {' '.join(check)}")

    def cache_key(self, check):
        return "\0".join((*check, self.programs.digest(check)))

    # -- one mutant --------------------------------------------------------------------------------------------------------------

    def usual(self, check):
        """Returns the usual seconds of a check, of processor time and by the clock."""
        if check in self.base:
            return self.base[check]
        seconds, wall = self.base[check._replace(kind="unit")]
        return SANITIZED * seconds, SANITIZED * wall

    def attempt(self, check, number, usual, times=1):
        return run(self.programs.command(check), {"WEIR_MUTANT": str(number)}, times * (SPARE + TIMES * usual[0]),
                   times * (SPARE + TIMES * usual[1]), self.folder())

    def unchanged(self, check):
        usual = self.usual(check)
        return run(self.programs.command(check), {"WEIR_MUTANT": "0"}, 600, 60 + 100 * usual[1], self.folder())

    def notices(self, check, number):
        """
        Returns how a check notices a mutant, or None. An outcome that may be chance must come twice. Before a check counts as out of
        time, it also runs without a mutant, because the machine may be busier now.
        """
        usual = self.usual(check)
        outcome = self.attempt(check, number, usual)
        if outcome.failed is None:
            return None
        if check not in self.sound or outcome.failed == OUT_OF_TIME:
            now = self.unchanged(check)
            self.sound[check] = now.failed is None
            usual = max(usual[0], now.seconds), max(usual[1], now.wall)
        if not self.sound[check]:
            return None
        if outcome.failed == OUT_OF_TIME or check.kind == "stress":
            return self.attempt(check, number, usual, 2).failed
        return outcome.failed

    def checks_of(self, number, kind):
        found = [c for c in self.by_mutant[number] if c.kind == ("unit" if kind == "asan" else kind)]
        return [c._replace(kind="asan") for c in found if ("asan", c.program) in self.programs.commands] if kind == "asan" else found

    def ordered(self, m, checks):
        """Returns the checks that noticed other mutants of the function first, then those of the file, then the cheapest."""
        there = set(checks)
        likely = [c for c, _ in self.noticed[m.file, m.function].most_common(4)] + [c for c, _ in self.noticed[m.file, ""].most_common(4)]
        first = [c for c in dict.fromkeys(likely) if c in there]
        return first + sorted(there - set(first), key=lambda c: (self.usual(c)[1], c))

    def killer(self, m, number, kinds, remembered, budget):
        """Returns the check that notices a mutant, as the table writes it, or None; and how many checks ran."""
        asked = 0
        if remembered is not None and remembered.kind in kinds:
            asked += 1
            try:
                how = self.notices(remembered, number)
            except KeyError:  # The check no longer exists.
                how = None
            if how:
                return self.told(m, remembered, how), asked
        for kind in KINDS:
            if kind not in kinds:
                continue
            left = budget
            for check in self.ordered(m, self.checks_of(number, kind)):
                left -= self.usual(check)[1]
                if left < 0 and kind in ("unit", "asan"):
                    break
                asked += 1
                how = self.notices(check, number)
                if how:
                    return self.told(m, check, how), asked
        return None, asked

    def told(self, m, check, how):
        self.noticed[m.file, m.function][check] += 1
        self.noticed[m.file, ""][check] += 1
        test = check.test or (how.split()[1] if how.startswith("failed ") and check.kind == "model" else "")
        return " ".join(word for word in (check.kind, check.program, test, OUT_OF_TIME if how == OUT_OF_TIME else "") if word)
