"""Makes the page of a result: one HTML file that needs no network and no script."""
import html
import math

import model
import plots
from results import duration, figure

STYLE = """
:root{color-scheme:light dark;--bg:#fbfbfd;--card:#fff;--ink:#1d2433;--quiet:#5d6778;\
--edge:#e2e6ee;--weir:#0a7d5a;--bad:#b3261e;--warn:#8a5a00;--warnbg:#fff4dc}
@media(prefers-color-scheme:dark){:root{--bg:#12151c;--card:#1a1f29;--ink:#e7eaf0;--quiet:#a3adbd;\
--edge:#2c3340;--weir:#35c692;--bad:#ff8a80;--warn:#f0c36d;--warnbg:#2d2613}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);\
font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1220px;margin:0 auto;padding:28px 24px 80px}h1{font-size:27px;margin:0 0 4px}\
h2{font-size:21px;margin:44px 0 4px;padding-top:14px;border-top:1px solid var(--edge)}
h3{font-size:16px;margin:26px 0 6px}p{max-width:80ch;margin:6px 0 12px}\
.quiet,.note{color:var(--quiet)}.note{font-size:13.5px}
nav a{margin-right:14px}a{color:var(--weir)}.grid{display:grid;\
grid-template-columns:repeat(auto-fill,minmax(min(500px,100%),1fr));gap:18px;margin:14px 0}
.card{background:var(--card);border:1px solid var(--edge);border-radius:10px;\
padding:16px 16px 8px;overflow-x:auto}.card svg{width:100%;height:auto;display:block}
.wide{max-width:940px;margin:14px 0}.warn{background:var(--warnbg);color:var(--warn);\
border-radius:8px;padding:8px 14px;max-width:90ch;margin:10px 0}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;\
margin:8px 0 14px}th{font-weight:600;text-align:right;color:var(--quiet);padding:3px 12px;\
border-bottom:1px solid var(--edge)}
td{text-align:right;padding:2px 12px;white-space:nowrap}\
th:first-child,td:first-child{text-align:left;padding-left:0}td.l,th.l{text-align:left}\
tr.weir td:first-child{font-weight:700;color:var(--weir)}
.good{color:var(--weir)}.bad{color:var(--bad)}details{margin:6px 0;overflow-x:auto}\
summary{cursor:pointer;padding:3px 0}dl{display:grid;grid-template-columns:max-content 1fr;\
gap:2px 18px;margin:10px 0;font-size:14px}
dt{color:var(--quiet)}dd{margin:0;overflow-wrap:anywhere}\
.key span{display:inline-block;width:11px;height:11px;border-radius:3px;margin:0 5px 0 16px}\
.key span:first-child{margin-left:0}
"""
NAMED_LINES = 6  # rivals with a colour and a name in a plot of lines
TITLES = {
    "ring": "Queues that never wait",
    "priority": "Priority queues",
    "queue": "Queues whose threads sleep",
    "readiness": "Event loops that take items from threads",
    "shuffle": "Queues in random order",
    "variable": "Reading a shared value",
    "snapshot": "Several variables at one instant",
    "transaction": "Several variables changed at one instant",
    "update": "Changing a shared value",
    "train": "Training one model",
    "publish": "Replacing a large value",
    "memory": "Memory while a reader is stopped",
    "wake": "Waking a thread",
    "shm": "Messages between processes",
}
PERCENTILES = ["p50", "p90", "p99", "p99.9", "p99.99", "max"]


def escape(text):
    return html.escape(str(text))


def note_of(table):
    better = "less is better" if table.lower else "more is better"
    crowd = table.left + table.right + table.hogs
    return better + (f"; oversubscribed: {crowd} threads" if table.oversubscribed else "")


def rows_of(table):
    return [{"name": cell.name, "median": cell.median, "low": cell.quantile(0.25),
             "high": cell.quantile(0.75), "kind": cell.kind}
            for cell in table.ranked()]


def bars_of(table, title=None):
    unit = {"Mitems/s": "million items per second", "Mupdates/s": "million updates per second",
            "kversions/s": "thousand versions per second"}
    return plots.bars(title or table.workload, note_of(table), unit.get(table.unit, table.unit),
                      rows_of(table), figure, table.lower)


def pick(names_and_values, lower):
    """
    The names that get a colour: ours, and the best rivals by the geometric mean of their values.
    """
    def mean(values):
        return sum(math.log(max(value, 1e-9)) for value in values) / len(values)
    best = sorted(names_and_values, key=lambda pair: mean(pair[1]) if lower else -mean(pair[1]))
    ours = [name for name, _ in best if name.startswith("weir")]
    return set(ours[:2] + [name for name, _ in best if not name.startswith("weir")][:NAMED_LINES])


# ---- plots of several tables ----


def scaling(tables, places, title, x_axis, y_axis, logarithmic):
    """Draws one line per contender over the tables; places: the labels below the tables."""
    names = dict.fromkeys(cell.name for table in tables for cell in table.measured)
    complete = [(name, [table.cell(name).median for table in tables]) for name in names
                if all(table.cell(name) for table in tables)]
    if len(tables) < 2 or not complete:
        return ""
    named = pick(complete, tables[0].lower)
    at = [index / (len(tables) - 1) for index in range(len(tables))]
    series = [{"name": name, "kind": "weir" if name.startswith("weir") else "other",
               "points": list(zip(at, values)), "grey": name not in named}
              for name, values in complete]
    note = "less is better" if tables[0].lower else "more is better"
    note += note_of_grey(len(complete) - len(named))
    return plots.lines(title, note, x_axis, y_axis, series, list(zip(at, places)),
                       logarithmic=logarithmic)


def note_of_grey(count):
    return f"; grey: {count} more, in the tables below" if count > 0 else ""


def latency_curve(table):
    """Draws the time of an operation over the share of operations that take no longer."""
    def place(share):
        return min(-math.log10(max(1 - share, 1e-5)) / 5, 1)
    cells = [cell for cell in table.measured if cell.histogram]
    if not cells:
        return ""
    named = pick([(cell.name, [cell.percentiles.get("p99", 1), cell.percentiles.get("p99.9", 1)])
                  for cell in cells], True)
    series = []
    for cell in cells:
        total, seen, points = sum(count for _, count in cell.histogram), 0, []
        for top, count in cell.histogram:
            seen += count
            share = min(seen / total, 1 - 0.5 / total)  # the longest of n represents the last nth
            if share >= 0.5 and (not points or place(share) - points[-1][0] > 0.004):
                points.append((place(share), max(top, 1)))
        points.insert(0, (0, max(cell.percentiles.get("p50", 1), 1)))
        series.append({"name": cell.name, "kind": cell.kind, "points": points,
                       "grey": cell.name not in named})
    ticks = [(0, "0 %"), (place(0.9), "90 %"), (place(0.99), "99 %"), (place(0.999), "99.9 %"),
             (place(0.9999), "99.99 %"), (1, "99.999 %")]
    note = "less is better"
    if table.oversubscribed:
        note += f"; oversubscribed: {table.left + table.right + table.hogs} threads"
    note += note_of_grey(len(cells) - len(named))
    return plots.lines(table.workload, note, "share of the operations", "time of an operation",
                       series, ticks,
                       plots.time_label, logarithmic=True, dots=False)


def memory_curve(table):
    cells = [cell for cell in table.measured if cell.series]
    if not cells:
        return ""
    longest = max(len(cell.series) * cell.series_ms for cell in cells)
    series = [{"name": cell.name, "kind": "weir" if cell.ours else "other",
               "points": [(index * cell.series_ms / longest, value)
                          for index, value in enumerate(cell.series)]} for cell in cells]
    ticks = [(step / 4, f"{longest * step / 4:.0f}") for step in range(5)]
    return plots.lines("Memory over time", "one run; the reader is stopped during all of it",
                       "milliseconds", table.series_unit, series, ticks, dots=False)


# ---- tables ----


def ratio_of(cell):
    if cell.weir_is is None or cell.table.cells[0] is cell:
        return "", ""
    low, middle, high = cell.weir_is
    mark = "good" if low > 1 else "bad" if high < 1 else ""
    return f'<span class="{mark}">{figure(middle)}×</span>', f"{figure(low)} – {figure(high)}"


def table_row(table, cell):
    kind = ' class="weir"' if cell.ours else ""
    name = f'<td>{escape(cell.name)}</td><td class="l">{"yes" if cell.lock_free else "no"}</td>'
    if cell.wrong:
        return (f'<tr{kind}>{name}<td class="l bad" colspan="8">WRONG: {escape(cell.wrong)}</td>'
                '</tr>')
    if not cell.measured:
        return f'<tr{kind}>{name}<td class="l quiet" colspan="8">not measured</td></tr>'
    if table.latency:
        values = [duration(cell.percentiles[name]) for name in PERCENTILES]
    else:
        values = [figure(cell.median),
                  f"{figure(cell.quantile(0.25))} – {figure(cell.quantile(0.75))}"]
        if table.beside_unit:
            values.append(figure(cell.beside_median))
    if table.events_name:
        values.append(figure(cell.events_median))
    remarks = [cell.lacks] if cell.lacks else []
    if cell.disturbed:
        remarks.append(f"disturbed: {cell.disturbed} of {len(cell.samples)}")
    cells = "".join(f"<td>{value}</td>" for value in [*values, *ratio_of(cell)])
    return f'<tr{kind}>{name}{cells}<td class="l quiet">{escape("; ".join(remarks))}</td></tr>'


def table_of(table):
    beside = [table.beside_unit] if table.beside_unit else []
    heads = [*PERCENTILES] if table.latency else [table.unit, "quartiles"] + beside
    heads += [f"{table.events_name} per operation"] if table.events_name else []
    heads += ["p99: Weir is" if table.latency else "Weir is", "95 % interval"]
    head = "".join(f"<th>{escape(words)}</th>" for words in heads)
    crowd = " — oversubscribed" if table.oversubscribed else ""
    rows = "".join(table_row(table, cell) for cell in table.cells)
    return (f'<details><summary>{escape(table.workload)} <span class="quiet">'
            f'({escape(table.unit)}){crowd}</span></summary><table><tr><th>contender</th>'
            f'<th class="l">lock-free</th>{head}<th class="l">remarks</th></tr>{rows}</table>'
            '</details>')


# ---- the page ----


def card(plot, wide=False):
    return f'<div class="card{" wide" if wide else ""}">{plot}</div>' if plot else ""


def suite_plots(results, suite):
    tables = results.of(suite)
    square = [table for table in tables if table.unit in ("Mitems/s", "Mupdates/s")
              and "," not in table.workload
              and (table.left == table.right or table.right == 0)]
    readers = [table for table in tables if suite == "variable" and table.right == 0]
    parts = []
    if len(square) > 1:
        places = [table.workload.split()[0] for table in square]
        axis = "writers" if suite == "update" else "producers/consumers"
        parts.append(card(scaling(square, places, "Throughput by the number of threads", axis,
                                  square[0].unit.replace("M", "million ", 1), False), True))
    if len(readers) > 1:
        parts.append(card(scaling(readers, [table.left for table in readers],
                                  "Time of a read by the number of readers", "readers",
                                  "processor ns per read", True), True))
    curves = [card(latency_curve(table), True) for table in tables if table.latency]
    memory = [card(memory_curve(table), True) for table in tables if table.series_unit]
    bars = [card(bars_of(table)) for table in tables if not table.latency and table.measured]
    parts.append(f'<div class="grid">{"".join(bars)}</div>')
    return "".join(parts + memory + curves)


def machine_list(results):
    machine = results.machine
    caches = ", ".join(f"L{c['level']}{'' if c['type'] == 'Unified' else ' ' + c['type'].lower()} "
                       f"{c['size']}" for c in machine.get("caches", []))
    rows = [("processor", f"{machine['processor']}, {machine['processors']} processors"
             + (" (a virtual machine)" if machine.get("virtual") == "yes" else "")),
            ("caches", caches), ("memory", machine.get("memory")),
            ("kernel", machine.get("kernel")), ("frequency governor", machine.get("governor")),
            ("load before", machine.get("load")),
            ("the clock", f"{machine['clock_ns']:.0f} ns per reading, steps of "
             f"{machine.get('clock_step_ns', 0):.0f} ns" if machine.get("clock_ns") else None),
            ("compiler", machine.get("compiler")), ("build", machine.get("flags")),
            ("Weir", f"{machine.get('version', '')}, commit {machine.get('commit', 'unknown')}"),
            ("date", machine.get("date")),
            ("how",
             f"{results.repeat} repetitions of {results.duration_ms} ms, pinned: {results.pin}")]
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
                            for name, value in rows if value) + "</dl>"


def versions(results):
    return ", ".join(sorted(set(results.versions().values())))


def warnings(results):
    found = []
    wrong = [f"{table.suite}/{table.workload}: {cell.name}" for table in results.tables
             for cell in table.cells if cell.wrong]
    if wrong:
        found.append("No figure because of wrong results: " + "; ".join(wrong))
    if results.disturbed():
        found.append(f"{results.disturbed()} of {results.runs()} runs were disturbed by other load "
                     "although they were repeated; the tables mark them.")
    crowded = sum(table.oversubscribed for table in results.tables)
    if crowded:
        found.append(f"{crowded} of {len(results.tables)} workloads had more threads than the "
                     f"{results.machine['processors']} processors. They show how a contender "
                     "behaves when threads are preempted in the middle of an operation, and not "
                     "how it scales.")
    return "".join(f'<p class="warn">{escape(words)}</p>' for words in found)


KEY = ('<p class="note key plot"><span style="background:var(--weir)"></span>Weir'
       '<span style="background:var(--free)"></span>lock-free rivals'
       '<span style="background:var(--lock)"></span>other rivals: a thread that is stopped in the '
       'wrong place blocks the others'
       '<span style="background:var(--floor)"></span>a lower bound, which does less</p>')


def page(results):
    suites = results.suites()
    nav = "".join(f'<a href="#{suite}">{suite}</a>' for suite in suites)
    body = []
    for suite in suites:
        details = "".join(table_of(table) for table in results.of(suite))
        body.append(f'<h2 id="{suite}">{escape(TITLES.get(suite, suite))}</h2>'
                    f'{suite_plots(results, suite)}<h3>All figures</h3>{details}')
    if model.section(results):
        nav += '<a href="#model">model</a>'
    absent = ('<p class="note">Not measured because it is not installed: '
              f'{escape(", ".join(results.absent))}.</p>' if results.absent else "")
    rivals = (f'<p class="note">Rivals: {escape(versions(results))}.</p>'
              if versions(results) else "")
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            'content="width=device-width,initial-scale=1">'
            f"<title>weir-bench: {escape(results.machine['processor'])}</title><style>"
            f"{STYLE}{plots.STYLE}</style></head><body><main>"
            f'<h1>weir-bench</h1><p class="quiet">{escape(results.machine["processor"])}, '
            f'{escape(results.machine.get("date", ""))}</p>'
            f"<nav>{nav}</nav>{machine_list(results)}{warnings(results)}"
            '<p class="note">Bars and dots are medians; whiskers reach from quartile to quartile. '
            "“Weir is 2×” means that Weir is twice as good as that contender, by the ratio of "
            "medians. The 95 % interval comes from resampling the repetitions. docs/benchmarks.md "
            "describes the workloads and the method; weir-bench --explain prints the workloads. "
            f"Every sample is in results.json.</p>{KEY}{rivals}{absent}{''.join(body)}"
            f"{model.section(results)}</main>"
            "</body></html>\n")
