"""The items of each kind that can be run (programs.Item), and the form of a run (Form)."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import time

from programs import BUILD, ROOT, TREE, Item, Outcome, criterion, in_process, lines_of, repeated, run, whole

PARTS = ("checks", "release", "asan", "tsan", "clang-tsan", "msan", "valgrind", "fuzz", "clang")
MACHINES = ("arm64", "i386", "s390x")  # Other machines, emulated: ./dev cross.
SANITIZER_OF = {"asan": "address", "tsan": "thread", "clang-tsan": "thread", "msan": "memory"}
UNIT_ONLY = ("msan", "valgrind")
# Lists of retired objects point into the middle of the objects, which valgrind reports as "possibly lost".
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--fair-sched=yes"]
# valgrind runs one thread at a time, 30 times slower, so it runs only VALGRIND_TESTS. The long form runs all tests but
# NOT_VALGRIND_TESTS: the child of a fork cannot free what the other threads had on their stacks.
NOT_VALGRIND_TESTS = ("fork",)
VALGRIND_TESTS = ("memory", "failing_allocator", "tensor", "tensor_view", "elementwise", "shape", "ring", "var", "snapshot", "commit",
                  "queue_memory", "tensor_queue", "cancel", "list", "graph", "op_math", "op_variable", "session")
CHECKS = ("layers", "style", "conventions", "sources", "invariants", "conformance", "mutants", "figures", "checks", "dev")
SLOW_CHECKS = ("checks", "dev")  # These check the other checks, and what ./dev builds.
MODEL_LONG_TIMES = 24
# A program of the model checker runs in parts of so many scopes, so that all processors share its work evenly.
SCOPES_AT_ONCE = 8
# How often a listing runs under ThreadSanitizer: gcc's finds what it finds by repetition, clang's looks again with other code.
LISTING_RUNS = {"tsan": 100, "clang-tsan": 10}
SLOWDOWN = {"release": 1, "valgrind": 50, **dict.fromkeys(MACHINES, 20)}
SANITIZER_SLOWDOWN = 5
# If no operation of a scenario completes for so long by the clock, the harness reports which thread waits for what.
STRESS_HANG_SECONDS = "100"
# A scenario also needs time beyond its duration, to set up and to check what it recorded.
STRESS_GRACE_SECONDS = 120
STRESS_SEED = os.environ.get("WEIR_STRESS_SEED", str(time.time_ns() % 1_000_000_007))

# model_long: larger scopes of the model checker, each in a process of its own. valgrind_all: nearly all unit tests under valgrind.
Form = collections.namedtuple("Form", "logs model_long valgrind_all stress_seconds fuzz_seconds")


def form_of_environment(logs):
    is_long = "WEIR_MODEL_LONG" in os.environ
    return Form(logs, is_long, is_long, os.environ.get("WEIR_STRESS_SECONDS", "0.5"), os.environ.get("WEIR_FUZZ_SECONDS", "15"))


class Keep:
    def __init__(self, text):
        self.text = text

    def matches(self, name):
        return self.text in name


def address_space_prefix():
    """
    Returns the words that run a program without randomized addresses, if setarch can do that. ThreadSanitizer and MemorySanitizer cannot
    map their memory where Linux randomizes addresses widely.
    """
    prefix = ["setarch", os.uname().machine, "-R"]
    if shutil.which("setarch") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
        return prefix
    return []


def prefix_of(variant):
    """Returns the words before the name of a program of this variant: an emulator, valgrind, or setarch."""
    if variant in MACHINES:
        return [BUILD / "cross" / variant / "run"]
    return VALGRIND if variant == "valgrind" else address_space_prefix() if SANITIZER_OF.get(variant) in ("thread", "memory") else []


def meson_tests(variant, suite):
    tests = json.loads((BUILD / variant / "meson-info" / "intro-tests.json").read_text())
    return [test for test in tests if any(name.endswith(":" + suite) for name in test["suite"])]


def valgrind_targets(form):
    """Returns what must be built for the tests under valgrind, or nothing for everything."""
    return () if form.valgrind_all else [f"tests/test_{name}" for name in VALGRIND_TESTS]


def unit_items(variant, keep, form):
    runner, prefix = criterion if variant == "release" else in_process, prefix_of(variant)
    for test in meson_tests(variant, "unit"):
        chosen = test["name"] not in NOT_VALGRIND_TESTS if form.valgrind_all else test["name"] in VALGRIND_TESTS
        if variant == "valgrind" and not chosen:
            continue
        name = f"test_{test['name']}"
        pattern = None if keep.matches(name) else f"*{keep.text}*"
        log = form.logs / f"unit-{variant}" / f"{name}.log"
        yield Item(name, lambda name=name, command=test["cmd"], pattern=pattern, log=log: runner(
            name, [*prefix, *command], pattern, log), test["cmd"])


def program_items(variant, suite, keep, form):
    """Yields the programs that check themselves: examples, and a short run of each benchmark."""
    slowdown, prefix = SLOWDOWN.get(variant, SANITIZER_SLOWDOWN), prefix_of(variant)
    for test in meson_tests(variant, suite):
        script = open(test["cmd"][0], "rb").read(2) == b"#!"
        # Scripts check files and output, which are the same on every machine.
        if keep.matches(test["name"]) and not (script and variant in MACHINES):
            log = form.logs / f"{suite}-{variant}" / f"{test['name']}.log"
            runs = LISTING_RUNS.get(variant, 1) if test["name"].startswith("listing_") else 1
            yield Item(test["name"], lambda test=test, log=log, runs=runs: repeated(
                runs, test["name"], [*prefix, *test["cmd"]], test["timeout"] * slowdown, log, test["env"]), test["cmd"],
                sources=TREE if script else ())


def scopes_of(test, log, environment):
    ended, text = run(test["cmd"], 60, log, {**environment, "WEIR_MODEL_NAMES": "1"})
    return text.split() if ended.code == 0 else []


def model_items(variant, keep, form):
    """
    Yields the scopes of the model checker, several to an item. In the long form a scope may take an hour, so each is an item of its own.
    The name of a scope says whether it is explored completely.
    """
    environment = {"WEIR_MODEL_LONG": "1"} if form.model_long else {}
    logs = form.logs / f"model-{variant}"
    for test in meson_tests(variant, "model"):
        if not keep.matches(f"model_{test['name']}"):
            continue
        scopes = scopes_of(test, form.logs / "scopes" / f"{test['name']}.log", environment)
        parts = max(1, len(scopes) if form.model_long else -(-len(scopes) // SCOPES_AT_ONCE))
        seconds = test["timeout"] * (MODEL_LONG_TIMES if form.model_long else 1)
        for part in range(1, parts + 1):
            name = f"{test['name']} {scopes[part - 1]}" if form.model_long and scopes else test["name"]
            name += f", {part} of {parts}" if parts > 1 else ""
            words = {**environment, "WEIR_MODEL_PART": f"{part}/{parts}"} if parts > 1 else environment
            log = logs / f"{test['name']}.{part}.log"
            yield Item(name, lambda name=name, test=test, log=log, seconds=seconds, words=words: lines_of(
                name, test["cmd"], seconds, log, words), test["cmd"], str(words), log=log)


def complete_items(variant, form):
    """Yields the check that the programs explored completely what the table lists."""
    logs = form.logs / f"model-{variant}"
    if logs.is_dir():
        words = [ROOT / "scripts" / "check_complete", logs, *(["--long"] if form.model_long else [])]
        yield Item("complete", lambda: lines_of("complete", words, 60, form.logs / "complete.log"), words)


def fuzz_items(keep, form):
    """Yields the fuzzers. Each starts from its kept corpus, and writes what it finds to a folder of its own."""
    for test in meson_tests("fuzz", "fuzz"):
        if keep.matches(f"fuzz_{test['name']}"):
            found = BUILD / "fuzz" / "found" / test["name"]
            found.mkdir(parents=True, exist_ok=True)
            program, dictionary, corpus = test["cmd"]
            words = [program, f"-dict={dictionary}", f"-max_total_time={form.fuzz_seconds}", "-close_fd_mask=3", "-max_len=4096",
                     f"-artifact_prefix={found}/crash-", found, corpus]
            log = form.logs / "fuzz" / f"{test['name']}.log"
            yield Item(test["name"], lambda test=test, words=words, log=log: whole(
                test["name"], words, float(form.fuzz_seconds) * 2 + 60, log), test["cmd"], f"{form.fuzz_seconds} s")


def stress_items(variant, keep, form):
    program, prefix = BUILD / variant / "stress" / "weir-stress", prefix_of(variant)
    log = form.logs / f"stress-{variant}" / "list.log"
    ended, listing = run([*prefix, program, "--list"], 60, log) if program.is_file() else (None, "")
    scenarios = [line.split()[0] for line in listing.splitlines() if line.strip()] if ended is not None and ended.code == 0 else []
    if not scenarios:
        yield Item("stress list", lambda: Outcome(failed=1, name="stress list", text=f"{listing}{program} --list named no scenario\n"))
    for scenario in filter(keep.matches, scenarios):
        words = [program, "--scenario", scenario, "--duration", form.stress_seconds, "--seed", STRESS_SEED, "--hang", STRESS_HANG_SECONDS]
        log = form.logs / f"stress-{variant}" / f"{scenario}.log"
        yield Item(scenario, lambda scenario=scenario, words=words, log=log: whole(
            scenario, [*prefix, *words], float(form.stress_seconds) * 10 + STRESS_GRACE_SECONDS, log), [program],
            f"{form.stress_seconds} s")


def check_items(keep, form, left_out=()):
    for name in CHECKS:
        if keep.matches(f"check_{name}") and name not in left_out:
            yield Item(name, lambda name=name: lines_of(
                name, [ROOT / "scripts" / f"check_{name}"], 300, form.logs / "checks" / f"{name}.log"), sources=TREE)


def analysis_items(form):
    command = [ROOT / "scripts" / "check_analysis", *(["--deep"] if form.model_long else [])]
    yield Item("analysis", lambda: lines_of("analysis", command, 6000 if form.model_long else 1500, form.logs / "checks" / "analysis.log"), sources=TREE)


def header_items(keep, form):
    name = keep.text if not keep.matches("check_headers") else ""
    if not name or any(list((ROOT / folder / "weir").glob(f"**/*{name}*.h*")) for folder in ("include", "stress/include")):
        words = [ROOT / "scripts" / "check_headers", "--require", "gcc", "--require", "g++", "--require", "clang",
                 "--require", "clang++", "--require", "clang++-19", *([name] if name else [])]
        yield Item("headers", lambda: lines_of("headers", words, 300, form.logs / "checks" / "headers.log"), sources=TREE)


def built_checks(variant):
    """Yields the checks of what was built: each with its name, the prefix of its command, and its arguments."""
    folder, prefix = BUILD / variant, prefix_of(variant)
    if variant != "valgrind" and variant not in MACHINES:
        yield "runner", prefix, [folder / "tests" / "runner" / "runner_selftest", SANITIZER_OF.get(variant, "none")]
    if variant in ("release", "asan", "tsan"):
        yield "stress", prefix, [folder / "stress" / "weir-stress"]
    if variant == "release":
        yield "gdb", [], [folder / "tests" / "gdb_waiters"]
    if variant in ("release", *MACHINES):
        yield "safetensors", [], [*prefix, folder / "tests" / "checkpoint_file"]
    if variant == "release":
        yield "symbols", [], [folder / "lib/weir/libweir.so", "--flow", folder / "lib/flow/libweir-flow.so",
                               "--urcu", folder / "lib/urcu/libweir-urcu.so",
                               *(["--mpi", mpi] if (mpi := folder / "lib/mpi/libweir-mpi.so").exists() else [])]
        yield "install", [], [folder]
        yield "bindings", [], [folder]
        # The long form builds the Debian packages in two folders, and compares them.
        yield "packages", [], [] if "WEIR_MODEL_LONG" in os.environ else ["--once"]
        yield "loading", [], [folder]
        yield "abi", [], [folder]
        yield "releases", [], [folder]
        yield "letters", [], [folder]


# Of processor time, if a check may take more than 120.
SECONDS_OF = {"packages": 400}


def built_items(variant, keep, form):
    for name, prefix, words in built_checks(variant):
        if keep.matches(f"check_{name}"):
            command = [*prefix, ROOT / "scripts" / f"check_{name}", *words]
            log = form.logs / f"built-{variant}" / f"{name}.log"
            yield Item(name, lambda name=name, command=command, log=log: lines_of(
                name, command, SECONDS_OF.get(name, 120), log), sources=TREE)


def remove_old_logs(logs):
    """Removes the logs of runs that have ended."""
    for folder in logs.parent.glob("*"):
        if not pathlib.Path("/proc", folder.name).exists() or folder == logs:
            shutil.rmtree(folder, ignore_errors=True)
