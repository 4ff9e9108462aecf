"""A copy of the tree that contains many mutants at once, and its builds."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import meaning

HERE = pathlib.Path(__file__).resolve().parent
COMMON = ["-Drunner=own", "-Dbench=false", "-Djemalloc=disabled", "-Dblas=disabled", "-Dmpi=auto", "-Dwerror=false",
          "-Ddebug=false", "-Doptimization=2"]
# The second build notices what the first does not: leaks, uses of freed memory, failed assertions.
BUILDS = {
    "plain": [],
    "asan": ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dassert_level=2", "-Dexamples=false", "-Dstress=false"],
}


def edited(name, text):
    """Returns a meson.build that also builds mutant.c, includes mutant.h in every source, and plants no faults."""
    if name == "meson.build":
        include = "add_project_arguments('-include', meson.current_source_dir() / 'lib/weir/base/mutant.h', language: 'c')"
        in_cpp = include.replace("'c'", "'cpp'")  # Public headers have mutants, too.
        include += f"\nif have_cpp\n  {in_cpp}\nendif"
        return text.replace("\nsanitized = ", f"\n{include}\nsanitized = ", 1)
    if name == "lib/weir/base/meson.build":
        return text + "weir_sources += files('mutant.c')\n"
    if name == "tests/planted/meson.build":
        return ""  # Faults take the place of texts of the sources, which are not there any more.
    if name == "stress/model/meson.build":
        return text.replace("    '../../lib/weir/base/log.c',\n", "    '../../lib/weir/base/log.c',\n    '../../lib/weir/base/mutant.c',\n", 1)
    return text


class Copy:
    def __init__(self, root, mutants, numbers):
        self.root, self.tree, self.numbers = root, root / "build" / "meaning", numbers
        self.tree.mkdir(parents=True, exist_ok=True)
        self.lock = (self.tree / ".lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"mutate: another run uses {self.tree}")
        self.mutants = list(mutants)
        self.left_out = []
        self.files = self.snapshot()

    def snapshot(self):
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.root, check=True, stdout=subprocess.PIPE,
                               text=True)
        files = {name: self.root / name for name in names.stdout.split("\n") if name}
        found = {name: (path.read_bytes(), path.stat().st_mode) for name, path in files.items() if path.is_file()}
        for name in ("mutant.c", "mutant.h"):
            found[f"lib/weir/base/{name}"] = ((HERE / name).read_bytes(), 0o644)
        return found

    def write(self):
        """Writes the copy. Files that have not changed are left alone, so that they are not compiled again."""
        by_file = {}
        for m in self.mutants:
            by_file.setdefault(m.file, []).append(m)
        for path in self.tree.rglob("*"):
            name = str(path.relative_to(self.tree))
            if name.startswith(("plain/", "asan/", "reach", ".")) or not path.is_file():
                continue
            if name not in self.files:
                path.unlink()
        for name, (text, mode) in self.files.items():
            if name in by_file:
                text = meaning.rewritten(text, by_file[name], self.numbers)
            elif name.endswith("meson.build"):
                text = edited(name, text.decode()).encode()
            target = self.tree / name
            if not target.is_file() or target.read_bytes() != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
                target.chmod(mode)

    def folder(self, build):
        return self.tree / build

    def build(self, build, kinds, programs=()):
        """
        Builds the copy, or only what checks of these kinds and these programs need. If mutants do not compile, it leaves them out and
        tries again.
        """
        for _ in range(8):
            self.write()
            if not (self.folder(build) / "build.ninja").is_file():
                subprocess.run(["meson", "setup", self.folder(build), self.tree, *COMMON, *BUILDS[build]], check=True,
                               stdout=subprocess.DEVNULL)
            # If a meson.build has changed, meson reads it now, and knows which tests there are.
            subprocess.run(["ninja", "-C", self.folder(build), "build.ninja"], stdout=subprocess.DEVNULL)
            command = ["nice", "ninja", "-C", self.folder(build), "-k", "0", *self.targets(build, kinds, programs)]
            made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            (self.tree / f".{build}.log").write_text(made.stdout)
            if made.returncode == 0:
                return
            wrong = set(re.findall(r"^(?:\.\./)*((?:lib|include)/[a-z0-9_/]+\.[ch]):(\d+):\d+: error:", re.sub(r"\x1b\[[0-9;]*[mK]", "", made.stdout), re.M))
            bad = [m for m in self.mutants if any(m.file == file and m.line <= int(line) <= m.line + lines_of(m) for file, line in wrong)]
            if not bad:
                sys.exit(f"mutate: {self.folder(build)} cannot be built: {self.tree}/.{build}.log says why")
            self.left_out += bad
            self.mutants = [m for m in self.mutants if m not in bad]
        sys.exit(f"mutate: {self.folder(build)} cannot be built: {self.tree}/.{build}.log says why")

    def targets(self, build, kinds, programs):
        """Returns what ninja must build. No program is named: everything."""
        found = {test["cmd"][0] for test in self.all_tests(build) if test["name"] in programs}
        if programs and build == "plain" and "stress" in kinds:
            found.add(str(self.folder(build) / "stress" / "weir-stress"))
        return sorted(os.path.relpath(path, self.folder(build)) for path in found)

    def all_tests(self, build):
        return json.loads((self.folder(build) / "meson-info" / "intro-tests.json").read_text())

    def tests(self, build, suite):
        return {test["name"]: test["cmd"] for test in self.all_tests(build) if any(name.endswith(":" + suite) for name in test["suite"])}


def lines_of(m):
    """Returns on how many lines after its first one a mutant may cause an error."""
    return 1 + m.change.count(",") // 2
