"""Copies of the tree in which mutants are built."""
import fcntl
import json
import os
import subprocess
import sys

SETUP = ["-Drunner=own", "-Dbench=false", "-Dexamples=false", "-Djemalloc=disabled", "-Dblas=disabled", "-Dmpi=auto", "-Dwerror=false"]
BUILDS = {"plain": [], "tsan": ["-Db_sanitize=thread", "-Db_lundef=false", "-Dstress=false"]}

# A build, the kind of checks that it has, and their suite in meson.
KINDS = [("plain", "model", "model"), ("tsan", "tsan", "unit"), ("plain", "unit", "unit")]

# Operations that only mutants use. They are added to atomic.h.
NAMES = """
#include <stdatomic.h>
#define weiri_fetch_sub_acquire(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acquire)
#define weiri_fetch_and_relaxed(p, v) atomic_fetch_and_explicit((p), (v), memory_order_relaxed)
#define weiri_fetch_and_acq_rel(p, v) atomic_fetch_and_explicit((p), (v), memory_order_acq_rel)
#define weiri_cas_relaxed_or_acquire(p, e, v) \\
	atomic_compare_exchange_strong_explicit((p), (e), (v), memory_order_relaxed, memory_order_acquire)
"""


def snapshot(root):
    """Returns the present contents and mode of each file of the tree."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    files = {name: root / name for name in names.stdout.split("\n") if name}
    return {name: (path.read_bytes(), path.stat().st_mode) for name, path in files.items() if path.is_file()}


class Copy:
    """A copy of the tree, and its builds."""

    def __init__(self, root, tree, builds):
        self.claim(root)
        self.write_tree(tree)
        self.pristine = tree
        for build in builds:
            if not (self.folder(build) / "build.ninja").is_file():
                subprocess.run(["meson", "setup", self.folder(build), self.tree, *SETUP, *BUILDS[build]], check=True,
                               stdout=subprocess.DEVNULL)
            # This also makes meson read its changed files again.
            if self.make(build, ["build.ninja"]).returncode != 0:
                sys.exit(f"mutate: {self.folder(build)} cannot be configured")
        self.tests = {kind: self.tests_of(build, suite) for build, kind, suite in KINDS if build in builds}

    def claim(self, root):
        """Claims the first folder that no other run uses: two runs in one folder would overwrite each other's mutants."""
        for number in range(64):
            self.tree = root / "build" / "mutants" / str(number)
            self.tree.mkdir(parents=True, exist_ok=True)
            self.lock = (self.tree / ".lock").open("w")
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                self.lock.close()
        sys.exit("mutate: 64 copies are in use")

    def write_tree(self, tree):
        for path in self.tree.rglob("*"):
            name = str(path.relative_to(self.tree))
            if path.is_file() and name not in tree and not name.startswith(("build/", ".lock")):
                path.unlink()
        for name, (text, mode) in tree.items():
            target = self.tree / name
            if name == "lib/weir/base/atomic.h":
                text = text.replace(b"#include <stdatomic.h>\n", NAMES.encode(), 1)
            if not target.is_file() or target.read_bytes() != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
                target.chmod(mode)

    def folder(self, build):
        return self.tree / "build" / build

    def tests_of(self, build, suite):
        tests = json.loads((self.folder(build) / "meson-info" / "intro-tests.json").read_text())
        return {test["name"]: test["cmd"] for test in tests if any(name.endswith(":" + suite) for name in test["suite"])}

    def make(self, build, targets):
        return subprocess.run(["ninja", "-C", self.folder(build), *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def make_check(self, check):
        """Builds the program of one check and nothing else."""
        build = next(build for build, kind, _ in KINDS if kind == check.kind)
        program = self.tests[check.kind][check.program][0]
        return self.make(build, [os.path.relpath(program, self.folder(build))]).returncode == 0

    def write(self, mutant):
        source = self.pristine[mutant.file][0].decode()
        (self.tree / mutant.file).write_text(source[:mutant.start] + mutant.replacement + source[mutant.end:])

    def restore(self, mutant):
        (self.tree / mutant.file).write_bytes(self.pristine[mutant.file][0])
