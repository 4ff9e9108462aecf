"""Runs many items in suites. It prints one line for each suite, and below it what failed."""
import concurrent.futures
import os
import signal
import sys
import time
import traceback

import limits
from items import (MACHINES, UNIT_ONLY, analysis_items, built_items, check_items, complete_items, fuzz_items, header_items, model_items,
                   program_items, stress_items, unit_items)
from programs import ROOT, Outcome, run

PROCESSORS = len(os.sched_getaffinity(0))
SHOWN_LINES = 60
SHOWN_COLUMNS = 300


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
    def __init__(self, logs):
        self.logs = logs
        self.passed = self.failed = 0
        self.failures = []

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
        self.passed += passed
        self.failed += failed
        if passed + failed + skipped:
            note = f", {skipped} skipped" if skipped else ""
            say(f"{title:<28} {passed:5} passed, {failed} failed{note}".ljust(64) + f"{time.monotonic() - start:7.1f} s")
        for outcome in outcomes:
            if outcome.failed:
                self.fail(f"{title}: {outcome.name}", outcome.text)

    def fail(self, name, text):
        self.failures.append(name)
        show(text)

    def build(self, variant, targets=()):
        """Builds a variant. A failed build counts as one failed test."""
        start = time.monotonic()
        title = f"build, {variant}"
        announce(title)
        # The build may wait for another build of the same folder, so it may be idle for long.
        ended, text = run([ROOT / "dev", "build", variant, *targets], 3600, self.logs / f"build-{variant}.log", hang_seconds=3600)
        if ended.code != 0:
            self.failed += 1
            say(f"{title:<28} failed")
            self.fail(title, text)
        else:
            say(f"{title:<28}".ljust(64) + f"{time.monotonic() - start:7.1f} s")
        return ended.code == 0


def run_checks(session, keep, form):
    session.suite("checks", check_items(keep, form))
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


def run_variant(session, variant, keep, form):
    if not session.build(variant):
        return
    run_programs(session, variant, keep, form)
    if variant not in UNIT_ONLY:
        run_model(session, variant, keep, form)
        run_stress(session, variant, keep, form)


def run_fuzzers(session, keep, form):
    if session.build("fuzz"):
        session.suite("fuzzers", fuzz_items(keep, form))


def run_analysis(session, form):
    if session.build("clang"):
        session.passed += 1
        session.suite("static analysis", analysis_items(form), at_once=1)


def run_parts(session, parts, keep, form):
    if "checks" in parts:
        run_checks(session, keep, form)
    for variant in ("release", "asan", "tsan", "clang-tsan", "msan", "valgrind", *MACHINES):
        if variant in parts:
            run_variant(session, variant, keep, form)
    if "fuzz" in parts and (keep.matches("fuzz") or keep.text.startswith("fuzz_")):
        run_fuzzers(session, keep, form)
    if "clang" in parts and (keep.matches("clang") or keep.matches("check_analysis")):
        run_analysis(session, form)
