"""Reads a result of weir-bench --json, as tables of cells."""
import re
import statistics

import checked


class Cell:
    """One contender in one workload."""

    def __init__(self, table, data):
        self.table = table
        self.name = data["contender"]
        self.version = data.get("version", "")
        self.lock_free = bool(data.get("lock_free"))
        self.lacks = data.get("lacks", "")
        self.wrong = data.get("wrong", "")
        self.samples = data.get("samples", [])
        self.beside = data.get("beside", [])
        self.events = data.get("events", [])
        self.disturbed = data.get("disturbed", 0)
        self.weir_is = data.get("weir_is")
        self.percentiles = data.get("percentiles_ns", {})
        self.histogram = data.get("histogram", [])
        self.series = data.get("series", [])
        self.series_ms = data.get("series_ms", 0)

    @property
    def ours(self):
        return self.name.startswith("weir")

    @property
    def floor(self):
        return "floor" in self.name

    @property
    def measured(self):
        return bool(self.samples) and not self.wrong

    @property
    def median(self):
        return statistics.median(self.samples)

    def quantile(self, q):
        ordered = sorted(self.samples)
        at = q * (len(ordered) - 1)
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (at - low) * (ordered[high] - ordered[low])

    @property
    def beside_median(self):
        return statistics.median(self.beside) if self.beside else None

    @property
    def events_median(self):
        return statistics.median(self.events) if self.events else None

    @property
    def kind(self):
        if self.ours:
            return "weir"
        return "floor" if self.floor else "free" if self.lock_free else "lock"


class Table:
    """One workload."""

    def __init__(self, data, events):
        self.events_name = "" if events == "none" else events
        self.suite = data["suite"]
        self.workload = data["workload"]
        self.unit = data["unit"]
        self.lower = data["better"] == "lower"
        self.beside_unit = data.get("beside_unit", "")
        self.series_unit = data.get("series_unit", "")
        self.left, self.right, self.hogs = data["left"], data["right"], data.get("hogs", 0)
        self.oversubscribed = bool(data.get("oversubscribed"))
        self.cells = [Cell(self, cell) for cell in data["cells"]]

    @property
    def latency(self):
        return any(cell.histogram for cell in self.cells)

    @property
    def measured(self):
        return [cell for cell in self.cells if cell.measured]

    def ranked(self):
        """The best first."""
        return sorted(self.measured, key=lambda cell: cell.median if self.lower else -cell.median)

    def cell(self, name):
        return next((cell for cell in self.measured if cell.name == name), None)


# By the model of family 6, as Linux names them (arch/x86/include/asm/intel-family.h).
INTEL_XEON = {"85": "Skylake or Cascade Lake", "106": "Ice Lake", "143": "Sapphire Rapids", "207": "Emerald Rapids",
              "173": "Granite Rapids"}


class Results:
    def __init__(self, path):
        data = checked.read(path)
        self.machine = data["machine"]
        self.events = data.get("events", "none")
        self.repeat, self.duration_ms = data["repeat"], data["duration_ms"]
        self.pin = data.get("pin", "none")
        self.absent = data.get("absent", [])
        self.tables = [Table(table, self.events) for table in data["tables"]]

    @property
    def processor(self):
        """
        The name of the processor, without trade marks, frequency and number of cores. Where a virtual
        machine hides the model, the generation of its cores stands in its place.
        """
        name = self.machine["processor"]
        short = " ".join(re.sub(r"\([^)]*\)|\bCPU\b.*|@.*|\b\d+-Core\b.*", "", name).split()) or name
        if short == "AMD EPYC":
            return f"{short} {self.generation_of_epyc()}".strip()
        if short == "Intel Xeon Processor":
            return f"Intel Xeon {INTEL_XEON.get(str(self.machine.get('model', '')), '')}".strip()
        return short

    def generation_of_epyc(self):
        """
        By its family and model. Older results do not have these; of them only Zen 5 is known, because it
        alone has a first data cache of 48 KiB.
        """
        family, model = (str(self.machine.get(key, "")) for key in ("family", "model"))
        if family == "25":
            return "Zen 4" if model.isdigit() and int(model) >= 16 else "Zen 3"
        large = any(cache.get("level") == "1" and cache.get("type") == "Data" and cache.get("size") == "48K"
                    for cache in self.machine.get("caches", []))
        return "Zen 5" if family == "26" or large else ""

    def suites(self):
        return list(dict.fromkeys(table.suite for table in self.tables))

    def of(self, suite):
        return [table for table in self.tables if table.suite == suite]

    def table(self, suite, workload):
        return next((table for table in self.of(suite) if table.workload == workload), None)

    def versions(self):
        """The version of each rival that has one."""
        return {cell.name: cell.version for table in self.tables for cell in table.cells
                if cell.version and not cell.ours}

    def disturbed(self):
        return sum(cell.disturbed for table in self.tables for cell in table.cells)

    def runs(self):
        return sum(len(cell.samples) for table in self.tables for cell in table.cells)


def figure(value):
    """Three significant digits, with commas between thousands."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2 if value >= 0.9995 else 3
    return f"{value:,.{decimals}f}"


def duration(ns):
    for limit, divisor, unit in ((1e9, 1e9, "s"), (1e6, 1e6, "ms"), (1e4, 1e3, "µs")):
        if ns >= limit:
            return f"{figure(ns / divisor)} {unit}"
    return f"{figure(ns)} ns"
