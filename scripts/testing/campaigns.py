"""Mutation testing as items, one for each layer."""
import re
import subprocess

from programs import ROOT, Item, Outcome, ending, run

MUTATE = ROOT / "scripts" / "mutate"
SOURCES = ("lib/", "include/", "stress/", "tests/", "scripts/mut", "meson")
SECONDS = 30 * 24 * 3600  # Of processor time. Each check that a campaign runs has limits of its own.
ORDERS_END = re.compile(r"^(\d+) mutants, (\d+) killed .*; (\d+) explained, (\d+) not; \d+ did not compile$", re.M)
MEANING_END = re.compile(r"^\| all \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| \d+ \|$", re.M)
STALE = re.compile(r"^KILLED, though ", re.M)


def outcome_of(name, words, log, pattern):
    """Counts a mutant as passed if a check notices it or a table explains it."""
    # The checks are in sessions of their own, so the campaign itself seems to be idle.
    ended, text = run([MUTATE, *words], SECONDS, log, hang_seconds=SECONDS)
    found = pattern.search(text)
    used = {"processor": ended.processor, "wall": ended.wall}
    if found is None:
        return Outcome(failed=1, name=name, text=f"{text}{name} {ending(ended)}\n", **used)
    _, killed, explained, survived = map(int, found.groups())
    stale = len(STALE.findall(text))
    failed = survived + stale or (1 if ended.code != 0 else 0)
    return Outcome(killed + explained - stale, failed, text=text if failed else "", name=name, **used)


def campaign_items(kind, options, pattern, layers, logs):
    for layer in layers:
        words = [*options, layer]
        log = logs / kind / f"{layer.strip('/').replace('/', '_')}.log"
        yield Item(layer, lambda layer=layer, words=words, log=log: outcome_of(layer, words, log, pattern), words=" ".join(words),
                   sources=SOURCES)


def order_items(logs):
    listing = subprocess.run([MUTATE, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout
    layers = sorted({"/".join(line.split("/")[:3]) + "/" for line in listing.splitlines()})
    return campaign_items("orders", ["--only"], ORDERS_END, layers, logs)


def meaning_items(logs):
    layers = sorted({str(path.parent.relative_to(ROOT / "lib")) for path in ROOT.glob("lib/*/*/*.c")})
    return campaign_items("meaning", ["--meaning", "--layer"], MEANING_END, layers, logs)
