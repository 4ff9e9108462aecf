"""The mutants of orders and validations, and the tables that say which check notices each of them."""
import collections
import re

LAYERS = ("weir/sync", "weir/reclaim", "weir/metrics", "weir/ring", "weir/store", "weir/shm", "weir/var", "weir/queue", "weir/inspect", "weir/run", "weir/data",
         "flow/tuples", "flow/areas", "flow/table", "mpi/ranks", "urcu/rcu")
HEADERS = ("include/weir/read_section.h", "include/weir/ring_port.h", "include/weir/var_cache.h")  # Programs contain their code.
SOURCE = re.compile(rf"lib/({'|'.join(LAYERS)})/[a-z0-9_]+\.[ch]|{'|'.join(map(re.escape, HEADERS))}")

# The next weaker orders of each operation: several if they drop different guarantees.
WEAKER = {
    "load": {"acquire": ["relaxed"], "seq_cst": ["acquire"]},
    "store": {"release": ["relaxed"], "seq_cst": ["release"]},
    "rmw": {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"], "seq_cst": ["acq_rel"],
            "acquire_or_acquire": ["acquire", "relaxed_or_acquire"],
            "release_or_acquire": ["release", "relaxed_or_acquire"],
            "acq_rel_or_acquire": ["acq_rel", "acquire_or_acquire", "release_or_acquire"]},
}
OPERATION = re.compile(r"\bweiri_(load|store|exchange|cas|fetch_[a-z]+)_"
                       r"(acq_rel_or_acquire|acquire_or_acquire|release_or_acquire|acquire|release|acq_rel|seq_cst)\b(?=\()")
FENCES = [(re.compile(r"\bweiri_fence_(light|seq_cst)\(\)"), "(void)0"), (re.compile(r"\bweiri_fence_heavy\(\)"), "1")]
# The same in public headers, which know no names of the library's. The order stands behind the other arguments.
BUILTIN = re.compile(r"\b__atomic_(load|store)_n\((?:(?!__ATOMIC_)[^;])*\b__ATOMIC_(ACQUIRE|RELEASE|SEQ_CST)\b")
BUILTIN_CAS = re.compile(r"\b__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST\b")
BUILTIN_FENCE = re.compile(r"\b__atomic_signal_fence\(__ATOMIC_SEQ_CST\)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)

# `replacement` replaces the text from `start` to `end`. The first three fields identify a mutant, and the tables name it by them.
Mutant = collections.namedtuple("Mutant", "file text change line start end replacement is_order")


def key_of(mutant):
    return mutant[:3]


def without_comments(source):
    """Returns the source with spaces for its comments, so that all offsets stay."""
    return COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def mutants_of_orders(file, source):
    code = without_comments(source)
    for match in OPERATION.finditer(code):
        kind = match.group(1) if match.group(1) in ("load", "store") else "rmw"
        for weaker in WEAKER[kind].get(match.group(2), []):
            name = f"weiri_{match.group(1)}_{weaker}"
            yield mutant(file, source, match, name, f"{match.group()} -> {name}", True)
    for pattern, replacement in FENCES:
        for match in pattern.finditer(code):
            yield mutant(file, source, match, replacement, f"{match.group()} dropped", True)
    yield from mutants_of_builtins(file, source, code)


def mutants_of_builtins(file, source, code):
    for match in BUILTIN.finditer(code):
        for weaker in WEAKER[match.group(1)][match.group(2).lower()]:
            name = f"__ATOMIC_{weaker.upper()}"
            start = match.end() - len(f"__ATOMIC_{match.group(2)}")
            yield mutant_at(file, source, (start, match.end()), name, f"{source[start:match.end()]} -> {name}", True)
    for match in BUILTIN_CAS.finditer(code):
        weaker = "__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE"
        yield mutant(file, source, match, weaker, f"{match.group()} -> {weaker}", True)
    for match in BUILTIN_FENCE.finditer(code):
        yield mutant(file, source, match, "(void)0", f"{match.group()} dropped", True)


def mutant(file, source, match, replacement, change, is_order=False):
    return mutant_at(file, source, match.span(), replacement, change, is_order)


def mutant_at(file, source, span, replacement, change, is_order):
    line = source.count("\n", 0, span[0])
    return Mutant(file, source.splitlines()[line].strip(), change, line + 1, *span, replacement, is_order)


def mutants_of_validations(file, source, rows):
    for _, text, replacement in (row for row in rows if row[0] == file):
        for match in re.finditer(re.escape(text), source):
            yield mutant(file, source, match, replacement, f"{text} -> {replacement}")


def told_apart(mutants, key=key_of):
    """Yields the mutants with distinct keys. Two equal lines of a file give equal keys, and the change of the second is marked (2)."""
    seen = collections.Counter()
    for m in mutants:
        seen[key(m)] += 1
        count = seen[key(m)]
        yield m if count == 1 else m._replace(change=f"{m.change} ({count})")


def all_mutants(sources, validations):
    """Yields the mutants of each source: its orders, its fences, its validations."""
    listed = {row[0] for row in validations}
    for file in sorted(name for name in sources if SOURCE.fullmatch(name) or name in listed):
        orders = mutants_of_orders(file, sources[file]) if SOURCE.fullmatch(file) else ()
        yield from told_apart([*orders, *mutants_of_validations(file, sources[file], validations)])


def rows_of(path):
    """Returns the rows of a table of tab-separated columns, without comment lines, which start with #."""
    return [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]


def explained_in(tables):
    return {(file, text, change): reason for file, text, change, reason in rows_of(tables / "survivors.tsv")}


class Killers:
    """killers.tsv: file, line of source, change, and the check that noticed (its kind, its program, and what failed in it)."""

    def __init__(self, tables):
        self.path = tables / "killers.tsv"
        self.read()

    def read(self):
        self.found = {tuple(row[:3]): row[3] for row in rows_of(self.path)}

    def note(self, mutant, killer, mutants):
        """
        Writes the killer of a mutant, or removes its row if killer is None. The rows are in the order of all mutants. Rows of mutants
        that no longer exist are dropped, and rows that another run has added stay.
        """
        self.read()
        self.found.pop(key_of(mutant), None)
        if killer is not None:
            self.found[key_of(mutant)] = killer
        heading = [line for line in self.path.read_text().splitlines() if line.startswith("#")]
        rows = ["\t".join((*key_of(m), self.found[key_of(m)])) for m in mutants if key_of(m) in self.found]
        self.path.with_suffix(".new").write_text("\n".join(heading + rows) + "\n")
        self.path.with_suffix(".new").replace(self.path)
