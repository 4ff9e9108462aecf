"""Reads the file that weir-bench --json wrote, and refuses one that is damaged: Bad names the file,
the line and the column."""
import json
import math
import pathlib
import re

FORMAT = "weir-bench 1"
SUITES = pathlib.Path(__file__).resolve().parent.parent / "suites.c"


class Bad(ValueError):
    """A file that is no result of weir-bench."""


class Place(dict):
    """An object of the file, which knows where it begins."""


class Decoder(json.JSONDecoder):
    def __init__(self):
        super().__init__(parse_constant=self.refuse)

        def parse_object(start, *rest):
            value, end = json.decoder.JSONObject(start, *rest)
            value = Place(value)
            value.at = start[1] - 1
            return value, end

        self.parse_object = parse_object
        # The scanner in C ignores parse_object.
        self.scan_once = json.scanner.py_make_scanner(self)

    @staticmethod
    def refuse(word):
        raise ValueError(f"{word} is no number of JSON")


def suites():
    """Returns the names of weir-bench's suites."""
    return re.findall(r"\bX\((\w+)\)", SUITES.read_text())


# ---- what is expected ----


def is_text(value):
    return isinstance(value, str) and value.strip() != ""


def is_number(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and math.isfinite(value) and value >= 0)


def is_count(value):
    return is_number(value) and isinstance(value, int)


def is_numbers(value):
    return isinstance(value, list) and all(map(is_number, value))


def is_objects(value):
    return isinstance(value, list) and all(isinstance(one, Place) for one in value)


def is_interval(value):
    return is_numbers(value) and len(value) == 3 and 0 < value[0] <= value[2] and value[1] > 0


class Reader:
    def __init__(self, path):
        self.path = path
        try:
            self.text = path.read_bytes().decode()
        except UnicodeDecodeError as error:
            self.text = error.object[:error.start].decode()
            self.fault(error.start, "is not UTF-8")

    def fault(self, at, words):
        line, column = self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at)
        raise Bad(f"{self.path}:{line}:{column}: {words}")

    def need(self, place, where, name, holds, expected):
        if not holds(place.get(name)):
            words = f'there is no "{name}"'
            if name in place:
                words = f'"{name}" is {json.dumps(place[name])[:40]}'
            self.fault(place.at, f"{where}{words}, expected {expected}")
        return place[name]

    def allow(self, place, where, name, holds, expected):
        if name in place:
            self.need(place, where, name, holds, expected)

    def decode(self):
        if not self.text.strip():
            self.fault(0, "the file is empty")
        try:
            return Decoder().decode(self.text)
        except json.JSONDecodeError as error:
            cut = error.pos >= len(self.text.rstrip()) or error.msg.startswith("Unterminated")
            self.fault(error.pos, "the file ends in the middle of a value" if cut
                       else f"is not JSON: {error.msg}")
        except (ValueError, RecursionError) as error:
            self.fault(0, f"is not JSON: {error}")

    def check_machine(self, machine):
        self.need(machine, "machine: ", "processor", is_text, "the name of a processor")
        self.need(machine, "machine: ", "processors", is_count, "the number of processors")
        self.allow(machine, "machine: ", "date", lambda value: isinstance(value, str), "a date")

    def check_cell(self, cell, where):
        name = self.need(cell, where, "contender", is_text, "the name of a contender")
        if "wrong" in cell:
            self.need(cell, f"{where}{name}: ", "wrong", is_text, "what was wrong")
            return
        self.need(cell, f"{where}{name}: ", "samples", is_numbers, "a list of numbers")
        self.allow(cell, f"{where}{name}: ", "weir_is", is_interval,
                   "a ratio between the ends of its interval")
        self.allow(cell, f"{where}{name}: ", "disturbed", is_count, "a number of repetitions")

    def check_table(self, table, known):
        suite = self.need(table, "", "suite", is_text, "the name of a suite")
        if suite not in known:
            self.fault(table.at, f'the suite "{suite}" is unknown; weir-bench has '
                       f'{", ".join(known)}')
        workload = self.need(table, f"{suite}: ", "workload", is_text, "the name of a workload")
        where = f"{suite}/{workload}: "
        self.need(table, where, "unit", is_text, "the unit of the samples")
        self.need(table, where, "better", lambda value: value in ("lower", "higher"),
                  '"lower" or "higher"')
        for name in ("left", "right"):
            self.need(table, where, name, is_count, "a number of threads")
        self.allow(table, where, "hogs", is_count, "a number of threads")
        for cell in self.need(table, where, "cells", lambda value: value and is_objects(value),
                              "a list of contenders"):
            self.check_cell(cell, where)

    def check(self):
        data = self.decode()
        if not isinstance(data, Place) or "format" not in data:
            self.fault(0, "is not a result of weir-bench --json")
        self.need(data, "", "format", lambda value: value == FORMAT, f'"{FORMAT}"')
        self.check_machine(self.need(data, "", "machine", lambda value: isinstance(value, Place),
                                     "the description of a machine"))
        for name in ("repeat", "duration_ms"):
            self.need(data, "", name, is_count, "a number")
        known = suites()
        for table in self.need(data, "", "tables", lambda value: value and is_objects(value),
                               "a list of workloads"):
            self.check_table(table, known)
        return data


def read(path):
    """Returns the objects of the file. Raises Bad, or OSError if the file cannot be read."""
    return Reader(path).check()
