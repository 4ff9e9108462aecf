"""Keeps what ./dev prove has finished, one line of JSON for each result, so that the next sitting continues where the last one stopped.

Each result is kept with a digest of what it depends on: the program as it was built, the shared libraries of this project that it
loads, and the sources that a script reads. A change of anything else leaves the result valid.
"""
import functools
import hashlib
import json
import pathlib
import subprocess
import threading
import time

from programs import BUILD, ROOT

# A campaign of mutation testing writes these tables itself.
WRITTEN = ("stress/model/killers.tsv", "tests/mutants/killers.tsv")


@functools.lru_cache(maxsize=None)
def digest_at(path, changed, size):
    digest = hashlib.sha256()
    if path.is_dir():
        for name in sorted(path.rglob("*")):
            if name.is_file():
                digest.update(name.name.encode() + name.read_bytes())
    else:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def digest_of_file(path):
    stat = path.stat()
    return digest_at(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=None)
def libraries_needed(path, changed):
    """Returns the shared libraries of this build that a program loads."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return ()
    build = next((parent for parent in path.parents if parent.parent == BUILD), None)
    listing = subprocess.run(["readelf", "--dynamic", path], stdout=subprocess.PIPE, text=True, check=False).stdout
    names = [line.partition("[")[2].partition("]")[0] for line in listing.splitlines() if "(NEEDED)" in line]
    return tuple(found for name in names if build for found in sorted(build.rglob(name))[:1])


def digest_of_sources(prefixes):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    digest = hashlib.sha256()
    for name in sorted(names.splitlines()):
        path = ROOT / name
        if name.startswith(prefixes) and path.is_file() and (prefixes == ("",) or name not in WRITTEN):
            digest.update(f"{name} {digest_of_file(path)}\n".encode())
    return digest.hexdigest()


def digest_of(item):
    digest = hashlib.sha256(item.words.encode())
    for word in item.command:
        path = pathlib.Path(word)
        if not path.is_absolute() or not path.exists():
            digest.update(word.encode())
            continue
        libraries = libraries_needed(path, path.stat().st_mtime_ns) if path.is_file() else ()
        for file in (path, *libraries):
            digest.update(digest_of_file(file).encode())
    if item.sources:
        digest.update(digest_of_sources(item.sources).encode())
    return digest.hexdigest()[:20]


def lines_of(path):
    """Yields the entries of a journal. The last line may be unfinished if the machine stopped."""
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue


class Journal:
    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.sittings, self.plans, self.results = {}, {}, []
        for line in lines_of(path):
            self.take(line)
        # An unfinished last line must not run into the next entry.
        self.before = "\n" if path.is_file() and path.read_bytes()[-1:] not in (b"", b"\n") else ""
        self.noted = time.monotonic()

    def take(self, line):
        if line["what"] == "sitting":
            self.sittings[line["sitting"]] = line
        elif line["what"] == "plan":
            self.plans[line["part"]] = line
        else:
            self.results.append(line)

    def write(self, **line):
        self.take(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a") as file:
            file.write(self.before + json.dumps(line) + "\n")
        self.before = ""

    def begin(self, **about):
        self.sitting = max(self.sittings, default=0) + 1
        self.write(what="sitting", sitting=self.sitting, began=time.time(), **about)

    def plan(self, part, items):
        self.write(what="plan", part=part, sitting=self.sitting, items=items)
        self.noted = time.monotonic()

    def note(self, part, title, name, digest, outcome):
        """
        Writes a result. Its `clock` is the time since the previous result, so that the sum over items that run at the same time is the
        time that passed.
        """
        with self.lock:
            now = time.monotonic()
            self.write(what="result", part=part, title=title, name=name, digest=digest, sitting=self.sitting, at=time.time(),
                       passed=outcome.passed, failed=outcome.failed, skipped=outcome.skipped, processor=round(outcome.processor, 2),
                       clock=round(now - self.noted, 2))
            self.noted = now

    def found(self, part):
        """Returns the last result of each item in the last plan of a part, or None for an item without a result."""
        last = {(r["title"], r["name"], r["digest"]): r for r in self.results if r["part"] == part}
        return {tuple(key): last.get(tuple(key)) for key in self.plans[part]["items"]} if part in self.plans else {}
