"""Runs the programs of a test run within their limits, and counts the tests that passed."""
import collections
import os
import pathlib
import re

import limits
from counted import counted

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"

UNIT_SECONDS = 600  # Of processor time, as all limits here are.

SANITIZER_ENVIRONMENT = {
    # Tests ask for more memory than there is, and expect NULL instead of a report.
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # The default allows a fork while other threads run; tests/test_fork.c leaves out what needs threads in the child.
    # libc is not instrumented, so what it does is ignored.
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1:allocator_may_return_null=1",
    "MSAN_OPTIONS": "allocator_may_return_null=1",
}


class Outcome:
    """The outcome of one item: the numbers of its tests, the text to show if it failed, and the seconds that it took."""

    def __init__(self, passed=0, failed=0, skipped=0, text="", name="", processor=0.0, wall=0.0):
        self.passed, self.failed, self.skipped, self.text, self.name = passed, failed, skipped, text, name
        self.processor, self.wall = processor, wall


TREE = ("",)  # As `sources` of an item: every file of the tree.


class Item(collections.namedtuple("Item", "name call command words sources log")):
    """
    One program to run. call() returns its Outcome. The other fields say what the outcome depends on: the files named in `command`, the
    arguments and the environment in `words`, and the files of the tree whose names begin with one of `sources`. `log` is a file that must
    still exist if another item reads it.
    """

    def __new__(cls, name, call, command=(), words="", sources=(), log=None):
        return super().__new__(cls, name, call, tuple(str(word) for word in command), words, sources, log)


def run(command, seconds, log, environment=None, hang_seconds=limits.HANG_SECONDS):
    """Runs a command within so many seconds of processor time. Returns how it ended and all its output, which is also in the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w+b") as output:
        ended = limits.run(command, seconds, output, hang_seconds, cwd=ROOT,
                           env={**os.environ, **SANITIZER_ENVIRONMENT, **(environment or {})})
        output.seek(0)
        return ended, output.read().decode(errors="replace")


def ending(ended):
    if ended.code is None:
        return ended.why
    if ended.code < 0:
        return f"was ended by signal {-ended.code}"
    return f"ended with exit code {ended.code}"


def whole(name, command, seconds, log, environment=None):
    """Runs an item that is one test, which passes with exit code 0."""
    ended, text = run(command, seconds, log, environment)
    used = {"processor": ended.processor, "wall": ended.wall}
    if ended.code == 0:
        return Outcome(passed=1, name=name, **used)
    return Outcome(failed=1, name=name, text=f"{text}{name} {ending(ended)}\n", **used)


def repeated(times, name, *words):
    """As whole(), up to so many times; the first run that fails is the last one."""
    processor = wall = 0
    for time in range(times):
        outcome = whole(name, *words)
        processor, wall = processor + outcome.processor, wall + outcome.wall
        if outcome.failed:
            break
    outcome.processor, outcome.wall = processor, wall
    if outcome.failed and times > 1:
        outcome.text += f"in run {time + 1} of {times}\n"
    return outcome


def lines_of(name, command, seconds, log, environment=None):
    """Runs an item that prints a PASS or FAIL line for each test."""
    ended, text = run(command, seconds, log, environment)
    passed = len(re.findall(r"^PASS ", text, re.M))
    failed = len(re.findall(r"^FAIL ", text, re.M))
    if failed == 0 and (ended.code != 0 or passed == 0):
        failed, text = 1, f"{text}{name} {ending(ended)} after {counted(passed, 'test')} had passed\n"
    return Outcome(passed, failed, len(re.findall(r"^SKIP ", text, re.M)), text if failed else "", name, ended.processor, ended.wall)


def criterion(name, command, pattern, log):
    """Runs a program of Criterion and reads its TAP report, which lists the tests that a filter left out as skipped."""
    report = log.with_suffix(".tap")
    report.unlink(missing_ok=True)
    words = [*command, "--jobs", "1", f"--tap={report}", *(["--filter", pattern] if pattern else [])]
    ended, text = run(words, UNIT_SECONDS, log)
    tap = report.read_text(errors="replace") if report.is_file() else ""
    left_out = len(re.findall(r"^ok - .* # SKIP test was skipped$", tap, re.M))
    skipped = len(re.findall(r"^ok - .* # SKIP", tap, re.M)) - left_out
    passed = len(re.findall(r"^ok - ", tap, re.M)) - skipped - left_out
    failed = len(re.findall(r"^not ok - ", tap, re.M))
    planned = re.search(r"^1\.\.(\d+)$", tap, re.M)
    lost = int(planned.group(1)) - passed - failed - skipped - left_out if planned else 1
    if lost > 0 or (failed == 0 and ended.code != 0):
        failed, text = failed + 1, f"{text}{name} {ending(ended)}; it did not report {counted(max(lost, 0), 'test')}\n"
    return Outcome(passed, failed, skipped, tap + text if failed else "", name, ended.processor, ended.wall)


def in_process(name, command, pattern, log):
    words = [*command, *(["--filter", pattern] if pattern else [])]
    outcome = lines_of(name, words, UNIT_SECONDS, log)
    nothing_selected = pattern and outcome.passed == 0 and outcome.skipped == 0 and "\n0 passed, 0 failed" in "\n" + outcome.text
    return Outcome(name=name) if nothing_selected else outcome
