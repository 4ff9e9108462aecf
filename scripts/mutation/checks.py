"""Which checks may notice a mutant, and what they say."""
import collections
import os
import re
import shutil
import signal
import subprocess
import sys

import limits

Check = collections.namedtuple("Check", "kind program scope")  # kind: of trees.KINDS; scope: of a model program, or a test; "": all

OUT_OF_TIME = "out of time"
LOOK = "100"  # executions of each search. Most mutants fail in them, and a program takes a second or two.
TIMES = 5  # A check ran out of time when it takes so many times what it takes on the unchanged sources.
ATTEMPT = 30  # The processor time of one scope or test. A check that needs more is taken for none that notices.
ATTEMPTS = 8  # at checks that noticed other mutants of the file

NOT_COMPILED = "(does not compile)"


class NotCompiled(Exception):
    """A mutant that is none."""


# The unit tests that drive a layer hard enough to notice.
NOTICING = {
    "sync": ("list", "named_store", "park", "cancel", "eventcount", "queue_races", "signal"),
    "reclaim": ("reclaim", "crowd", "asymmetric", "var", "snapshot", "commit", "list"),
    "metrics": ("metrics",),
    "ring": ("ring", "ring_list", "priority_queue", "mpsc", "spsc", "queue"),
    "var": ("var", "named_store", "snapshot", "commit", "txn", "watch", "var_history"),
    "queue": ("queue", "queue_op", "queue_async", "queue_batch", "queue_close", "queue_fair", "queue_races", "queue_readiness", "select", "shuffle"),
    "run": ("deque", "pool", "coordinator", "gate", "countdown", "queue_runner", "signal", "session"),
    "lib/queue/area": ("staging", "map_staging", "barrier", "dump_area"),
    "lib/queue/calls": ("queue", "queue_op", "queue_yield", "queue_stats", "queue_close", "queue_fair", "queue_races", "queue_recordless"),
    "lib/sync/pending": ("pending", "queue_op", "queue_recordless", "queue_async", "select", "queue_stats", "queue_fair", "staging", "barrier"),
    "lib/sync/pending_wait": ("pending", "queue_op", "queue_recordless", "queue_async", "select"),
    "lib/sync/request": ("pending", "staging", "barrier", "map_staging"),
    "lib/sync/waitable": ("pending", "staging", "barrier", "map_staging"),
    "lib/queue/barrier": ("barrier",),
    "lib/queue/barrier_part": ("barrier",),
    "lib/queue/map_entry": ("map_staging",),
    "lib/queue/map_staging": ("map_staging",),
    "lib/queue/announce": ("dump",),
    "lib/queue/dump": ("dump", "dump_area"),
    "lib/queue/index_set": ("index_set", "shuffle"),
    "lib/queue/pump": ("queue_stats", "queue", "queue_op", "queue_batch", "queue_close", "queue_fair", "queue_races", "select"),
    "lib/queue/registry": ("dump", "dump_area"),
    "lib/queue/right": ("critical_section",),
    "lib/queue/select": ("select", "queue_op"),
    "lib/queue/stats": ("queue_stats",),
    "lib/queue/staging": ("staging",),
    "lib/queue/store_priority": ("queue_priority", "queue_batch", "conformance_priority"),
    "lib/queue/store_right": ("critical_section", "dump"),
    "lib/queue/store_shuffle": ("shuffle", "queue_batch", "conformance_shuffle"),
    "lib/queue/tree": ("tree", "staging", "map_staging", "barrier"),
    "lib/reclaim/eras": ("stalls",),
    "lib/reclaim/stall": ("stalls",),
    "lib/run/critical_section": ("critical_section",),
    "lib/sync/beacon": ("queue_readiness", "watch"),
    "lib/sync/references": ("named_store", "staging", "map_staging"),
    "lib/sync/waiters": ("waiters", "queue", "staging"),
    "lib/var/change": ("combine", "scatter", "elementwise"),
    "lib/var/combine": ("combine", "scatter"),
    "lib/var/spares": ("combine",),
    "lib/var/stalls": ("stalls",),
}


# The programs of the model checker that a layer, or a file of it, runs under; the one that most likely notices first.
SCOPES = {
    "sync": ("sync", "queue", "coordinator"),
    "reclaim": ("reclaim", "var", "queue", "sync"),
    "metrics": ("metrics",),
    "ring": ("ring", "queue"),
    "var": ("var",),
    "queue": ("store", "queue", "readiness", "select"),
    "run": ("sync", "coordinator"),
    "lib/reclaim/eras": ("stalls",),
    "lib/reclaim/record": ("reclaim", "metrics", "var", "queue", "sync"),
    "lib/reclaim/stall": ("stalls",),
    "lib/ring/multi_queue": ("multi_queue",),
    "lib/ring/priority_queue": ("priority", "store"),
    "lib/ring/ring_list": ("ring_list", "eras"),
    "lib/ring/walk": ("ring", "store", "queue"),
    "lib/queue/announce": ("registry",),
    "lib/queue/calls": ("queue", "select", "readiness", "store"),
    "lib/queue/op": ("queue", "select", "readiness", "store"),
    "lib/queue/pump": ("queue", "select", "readiness", "store"),
    "lib/queue/putback": ("store", "queue", "readiness", "select", "eras"),
    "lib/queue/registry": ("registry",),
    "lib/queue/right": ("critical_section",),
    "lib/queue/select": ("select",),
    "lib/sync/cancel": ("cancel", "queue", "coordinator"),
    "lib/sync/list": ("list", "queue", "eras"),
    "lib/sync/hash_list": ("named_store", "eras"),
    "lib/sync/beacon": ("readiness", "watch"),
    "lib/sync/references": ("named_store", "staging", "map_staging"),
    "lib/sync/waiters": ("waiters", "queue"),
    "lib/var/named_store": ("named_store",),
    "lib/var/combine": ("combine", "eras"),
    "lib/var/commit": ("var", "commit", "txn", "watch", "combine", "eras"),
    "lib/var/history": ("var", "txn"),
    "lib/var/install": ("var", "watch", "eras"),
    "lib/var/spares": ("spares", "combine"),
    "lib/var/stalls": ("stalls",),
    "lib/var/txn": ("txn",),
    "lib/var/watch": ("watch",),
    "lib/var/chunks": ("table",),
    "lib/var/table": ("table",),
    "lib/queue/area": ("staging", "barrier"),
    "lib/sync/pending": ("pending", "queue", "select", "staging", "barrier", "watch"),
    "lib/sync/pending_wait": ("pending", "queue", "select"),
    "lib/sync/request": ("pending", "staging", "barrier", "watch"),
    "lib/sync/waitable": ("pending", "staging", "barrier", "watch"),
    "lib/queue/barrier": ("barrier",),
    "lib/queue/barrier_part": ("barrier",),
    "lib/queue/map_entry": ("map_staging",),
    "lib/queue/map_staging": ("map_staging",),
    "lib/queue/staging": ("staging",),
    "lib/queue/store_right": ("critical_section",),
    "lib/queue/tree": ("staging", "eras"),
    "lib/run/critical_section": ("critical_section",),
    "lib/run/deque": ("deque",),
    "lib/run/coordinator": ("coordinator",),
    "lib/run/inbox": ("inbox", "pool"),
    "lib/run/pool": ("pool",),
    "lib/run/published": ("published",),
    "lib/run/queue_runner": ("queue_runner",),
    "lib/run/roster": ("roster", "coordinator"),
    "lib/run/worker": ("pool",),
}


def programs_of(file, kind):
    table = SCOPES if kind == "model" else NOTICING
    return table.get(file.rsplit(".", 1)[0], table[file.split("/")[1]])


def kinds_of(mutant):
    """
    In this order, after the look. This machine's own order of memory would hide almost all weaker orders, so for these the unit tests
    run under ThreadSanitizer.
    """
    return ("model", "tsan") if mutant.is_order else ("unit", "model")


def check_of(killer):
    """The check that killers.tsv names, or None: one that ran out of time, or crashed, does not say in which scope."""
    words = killer.split()
    return Check(*words) if len(words) == 3 else None


def likely_first(mutant, killers):
    """What noticed this mutant before; then what noticed most others of its file."""
    own = killers.get(mutant[:3])
    others = collections.Counter(killer for key, killer in killers.items() if key[0] == mutant.file and killer != own)
    found = [check_of(killer) for killer in [own or "", *(killer for killer, _ in others.most_common(ATTEMPTS))]]
    return [check for check in found if check is not None and check.kind in kinds_of(mutant)]


Outcome = collections.namedtuple("Outcome", "killer seconds")  # killer: None, "" or what failed, or "out of time"


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def outcome_of(command, seconds, environment):
    """
    Runs a check up to its first failure. Processor time is limited, so that a busy machine makes no kill, and how long it may do next
    to nothing.
    """
    # The harder limit is later: where both are one, the kernel ends a process as if it had crashed.
    limited = ["sh", "-c", 'ulimit -St "$0"; ulimit -Ht $(($0 + 5)); exec "$@"', str(int(seconds)), *command]
    process = subprocess.Popen(limited, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               errors="replace", start_new_session=True,
                               env={**os.environ, **environment})
    guard = limits.Guard(process, seconds, limits.HANG_SECONDS)
    failed = None
    for line in process.stdout:
        if re.match(r"FAIL(ED)? ", line):
            failed = line.split()[1].rstrip(":")
            end_group(process)
            break
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    guard.stop()
    process.returncode = os.waitstatus_to_exitcode(status)
    spent = usage.ru_utime + usage.ru_stime
    end_group(process)
    if failed is not None:
        return Outcome(failed, spent)
    if guard.why is not None or process.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
        return Outcome(OUT_OF_TIME, spent)
    return Outcome(None if process.returncode == 0 else "", spent)


def address_space_prefix():
    """ThreadSanitizer cannot map its memory where a kernel randomizes addresses widely."""
    return ["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []


def command_of(copy, check):
    command = [*(address_space_prefix() if check.kind == "tsan" else []), *copy.tests[check.kind][check.program]]
    if not check.scope:
        return command
    return [*command, check.scope] if check.kind == "model" else [*command, "--filter", check.scope.replace(".", "/", 1)]


def run(copy, check, seconds, look=False):
    """look: at what shows at once, of the model checker's programs."""
    return outcome_of(command_of(copy, check), seconds, {"TSAN_OPTIONS": "halt_on_error=1", **({"WEIR_MODEL_FIRST": LOOK} if look else {})})


class Sound:
    """What noticed a mutant must pass on the unchanged sources: each check is run on these when it first notices one."""

    def __init__(self, timeout):
        self.timeout = timeout
        self.seen = set()

    def confirm(self, copy, mutant, check, late):
        """late: it noticed by running out of time. Meanwhile the mutant is taken out of the copy."""
        if check in self.seen:
            return
        copy.restore(mutant)
        outcome = run(copy, check, self.timeout / TIMES if late else self.timeout) if copy.make_check(check) else Outcome("no build", 0)
        if outcome.killer is not None:
            sys.exit(f"mutate: {' '.join(check)} fails on the unchanged sources: {outcome.killer}")
        self.seen.add(check)
        copy.write(mutant)


def killer_of(copy, mutant, killers, sound, kinds):
    """What notices first; None: a survivor."""
    copy.write(mutant)
    try:
        return (attempted(copy, mutant, killers, sound, kinds) or examined(copy, mutant, sound, ["model"], True)
                or examined(copy, mutant, sound, kinds))
    except NotCompiled:
        return NOT_COMPILED
    finally:
        copy.restore(mutant)


def attempted(copy, mutant, killers, sound, kinds):
    for check in likely_first(mutant, killers):
        if check.kind in kinds and check.program in copy.tests[check.kind]:
            killer = made_and_run(copy, check, ATTEMPT).killer
            # A runner that has no such test fails, too, and names none.
            if killer not in (None, "", OUT_OF_TIME) or (killer == "" and check.kind == "model"):
                check = check._replace(scope=killer or check.scope)
                sound.confirm(copy, mutant, check, False)
                return " ".join(check)
    return None


def examined(copy, mutant, sound, kinds, look=False):
    for kind in (kind for kind in kinds_of(mutant) if kind in kinds):
        for program in programs_of(mutant.file, kind):
            killer = made_and_run(copy, Check(kind, program, ""), sound.timeout, look).killer
            if killer is not None:
                late = killer == OUT_OF_TIME
                sound.confirm(copy, mutant, Check(kind, program, "" if late else killer), late)
                return f"{kind} {program} {killer}".rstrip()
    return None


def made_and_run(copy, check, seconds, look=False):
    if not copy.make_check(check):
        raise NotCompiled
    return run(copy, check, seconds, look)
