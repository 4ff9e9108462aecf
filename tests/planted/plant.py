#!/usr/bin/env python3
"""Copies a source with a fault in it.

usage: plant.py INPUT OUTPUT TEXT REPLACEMENT [TEXT REPLACEMENT]...

Each TEXT must stand in the source exactly once; in it, blanks and newlines are all the same.
"""
import re
import sys


def main():
    source, output, *pairs = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for wanted, replacement in zip(pairs[::2], pairs[1::2]):
        text, count = re.subn(r"\s+".join(map(re.escape, wanted.split())), lambda _: replacement, text)
        if count != 1:
            sys.exit(f"{source} has this text {count} times: {wanted}")
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


main()
