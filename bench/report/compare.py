"""Finds the rows in which Weir wins in one result, and the contender in another.

A row is a contender in a workload. Its figure is the ratio that weir-bench recorded when it
measured: how many times as good as the contender Weir is, with the 95 % interval. Weir wins if the
interval is above 1, and the contender if it is below 1. If it contains 1, or if there were too few
repetitions for an interval, the row is too close to call. Absolute figures of two machines are not
compared.
"""
import collections
import textwrap

from counted import counted
from results import figure

FEWEST = 3  # With fewer repetitions the interval does not show how far the samples spread.
WIDTH = 100
NAME, COLUMN = 37, 26
NAMED = 12  # Parts of a result that are named as missing; more are only counted.

# Three dicts from a key to a Pair, and the keys of the rows that only one result has.
Comparison = collections.namedtuple("Comparison", "contradicted agreed close only_a only_b")
Key = collections.namedtuple("Key", "suite workload unit ours contender")
Pair = collections.namedtuple("Pair", "a b")


def rows(results):
    """
    Returns the cells with a ratio by their keys. The first cell of a table is Weir's, which the
    others are compared with.
    """
    found = {}
    for table in results.tables:
        for cell in table.cells[1:]:
            if cell.weir_is and cell.measured:
                found.setdefault(Key(table.suite, table.workload, table.unit, table.cells[0].name,
                                     cell.name), cell)
    return found


def winner(cell):
    """Returns 1 if Weir wins, -1 if the contender wins, 0 if it is too close to call."""
    low, _, high = cell.weir_is
    if len(cell.samples) < FEWEST:
        return 0
    return 1 if low > 1 else -1 if high < 1 else 0


def compare(a, b):
    ours, theirs = rows(a), rows(b)
    both = {key: Pair(cell, theirs[key]) for key, cell in ours.items() if key in theirs}
    judged = {key: winner(pair.a) * winner(pair.b) for key, pair in both.items()}
    chosen = [{key: both[key] for key in both if judged[key] == sign} for sign in (-1, 1, 0)]
    return Comparison(*chosen, [key for key in ours if key not in theirs],
                      [key for key in theirs if key not in ours])


# ---- in words ----


def heading(label, results, path):
    machine = results.machine
    words = [machine["processor"], counted(machine["processors"], "processor")]
    words += ["a virtual machine"] if machine.get("virtual") == "yes" else []
    words += [machine["date"]] if machine.get("date") else []
    return f"{label}  {', '.join(words)}: {path}"


def threads(table):
    words = (f"{table.left} + {table.right} threads" if table.right
             else counted(table.left, "thread"))
    return words + (f" beside {table.hogs} that spin" if table.hogs else "")


def ratio(cell):
    low, middle, high = cell.weir_is
    return f"{figure(middle)}x ({figure(low)}-{figure(high)})"


def disturbed(cell):
    """
    Returns the number of repetitions, of the contender or of Weir beside it, that other load
    disturbed.
    """
    return max(cell.disturbed, cell.table.cells[0].disturbed)


def remarks(pair):
    """What else differs between the two measurements of a row, or makes one doubtful."""
    crowded = [label for label, cell in zip("AB", pair) if cell.table.oversubscribed]
    if len(crowded) == 1:
        yield f"oversubscribed only in {crowded[0]}"
    for label, cell in zip("AB", pair):
        if disturbed(cell):
            yield f"disturbed in {label}: {disturbed(cell)} of {len(cell.samples)}"
    if pair.a.version != pair.b.version:
        yield f"{pair.a.version or 'no version'} in A, {pair.b.version or 'no version'} in B"


def listed(contradicted, claims, document):
    """Yields the lines of the contradicted rows, by suite, threads and workload."""
    tables = {}
    for key, pair in contradicted.items():
        of_suite = tables.setdefault((key.suite, threads(pair.a.table)), {})
        of_suite.setdefault(f"{key.workload} ({key.unit})", []).append((key, pair))
    for (suite, crowd), workloads in tables.items():
        yield f"\n{suite}, {crowd}"
        for workload, members in workloads.items():
            yield f"  {workload}"
            for key, pair in members:
                claimed = (key.suite, key.workload, key.contender) in claims
                notes = [f"in {document}"] if claimed else []
                words = "; ".join([*notes, *remarks(pair)])
                ratios = f"{ratio(pair.a):>{COLUMN}} {ratio(pair.b):>{COLUMN}}"
                yield f"    {key.contender:<{NAME}} {ratios}  {words}".rstrip()


def part(key, other):
    """Names the largest part of a result that contains the row and that the other result lacks."""
    if not other.of(key.suite):
        return f"suite {key.suite}"
    table = other.table(key.suite, key.workload)
    if table is None:
        return f"{key.suite}/{key.workload}"
    cells = [cell for cell in table.cells if cell.name == key.contender]
    if not cells and not any(cell.name == key.contender for one in other.tables
                             for cell in one.cells):
        return key.contender
    wrong = any(cell.wrong for cell in [*cells, table.cells[0]])
    return f"{key.suite}/{key.workload}: {key.contender}{' (WRONG)' if wrong else ''}"


def missing(label, keys, other):
    parts = collections.Counter(part(key, other) for key in keys)
    names = [f"{name} ({counted(number, 'row')})" if number > 1 else name
             for name, number in parts.items()]
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    words = f"{label} lacks {counted(len(keys), 'row')}: {', '.join(names[:NAMED] + more)}"
    return textwrap.fill(words, WIDTH, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False)


def summary(found, claims, document):
    close = [Pair(winner(pair.a) == 0, winner(pair.b) == 0) for pair in found.close.values()]
    both = sum(pair.a and pair.b for pair in close)
    loaded = sum(any(map(disturbed, pair)) for pair in found.contradicted.values())
    note = f" ({loaded} disturbed by other load)" if loaded else ""
    yield (f"{counted(len(found.contradicted), 'row')} contradicted{note}, {len(found.agreed)} "
           f"with the same winner, {len(close)} too close to call (in A "
           f"{sum(pair.a for pair in close) - both}, in B {sum(pair.b for pair in close) - both}, "
           f"in both {both})")
    claimed = [sum((key.suite, key.workload, key.contender) in claims for key in rows_of)
               for rows_of in (found.contradicted, found.agreed, found.close)]
    yield (f"of the {counted(len(claims), 'row')} of {document}: {claimed[0]} contradicted, "
           f"{claimed[1]} with the same winner, {claimed[2]} too close to call, "
           f"{len(claims) - sum(claimed)} not in both")


def report(found, a, b, claims, document):
    """Yields lines. claims: suite, workload and contender of the rows that a document shows."""
    if found.contradicted:
        yield ("\nThe winner differs. Weir is so many times as good as the contender "
               "(95 % interval):")
        heads = [f"{label}: {results.processor}"[:COLUMN] for label, results in zip("AB", (a, b))]
        yield f"{'':{NAME + 4}} {heads[0]:>{COLUMN}} {heads[1]:>{COLUMN}}"
        yield from listed(found.contradicted, claims, document)
    yield ""
    yield from summary(found, claims, document)
    if found.only_b:
        yield missing("A", found.only_b, a)
    if found.only_a:
        yield missing("B", found.only_a, b)
