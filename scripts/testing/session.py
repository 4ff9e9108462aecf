"""Runs many items in suites. It prints one line for each suite, and below it what failed."""
import concurrent.futures
import os
import signal
import sys
import threading
import time
import traceback

import limits
from items import (MACHINES, PARTS, SANITIZER_OF, UNIT_ONLY, analysis_items, built_items, check_items, complete_items, fuzz_items, header_items,
                   model_items, program_items, stress_items, unit_items, valgrind_targets)
from programs import ROOT, Outcome, run

PROCESSORS = len(os.sched_getaffinity(0))
SHOWN_LINES = 60
SHOWN_COLUMNS = 300
SHOWN_TIMES = 20
NICE_BUILDS = 10
NICE_COMPUTATIONS = 15


def stop_all(signal_number, frame):
    """Ends all programs on Ctrl-C: they are in sessions of their own and do not get the signal."""
    limits.end_all()
    os._exit(128 + signal_number)


def stop_on_signals():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop_all)


def say(text, end="\n"):
    print(text, end=end, flush=True)


def announce(title):
    """On a terminal, prints what runs now. The line of the suite overwrites it."""
    if sys.stdout.isatty():
        say(f"{title} ...\033[K\r", end="")


def show(text):
    """Prints the end of an output, indented. Long lines are cut: the command line of a linker could fill a screen."""
    for line in text.splitlines()[-SHOWN_LINES:]:
        say("    " + (line if len(line) <= SHOWN_COLUMNS else line[:SHOWN_COLUMNS] + " ..."))


class Session:
    """Suites may run at a time, each called by a thread of its own."""

    def __init__(self, logs):
        self.logs = logs
        self.lock = threading.RLock()  # Held while a suite prints and counts.
        self.passed = self.failed = 0
        self.failures = []
        self.times = []  # For each item: processor seconds, seconds by the clock, its suite and its name.

    def outcome_of(self, title, item):
        try:
            return item.call()
        except Exception:
            return Outcome(failed=1, name=item.name, text=traceback.format_exc())

    def suite(self, title, items, at_once=PROCESSORS):
        """Runs the items and prints one line. Below it stands the end of the output of each item that failed."""
        start = time.monotonic()
        announce(title)
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            outcomes = list(pool.map(lambda item: self.outcome_of(title, item), items))
        passed, failed, skipped = (sum(getattr(o, field) for o in outcomes) for field in ("passed", "failed", "skipped"))
        with self.lock:
            self.passed += passed
            self.failed += failed
            self.times += [(outcome.processor, outcome.wall, title, outcome.name) for outcome in outcomes]
            if passed + failed + skipped:
                note = f", {skipped} skipped" if skipped else ""
                self.say_times(f"{title:<31} {passed:5} passed, {failed} failed{note}", time.monotonic() - start,
                               sum(outcome.processor for outcome in outcomes))
            for outcome in outcomes:
                if outcome.failed:
                    self.fail(f"{title}: {outcome.name}", outcome.text)

    def say_times(self, words, wall, processor):
        say(f"{words:<64}{wall:7.1f} s{processor:8.1f} s of a processor")

    def say_longest(self):
        """Prints the items that took longest."""
        longest = sorted(self.times, reverse=True)[:SHOWN_TIMES]
        say("\nThe longest, in seconds of a processor and by the clock:\n"
            f"{sum(processor for processor, *_ in self.times):9.1f}{'':9}  all\n"
            + "".join(f"{processor:9.1f}{wall:9.1f}  {title}: {name}\n" for processor, wall, title, name in longest))

    def fail(self, name, text):
        with self.lock:
            self.failures.append(name)
            show(text)

    def build(self, variant, targets=()):
        """Builds a variant. A failed build counts as one failed test."""
        title = f"build, {variant}"
        announce(title)
        # The build may wait for another build of the same folder, so it may be idle for long.
        ended, text = run([ROOT / "dev", "build", variant, *targets], 3600, self.logs / f"build-{variant}.log", hang_seconds=3600)
        with self.lock:
            if ended.code != 0:
                self.failed += 1
                say(f"{title:<31} failed")
                self.fail(title, text)
            else:
                self.times.append((ended.processor, ended.wall, title, "all"))
                self.say_times(title, ended.wall, ended.processor)
        return ended.code == 0


class Builds:
    """The builds of a run, which one thread makes and others wait for."""

    def __init__(self, session, variants, targets):
        self.session, self.targets = session, targets
        self.made = {variant: concurrent.futures.Future() for variant in variants}

    def make(self):
        for variant, made in self.made.items():
            made.set_result(self.session.build(variant, self.targets.get(variant, ())))

    def give_up(self):
        for made in self.made.values():
            if not made.done():
                made.set_result(False)

    def build(self, variant):
        """Waits until the variant is built. Returns whether that succeeded."""
        return self.made[variant].result()


class Lane(threading.Thread):
    """Does a part of a run beside the others. What it starts has its priority, which is lower by `nice`."""

    def __init__(self, session, name, nice, work, at_end=lambda: None):
        super().__init__(name=name, daemon=True)
        self.session, self.nice, self.work, self.at_end = session, nice, work, at_end
        self.start()

    def run(self):
        try:
            if self.nice > 0:
                # Of this thread alone, and of the threads and programs that it starts.
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(19, os.getpriority(os.PRIO_PROCESS, 0) + self.nice))
            self.work()
        except Exception:
            with self.session.lock:
                self.session.failed += 1
                self.session.fail(f"the test driver itself, {self.name}", traceback.format_exc())
        finally:
            self.at_end()


def run_checks(session, keep, form):
    session.suite("checks", check_items(keep, form))
    run_headers(session, keep, form)


def run_headers(session, keep, form):
    session.suite("headers", header_items(keep, form), at_once=1)


def run_programs(session, variant, keep, form):
    """Runs all programs of a build except the model checker and the stress scenarios."""
    session.suite(f"what was built, {variant}", built_items(variant, keep, form))
    session.suite(f"unit, {variant}", unit_items(variant, keep, form))
    if variant not in UNIT_ONLY:
        session.suite(f"examples, {variant}", program_items(variant, "example", keep, form))
        session.suite(f"bench, {variant}", program_items(variant, "bench", keep, form), at_once=1)


def run_model(session, variant, keep, form):
    # Counts take minutes of one processor and do not depend on its load, so the model checker runs beside them.
    session.suite(f"counts, model checker, {variant}", [*program_items(variant, "counted", keep, form), *model_items(variant, keep, form)])
    session.suite(f"what is complete, {variant}", complete_items(variant, form))


def run_stress(session, variant, keep, form):
    session.suite(f"stress, {variant}", stress_items(variant, keep, form), at_once=1)


def run_fuzzers(session, keep, form):
    session.suite("fuzzers", fuzz_items(keep, form))


def run_tests(session, variants, parts, builds, keep, form):
    """Runs the tests that wait, are short, or find more the faster they run."""
    if "checks" in parts:
        session.suite("checks", check_items(keep, form))
    for variant in variants:
        if builds.build(variant):
            run_programs(session, variant, keep, form)
            if variant not in UNIT_ONLY:
                run_stress(session, variant, keep, form)
    if "fuzz" in builds.made and builds.build("fuzz"):
        run_fuzzers(session, keep, form)


def run_computations(session, variants, parts, builds, keep, form):
    """Runs what only computes, and finds the same however slow it is."""
    if "checks" in parts:
        run_headers(session, keep, form)
    for variant in variants:
        if variant not in (*SANITIZER_OF, *UNIT_ONLY) and builds.build(variant):
            run_model(session, variant, keep, form)
    if "clang" in builds.made and builds.build("clang"):
        with session.lock:
            session.passed += 1
        session.suite("static analysis", analysis_items(form), at_once=1)


def run_parts(session, parts, keep, form):
    """
    Runs the parts in three lanes at a time, because a processor is idle while a test waits for another thread, a build is configured or
    the last test of a suite runs. Builds and computations have lower priorities than tests.
    """
    variants = [variant for variant in (*PARTS, *MACHINES) if variant in parts and variant not in ("checks", "fuzz", "clang")]
    built = list(variants)
    if "fuzz" in parts and (keep.matches("fuzz") or keep.text.startswith("fuzz_")):
        built.append("fuzz")
    if "clang" in parts and (keep.matches("clang") or keep.matches("check_analysis")):
        built.append("clang")
    builds = Builds(session, built, {"valgrind": valgrind_targets(form)})
    lanes = [
        Lane(session, "tests", 0, lambda: run_tests(session, variants, parts, builds, keep, form)),
        Lane(session, "builds", NICE_BUILDS, builds.make, builds.give_up),
        Lane(session, "computations", NICE_COMPUTATIONS, lambda: run_computations(session, variants, parts, builds, keep, form)),
    ]
    for lane in lanes:
        lane.join()
