"""Extrapolates the measured points to twice as many processors: fits the universal scalability law.
Every output says that it is a model.

    X(N) = a N / (1 + s (N - 1) + k N (N - 1))          Gunther, 1993

N threads, each on a processor of its own, do X(N) operations per second. `a` is the rate of one
thread alone. `s` (contention) is the share of the work that threads do one after the other. `k`
(coherence) is the cost of each pair of threads, because lines move between their caches. With
y = N / X this is linear in 1/a, s/a and k/a, none of which can be negative. The fit minimises the
squares of the relative errors.

Points with more threads than processors are left out: they show how a scheduler shares processors,
not how an operation scales. Resampling the repetitions gives an interval.

What the model may claim was measured on a machine of 16 processors (docs/benchmarks.md). Fitted to
1 and 2 threads, it was wrong by up to 37 times at 16: from one thread to two, lines begin to move,
and this step says little about the next ones. So a model needs three points, and it reaches to
twice the largest of them. Where a result has four points, the section also shows the check: what
the model says of the last point if it knows only those before.
"""
import itertools
import math
import random
import statistics

import plots
from results import figure

LEAST_POINTS = 3
REACH = 2  # times the largest measured number of threads
RESAMPLES = 200
SHOWN = 8


# ---- the law ----


class Law:
    def __init__(self, a, s, k):
        self.a, self.s, self.k = a, s, k

    def at(self, n):
        return self.a * n / (1 + self.s * (n - 1) + self.k * n * (n - 1))

    @property
    def peak(self):
        """The number of threads with the highest rate; infinite without coherence."""
        return max(1.0, math.sqrt(max(1 - self.s, 0) / self.k)) if self.k > 0 else math.inf


def solve(rows, values):
    """Least squares by the normal equations; None when they have no unique solution."""
    size = len(rows[0])
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(size)]
              + [sum(row[i] * value for row, value in zip(rows, values))]
              for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda row: abs(matrix[row][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        if abs(matrix[i][i]) < 1e-12:
            return None
        for row in range(size):
            if row != i:
                factor = matrix[row][i] / matrix[i][i]
                matrix[row] = [x - factor * y for x, y in zip(matrix[row], matrix[i])]
    return [matrix[i][size] / matrix[i][i] for i in range(size)]


def fit(points, terms=(0, 1, 2)):
    """
    The law that fits the points (N, X) best, with non-negative parameters and only those in
    `terms`.
    """
    best = None
    weighted = [[x / n * term for term in (1, n - 1, n * (n - 1))] for n, x in points]
    for size in range(1, len(terms) + 1):
        for chosen in itertools.combinations(terms, size):
            if 0 not in chosen or size > len(points):
                continue
            solved = solve([[row[i] for i in chosen] for row in weighted], [1.0] * len(points))
            if solved is None or min(solved) < 0 or solved[chosen.index(0)] <= 0:
                continue
            whole = [solved[chosen.index(i)] if i in chosen else 0.0 for i in range(3)]
            error = sum((sum(w * p for w, p in zip(row, whole)) - 1) ** 2 for row in weighted)
            if best is None or error < best[0] - 1e-15:
                best = (error, Law(1 / whole[0], whole[1] / whole[0], whole[2] / whole[0]))
    return best[1] if best else None


class Model:
    """A fitted contender: points, the law, and a band at each number of threads."""

    def __init__(self, name, kind, samples):
        self.name, self.kind, self.samples = name, kind, samples
        self.points = [(n, statistics.median(values)) for n, values in samples]
        self.law = fit(self.points)
        self.laws = [law for law in self.resampled(samples) if law is not None]

    @property
    def fitted(self):
        return self.law is not None and len(self.laws) > 0

    @property
    def farthest(self):
        """The number of threads to which the model reaches."""
        return REACH * self.points[-1][0]

    @staticmethod
    def resampled(samples):
        chance = random.Random(1)
        return [fit([(n, statistics.median(chance.choices(values, k=len(values))))
                     for n, values in samples]) for _ in range(RESAMPLES)]

    def band(self, n):
        values = sorted(law.at(n) for law in self.laws)
        cut = len(values) // 20
        return values[cut], values[-1 - cut]

    def checked(self):
        """
        What a model of all points but the last says of the last, as a multiple of what was
        measured; None with fewer points than that takes.
        """
        if len(self.samples) <= LEAST_POINTS:
            return None
        before = Model(self.name, self.kind, self.samples[:-1])
        n, measured = self.points[-1]
        return before.law.at(n) / measured if before.fitted else None


# ---- from tables to points ----


def rate(table, value):
    """Operations per microsecond of all threads together."""
    if table.unit.startswith("M"):
        return value
    return max(table.left, 1) * 1000 / value  # nanoseconds of each thread


def threads(table):
    return 1 if table.workload == "uncontended" else table.left + table.right


def usable(table):
    plain = ("," not in table.workload and "latency" not in table.workload
             and "beside" not in table.workload)
    shape = table.workload == "uncontended" or table.right in (0, table.left)
    return plain and shape and not table.latency and not table.oversubscribed and not table.hogs


def models(results, suite):
    """
    The models of contenders that were measured with at least LEAST_POINTS numbers of threads, with
    a processor for each thread.
    """
    samples, kinds = {}, {}
    for table in sorted(filter(usable, results.of(suite)), key=threads):
        for cell in table.measured:
            of_cell = samples.setdefault(cell.name, {})
            of_cell[threads(table)] = [rate(table, value) for value in cell.samples if value > 0]
            kinds[cell.name] = cell.kind
    fitted = [Model(name, kinds[name], list(points.items())) for name, points in samples.items()
              if len(points) >= LEAST_POINTS and all(points.values())]
    return [model for model in fitted if model.fitted]


# ---- the section of the page ----

TITLES = {"ring": "queues, producers = consumers", "variable": "reads of a shared value",
          "update": "updates of a shared value"}


def plot(suite, fitted):
    farthest = max(model.farthest for model in fitted)
    numbers = [1 << power for power in range(farthest.bit_length()) if 1 << power <= farthest]
    at = {n: index / (len(numbers) - 1) for index, n in enumerate(numbers)}
    # Ours first, then in the order of the model's rates at the end.
    order = sorted(fitted, key=lambda model: (model.kind != "weir", -model.law.at(farthest)))
    series = [{"name": model.name, "kind": "weir" if model.kind == "weir" else "other",
               "grey": index >= SHOWN,
               "points": [(at[n], model.law.at(n)) for n in numbers if n <= model.farthest]}
              for index, model in enumerate(order)]
    return plots.lines(f"MODEL, not measured: {TITLES.get(suite, suite)}",
                       "an extrapolation; more is better",
                       "threads, each on a processor of its own", "million per second", series,
                       [(at[n], n) for n in numbers], logarithmic=True, dots=False)


def row(model):
    measured = ", ".join(f"{n}: {figure(x)}" for n, x in model.points)
    kind = ' class="weir"' if model.kind == "weir" else ""
    peak = "none" if math.isinf(model.law.peak) else figure(model.law.peak)
    low, high = model.band(model.farthest)
    checked = model.checked()
    return (f"<tr{kind}><td>{plots.escape(model.name)}</td><td class=\"l\">{measured}</td>"
            f"<td>{'' if checked is None else figure(checked)}</td>"
            f"<td>{model.law.s:.3f}</td><td>{model.law.k:.4f}</td><td>{peak}</td>"
            f"<td>{model.farthest}: {figure(model.law.at(model.farthest))} <span class=\"quiet\">"
            f"{figure(low)} – {figure(high)}</span></td></tr>")


def verdict(fitted):
    """A sentence on how well the models said their last points; empty without a check."""
    ratios = sorted(ratio for ratio in (model.checked() for model in fitted) if ratio is not None)
    if not ratios:
        return ""
    return (f'<p class="warn">Checked: {len(ratios)} models that did not know their last point '
            f"said {figure(ratios[0])} to {figure(ratios[-1])} times what was measured there; "
            f"half of them said less than {figure(statistics.median(ratios))} times.</p>")


ASSUMPTIONS = (
    "The universal scalability law, X(N) = aN / (1 + s(N−1) + kN(N−1)), is fitted to the measured "
    "medians of workloads that had a processor for each thread, where there are three or more. It "
    "reaches to twice the largest of them. It assumes that one law holds for all numbers of threads, "
    "that each thread has a core of its own that is as fast as the measured cores, and that the "
    "workload stays the same. It also assumes that moving a cache line between "
    "any two cores costs as much as between the measured ones, although a second socket or another "
    "memory node makes this two to four times as expensive. It does not account for schedulers, or "
    "for anything that was not measured.")


def section(results):
    """HTML for the page; empty when nothing can be fitted."""
    parts = []
    for suite in TITLES:
        fitted = models(results, suite)
        if not fitted:
            continue
        parts.append(f'<h3>{TITLES[suite]}</h3>{verdict(fitted)}<div class="card wide">'
                     f'{plot(suite, fitted)}</div><details><summary>parameters and bands '
                     '<span class="quiet">(million per second)</span></summary><table><tr>'
                     '<th>contender</th><th class="l">measured, by threads</th>'
                     '<th>check: the last point, times the measured</th>'
                     f"<th>s</th><th>k</th><th>peak at</th><th>threads: model</th></tr>"
                     f"{''.join(map(row, fitted))}</table></details>")
    if not parts:
        return ""
    return ('<h2 id="model">A model: twice as many processors</h2><p class="warn">Extrapolated, '
            f'not measured. {ASSUMPTIONS}</p>{"".join(parts)}')
