"""Writes the README's figures and plot, and the kept result and the descriptions of workloads in
docs/benchmarks.md, all between marks."""
import math
import re

import page
import plots
from results import figure

SQUARE = ["1/1", "2/2", "4/4", "8/8"]
READERS = [("1 reader", "1 reader"), ("2 readers", "2"), ("8 readers", "8"),
           ("1 reader beside 1 writer", "1 beside a writer")]
# Ours in the kept result that the library has no more. The page of the result keeps them.
GONE = ("weir mpsc",)
BEST = 7  # rivals in the README's tables; the page has all rivals


class Missing(Exception):
    """A mark is missing, or a result lacks the figures that a document needs."""


def kept(root):
    """Returns the folder of the kept result that README.md names, relative to the root."""
    found = re.search(r"<!-- figures of (\S+);", (root / "README.md").read_text())
    if not found:
        raise Missing("README.md names no kept result")
    return found.group(1)


def blocks(text):
    """Yields the folder of each block of figures in a document: what its first mark names."""
    yield from re.findall(r"<!-- figures of (\S+);[^>]*-->", text)


def with_blocks(text, written):
    """Returns the text with each block of figures replaced by what `written` has for its folder."""
    for folder in blocks(text):
        text = between(text, f"figures of {re.escape(folder)};", written(folder))
    return text


def between(text, mark, inside):
    """Returns the text with everything between the two marks replaced."""
    begin, end = rf"<!-- {mark}[^>]*-->\n", f"<!-- end of {mark.split()[0]} -->"
    if not re.search(begin + ".*?" + re.escape(end), text, re.S):
        raise Missing(f"no marks <!-- {mark} --> ... {end}")
    return re.sub(f"({begin}).*?({re.escape(end)})",
                  lambda found: found.group(1) + inside + found.group(2), text, flags=re.S)


def cell_text(table, name):
    cell = table.cell(name) if table else None
    return figure(cell.median) if cell else "-"


def best_of(tables, wanted):
    """
    Names: ours first, then the best rivals by the geometric mean of their ratios to the best of
    each table.
    """
    names = dict.fromkeys(cell.name for table in tables for cell in table.measured)
    def score(name):
        total = 0.0
        for table in tables:
            best, cell = table.ranked()[0].median, table.cell(name)
            ratio = 100.0
            if cell is not None:
                ratio = (cell.median / max(best, 1e-9) if table.lower
                         else best / max(cell.median, 1e-9))
            total += math.log(max(ratio, 1e-9))
        return total
    ours = [name for name in names if name.startswith("weir") and name not in GONE]
    rivals = sorted((name for name in names if not name.startswith("weir")), key=score)
    return ours + rivals[:wanted]


def columns(results, heads):
    """Each column names the processor, so that its figures cannot be read as those of another."""
    return " | ".join(f"{results.processor}: {head}" for head in heads)


def ring_rows(results):
    """
    Returns the names, the tables, first that of one thread, and whether each contender is
    lock-free.
    """
    shapes = [table for table in (results.table("ring", shape) for shape in SQUARE) if table]
    alone = results.table("ring", "uncontended")
    if not shapes:
        raise Missing("the result has no ring/1/1 and so on")
    free = {cell.name: cell.lock_free for table in shapes for cell in table.cells}
    names = best_of(shapes, BEST)
    names += [name for name in free if name == "mutex ring" and name not in names]
    return names, [alone, *shapes], free


def ring_table(results):
    names, tables, free = ring_rows(results)
    heads = ["one thread, ns per pair", *(shape.workload for shape in tables[1:])]
    heads[-1] += " Mitems/s"
    lines = [f"| queue, capacity or backlog 1024 | lock-free | {columns(results, heads)} |",
             "|---" * (2 + len(heads)) + "|"]
    for name in names:
        values = [cell_text(table, name) for table in tables]
        lines.append(f"| {name} | {'yes' if free[name] else 'no'} | {' | '.join(values)} |")
    return "\n".join(lines), len(free)


def reader_rows(results):
    """Returns the names, pairs of a table and its heading, and what each contender lacks."""
    tables = [(results.table("variable", workload), words) for workload, words in READERS]
    tables = [(table, words) for table, words in tables if table]
    if not tables:
        raise Missing("the result has no variable/1 reader and so on")
    lacks = {cell.name: cell.lacks for table, _ in tables for cell in table.cells}
    ranked = best_of([table for table, _ in tables], len(lacks))
    keep = [name for name in ranked if not lacks[name]][:BEST]
    rest = [name for name in ranked if lacks[name]]
    names = keep + [name for name in rest if name in rest[:BEST] or name in ("mutex", "rwlock")]
    return names, tables, lacks


def reader_table(results):
    names, tables, lacks = reader_rows(results)
    lines = ["| reading a shared value, ns of processor time | keeps the value | "
             f"{columns(results, [words for _, words in tables])} |",
             "|---" * (2 + len(tables)) + "|"]
    for name in names:
        lines.append(f"| {name} | {'no' if lacks[name] else 'yes'} | "
                     f"{' | '.join(cell_text(table, name) for table, _ in tables)} |")
    return "\n".join(lines)


def memory_cells(results):
    """Weir's cell, and those that were measured beside it; None without Weir's."""
    memory = results.table("memory", "a reader is stopped")
    if not memory or not memory.cells[0].measured:
        return None
    return [memory.cells[0], *(cell for cell in memory.measured if not cell.ours)]


def sentences(results):
    words = []
    snapshots = [(k, results.table("snapshot", f"{k} variables")) for k in (2, 3, 8)]
    found = [(str(k), figure(table.cells[0].median)) for k, table in snapshots
             if table and table.cells[0].measured]
    if found:
        words.append(f"A snapshot of {', '.join(k for k, _ in found)} variables beside a thread "
                     f"that commits to all of them takes {', '.join(value for _, value in found)} "
                     "ns.")
    memory = memory_cells(results)
    if memory:
        ours, *rivals = memory
        kept = (f", with at most {figure(max(ours.beside))} MiB waiting to be freed"
                if ours.beside else "")
        others = [f"{cell.name} {figure(cell.median)} thousand" for cell in rivals]
        words.append("While a reader is stopped in the middle of a read, a writer publishes "
                     f"{figure(ours.median)} thousand values of 64 KiB per second{kept}"
                     + (f"; with {', '.join(others)}" if others else "") + ".")
    return "\n".join(words)


def claims(results):
    """
    Returns the suite, the workload and the contender of each row whose figure the documents show
    beside Weir's.
    """
    rings, ring_tables, _ = ring_rows(results)
    readers, reader_tables, _ = reader_rows(results)
    shown = [(table, name) for table in ring_tables for name in rings]
    shown += [(table, name) for table, _ in reader_tables for name in readers]
    shown += [(cell.table, cell.name) for cell in memory_cells(results) or ()]
    return {(table.suite, table.workload, name) for table, name in shown
            if table and table.cell(name) and name != table.cells[0].name}


def figures(results, folder):
    rings, contenders = ring_table(results)
    machine = results.machine
    virtual = ""
    if machine.get("virtual") == "yes":
        virtual = ", a virtual machine, so use them as ratios only"
    return (f"Medians of {results.repeat} interleaved repetitions of {results.duration_ms} ms on "
            f"{machine['processors']} processors of {results.processor}{virtual} "
            f"({machine.get('date', '')}).\nOf {contenders} queues, the table shows Weir's, the "
            f"{BEST} best rivals over the columns P/C (P threads enqueue, C threads dequeue), and a "
            "ring under a mutex. A bounded queue has a capacity of 1024; the backlog of an unbounded "
            "one is kept near that. All queues, with quartiles, intervals and "
            f"latencies, are in [{folder}]({{root}}{folder}).\n\n{rings}\n\n"
            f"{reader_table(results)}\n\n"
            f"{sentences(results)}\n")


def plot(results):
    panels = []
    for shape in SQUARE:
        table = results.table("ring", shape)
        if table:
            names = set(best_of([table], 9))
            rows = [row for row in page.rows_of(table)
                    if row["name"] in names or row["name"] == "mutex ring"]
            panels.append(plots.bars(f"{shape} producers/consumers, {results.processor}",
                                     page.note_of(table), "million items per second", rows, figure))
    return plots.stacked(panels, 2, "throughput of bounded queues of capacity 1024 by the number "
                         "of producers and consumers") + "\n"
