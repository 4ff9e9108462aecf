"""The checks that may notice a mutant, and how they are run."""
import collections
import os
import re
import shutil
import signal
import subprocess
import sys

import limits

# kind: one of trees.KINDS. scope: a scope of a model program, or a test; "": the whole program.
Check = collections.namedtuple("Check", "kind program scope")

OUT_OF_TIME = "out of time"
# The executions of each search in a first look. Most mutants fail in them, and a program takes a
# second or two.
LOOK = "100"
TIMES = 5  # A check runs out of time if it takes so many times as long as on the unchanged sources.
# The processor time of one attempt with one scope or test. A check that needs more does not count
# as noticing.
ATTEMPT = 30
ATTEMPTS = 8  # How many checks that noticed other mutants of the file are attempted first.

NOT_COMPILED = "(does not compile)"


class NotCompiled(Exception):
    """A mutant does not compile."""


# The unit tests that may notice a mutant of a layer, or of one file.
NOTICING = {
    "include/weir/read_section": ("read_section_again", "read_section"),
    "include/weir/ring_port": ("ring",),
    "include/weir/var_cache": ("var_cache",),
    "sync": ("list", "named_store", "park", "cancel", "eventcount", "queue_races", "signal"),
    "reclaim": ("reclaim", "reclaim_budget", "reclaim_threads", "crowd", "asymmetric", "var",
                "snapshot", "commit", "list"),
    "metrics": ("metrics",),
    "ring": ("ring", "ring_list", "priority_queue", "spsc", "queue"),
    "var": ("var", "named_store", "snapshot", "commit", "txn", "watch", "var_history"),
    "store": ("named_store",),
    "shm": ("shm_ring", "shm_ring_deaths", "shm_latest"),
    "inspect": ("dump", "dump_area"),
    "tuples": ("tensor_queue", "queue"),
    "areas": ("staging", "map_staging", "keyed_join"),
    "table": ("table",),
    "queue": ("queue", "queue_operation", "queue_async", "queue_batch", "queue_close", "queue_fair",
              "queue_races", "queue_readiness", "select", "shuffle"),
    "run": ("deque", "pool", "coordinator", "gate", "countdown", "queue_runner",
            "queue_runner_queues", "signal", "session"),
    "data": ("dataset_pairs", "dataset_ahead", "dataset_start", "dataset"),
    "ranks": ("mpi_double",),
    "lib/flow/areas/area": ("staging", "map_staging", "keyed_join", "dump_area"),
    "lib/weir/queue/calls": ("queue", "queue_operation", "queue_yield", "queue_stats",
                             "queue_close", "queue_fair", "queue_races", "queue_recordless"),
    "lib/weir/sync/pending": ("pending", "queue_operation", "queue_recordless", "queue_async",
                              "select", "queue_stats", "queue_fair", "staging", "keyed_join"),
    "lib/weir/sync/pending_wait": ("pending", "queue_operation", "queue_recordless", "queue_async",
                                   "select"),
    "lib/weir/sync/request": ("pending", "staging", "keyed_join", "map_staging"),
    "lib/weir/sync/waitable": ("pending", "staging", "keyed_join", "map_staging"),
    "lib/flow/areas/keyed_join": ("keyed_join",),
    "lib/flow/areas/keyed_join_part": ("keyed_join",),
    "lib/flow/areas/map_entry": ("map_staging",),
    "lib/flow/areas/map_staging": ("map_staging",),
    "lib/weir/queue/announce": ("dump",),
    "lib/weir/inspect/dump": ("dump", "dump_area"),
    "lib/weir/queue/pump": ("queue_stats", "queue", "queue_operation", "queue_batch", "queue_close",
                            "queue_fair", "queue_races", "select"),
    "lib/weir/sync/registry": ("dump", "dump_area"),
    "lib/weir/queue/readiness": ("queue_readiness",),
    "lib/weir/queue/right": ("critical_section",),
    "lib/weir/queue/select": ("select", "queue_operation"),
    "lib/weir/queue/stats": ("queue_stats",),
    "lib/flow/areas/staging": ("staging",),
    "lib/weir/queue/store_priority": ("queue_priority", "queue_batch", "conformance_priority"),
    "lib/weir/queue/store_right": ("critical_section", "dump"),
    "lib/weir/ring/draw": ("shuffle", "conformance_shuffle"),
    "lib/weir/queue/store_shuffle": ("shuffle", "queue_batch", "conformance_shuffle"),
    "lib/flow/areas/tree": ("tree", "staging", "map_staging", "keyed_join"),
    "rcu": ("urcu",),
    "lib/weir/reclaim/budget": ("magazine", "reclaim_budget", "combine"),
    "lib/weir/reclaim/eras": ("stalls",),
    "lib/weir/reclaim/host": ("urcu", "reclaim_budget"),
    "lib/weir/reclaim/magazine": ("magazine", "value"),
    "lib/weir/reclaim/settle": ("settle", "announce"),
    "lib/weir/reclaim/stall": ("stalls",),
    "lib/weir/reclaim/value": ("tensor", "value", "combine", "var"),
    "lib/weir/run/critical_section": ("critical_section",),
    "lib/weir/run/pool_ready": ("pool_ready",),
    "lib/weir/run/ranks": ("ranks",),
    "lib/weir/run/trace_buffer": ("trace",),
    "lib/weir/sync/hash_list": ("hash_list", "named_store"),
    "lib/weir/sync/ready_fd": ("ready_fd", "queue_readiness", "watch"),
    "lib/weir/sync/references": ("named_store", "staging", "map_staging"),
    "lib/weir/sync/waiters": ("waiters", "queue", "staging"),
    "lib/weir/var/cache": ("var_cache", "value"),
    "lib/weir/var/change": ("combine", "scatter", "elementwise"),
    "lib/weir/var/combine": ("combine", "scatter"),
    "lib/weir/var/kind": ("value", "commit", "txn"),
    "lib/weir/var/read_section": ("read_section", "read_section_again", "older_2"),
    "lib/weir/var/snapshot": ("snapshot", "read_section", "commit"),
    "lib/weir/var/spares": ("combine",),
    "lib/weir/var/stalls": ("stalls",),
    "lib/weir/var/value": ("value",),
}


# The programs of the model checker that explore a layer, or one file. The one that most likely
# notices a mutant stands first.
SCOPES = {
    "include/weir/read_section": ("read_section",),
    "include/weir/ring_port": ("ring",),
    "include/weir/var_cache": ("var",),
    "sync": ("sync", "queue", "coordinator"),
    "reclaim": ("reclaim", "var", "queue", "sync"),
    "metrics": ("metrics",),
    "ring": ("ring", "queue"),
    "var": ("var",),
    "store": ("named_store",),
    "shm": ("shm",),
    "inspect": ("registry",),
    "tuples": ("queue",),
    "areas": ("staging", "map_staging", "keyed_join"),
    "table": ("table",),
    "queue": ("store", "queue", "readiness", "select"),
    "run": ("sync", "coordinator"),
    "data": ("window", "iterator"),
    "ranks": (),
    "rcu": ("urcu", "host"),
    "lib/weir/reclaim/budget": ("value", "spares", "reclaim"),
    "lib/weir/reclaim/eras": ("stalls",),
    "lib/weir/reclaim/host": ("host",),
    "lib/weir/reclaim/magazine": ("value",),
    "lib/weir/reclaim/record": ("reclaim", "metrics", "var", "queue", "sync"),
    "lib/weir/reclaim/stall": ("stalls",),
    "lib/weir/reclaim/value": ("value", "var", "combine"),
    "lib/weir/ring/multi_queue": ("multi_queue",),
    "lib/weir/ring/priority_queue": ("priority", "store"),
    "lib/weir/ring/ring_list": ("ring_list", "eras"),
    "lib/weir/ring/spsc": ("spsc",),
    "lib/weir/ring/algorithm": ("ring", "store", "queue"),
    "lib/weir/ring/draw": ("draw", "store"),
    "lib/weir/ring/ltq16": ("ring", "draw", "queue"),
    "lib/weir/ring/ltq64": ("ring", "draw", "queue"),
    "lib/weir/queue/announce": ("registry",),
    "lib/weir/queue/calls": ("queue", "select", "readiness", "store"),
    "lib/weir/queue/operation": ("queue", "select", "readiness", "store"),
    "lib/weir/queue/pump": ("queue", "select", "readiness", "store"),
    "lib/weir/queue/putback": ("store", "queue", "readiness", "select", "eras"),
    "lib/weir/sync/registry": ("registry",),
    "lib/weir/queue/readiness": ("readiness",),
    "lib/weir/queue/right": ("critical_section",),
    "lib/weir/queue/select": ("select",),
    "lib/weir/sync/cancel": ("cancel", "queue", "coordinator"),
    "lib/weir/sync/list": ("list", "queue", "eras"),
    "lib/weir/sync/hash_list": ("named_store", "eras"),
    "lib/weir/sync/ready_fd": ("readiness", "watch"),
    "lib/weir/sync/references": ("named_store", "staging", "map_staging"),
    "lib/weir/sync/waiters": ("waiters", "queue"),
    "lib/weir/store/named_store": ("named_store",),
    "lib/weir/var/combine": ("combine", "eras"),
    "lib/weir/var/commit": ("var", "commit", "txn", "watch", "combine", "eras"),
    "lib/weir/var/cache": ("var",),
    "lib/weir/var/history": ("var", "txn"),
    "lib/weir/var/install": ("var", "watch", "eras"),
    "lib/weir/var/kind": ("value",),
    "lib/weir/var/read_section": ("read_section",),
    "lib/weir/var/snapshot": ("read_section", "var"),
    "lib/weir/var/spares": ("spares", "combine"),
    "lib/weir/var/stalls": ("stalls",),
    "lib/weir/var/txn": ("txn",),
    "lib/weir/var/value": ("value",),
    "lib/weir/var/watch": ("watch",),
    "lib/flow/table/pages": ("table",),
    "lib/weir/reclaim/lineage": ("table",),
    "lib/weir/reclaim/block_pile": ("table",),
    "lib/flow/table/table": ("table",),
    "lib/flow/areas/area": ("staging", "keyed_join"),
    "lib/weir/sync/pending": ("pending", "queue", "select", "staging", "keyed_join", "watch"),
    "lib/weir/sync/pending_wait": ("pending", "queue", "select"),
    "lib/weir/sync/request": ("pending", "staging", "keyed_join", "watch"),
    "lib/weir/sync/waitable": ("pending", "staging", "keyed_join", "watch"),
    "lib/flow/areas/keyed_join": ("keyed_join",),
    "lib/flow/areas/keyed_join_part": ("keyed_join",),
    "lib/flow/areas/map_entry": ("map_staging",),
    "lib/flow/areas/map_staging": ("map_staging",),
    "lib/flow/areas/staging": ("staging",),
    "lib/weir/queue/store_right": ("critical_section",),
    "lib/flow/areas/tree": ("staging", "eras"),
    "lib/weir/run/critical_section": ("critical_section",),
    "lib/weir/run/deque": ("deque",),
    "lib/weir/run/handoff": ("published", "dataflow"),
    "lib/weir/run/meeting": ("meeting",),
    "lib/weir/run/numbers": ("meeting",),
    "lib/weir/run/pool_ready": ("readiness",),
    "lib/weir/run/published_tree": ("published",),
    "lib/weir/run/ranks": ("meeting",),
    "lib/weir/run/spare": ("published", "dataflow"),
    "lib/weir/run/trace_buffer": ("trace",),
    "lib/weir/run/coordinator": ("coordinator",),
    "lib/weir/run/inbox": ("inbox", "pool"),
    "lib/weir/run/pool": ("pool",),
    "lib/weir/run/published": ("published",),
    "lib/weir/run/queue_runner": ("queue_runner",),
    "lib/weir/run/members": ("members", "coordinator"),
    "lib/weir/run/worker": ("pool",),
}


def programs_of(file, kind):
    table = SCOPES if kind == "model" else NOTICING
    return table.get(file.rsplit(".", 1)[0]) or table[file.split("/")[2]]


def kinds_of(mutant):
    """
    Returns the kinds of checks that run after the first look, in order. For mutants of orders the
    unit tests run under ThreadSanitizer, because the memory order of this machine would hide most
    weaker orders.
    """
    return ("model", "tsan") if mutant.is_order else ("unit", "model")


def check_of(killer):
    """
    Returns the check that killers.tsv names. None: the program crashed or ran out of time, and did
    not say in which scope.
    """
    words = killer.split()
    return Check(*words) if len(words) == 3 else None


def check_of_words(words):
    """Returns the check that the user names, as killers.tsv would."""
    kind, program, scope = (*words.split(), "", "")[:3]
    if kind not in ("model", "tsan", "unit") or not program:
        raise ValueError(words)
    return Check(kind, program, scope)


def likely_first(mutant, killers):
    """
    What noticed this mutant before, of whatever kind; then what noticed most others of its file.
    """
    own = killers.get(mutant[:3])
    others = collections.Counter(killer for key, killer in killers.items()
                                 if key[0] == mutant.file and killer != own)
    tried = [own or "", *(killer for killer, _ in others.most_common(ATTEMPTS))]
    found = [check_of(killer) for killer in tried]
    return [check for at, check in enumerate(found)
            if check is not None and (at == 0 or check.kind in kinds_of(mutant))]


# killer: None if nothing failed, else what failed ("" if that is not known), or "out of time".
Outcome = collections.namedtuple("Outcome", "killer seconds")


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def outcome_of(command, seconds, environment):
    """
    Runs a check up to its first failure. Its processor time and the time that it may be idle are
    limited. A busy machine changes neither, so it kills no mutant.
    """
    # The hard limit is higher than the soft limit: if both were equal, Linux would end the process
    # as if it had crashed.
    limited = ["sh", "-c", 'ulimit -St "$0"; ulimit -Ht $(($0 + 5)); exec "$@"', str(int(seconds)),
               *command]
    process = subprocess.Popen(limited, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True,
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
    """
    Returns words that run a program without randomized addresses, if setarch is there.
    ThreadSanitizer cannot map its memory where Linux randomizes addresses widely.
    """
    return ["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []


def command_of(copy, check):
    command = [*(address_space_prefix() if check.kind == "tsan" else []),
               *copy.tests[check.kind][check.program]]
    if not check.scope:
        return command
    if check.kind == "model":
        return [*command, check.scope]
    return [*command, "--filter", check.scope.replace(".", "/", 1)]


def run(copy, check, seconds, look=False):
    """
    Runs a check. With `look`, a program of the model checker explores only the first executions of
    each search.
    """
    first = {"WEIR_MODEL_FIRST": LOOK} if look else {}
    return outcome_of(command_of(copy, check), seconds,
                      {"TSAN_OPTIONS": "halt_on_error=1", **first})


class Sound:
    """
    A check that notices a mutant must pass on the unchanged sources. It runs on these when it first
    notices one.
    """

    def __init__(self, timeout):
        self.timeout = timeout
        self.seen = set()

    def confirm(self, copy, mutant, check, late):
        """Runs the check without the mutant. `late`: the check noticed by running out of time."""
        if check in self.seen:
            return
        copy.restore(mutant)
        outcome = Outcome("no build", 0)
        if copy.make_check(check):
            outcome = run(copy, check, self.timeout / TIMES if late else self.timeout)
        if outcome.killer is not None:
            sys.exit(f"mutate: {' '.join(check)} fails on the unchanged sources: {outcome.killer}")
        self.seen.add(check)
        copy.write(mutant)


def killer_among(copy, mutant, tried, sound):
    """Returns the first of some checks that notices the mutant, or None."""
    copy.write(mutant)
    try:
        for check in tried:
            killer = made_and_run(copy, check, sound.timeout).killer
            if killer is not None:
                late = killer == OUT_OF_TIME
                sound.confirm(copy, mutant, check if late else check._replace(scope=killer), late)
                return f"{check.kind} {check.program} {killer}".rstrip()
    except NotCompiled:
        return NOT_COMPILED
    finally:
        copy.restore(mutant)
    return None


def killer_of(copy, mutant, killers, sound, kinds):
    """Returns the check that notices the mutant first, or None if it survives."""
    copy.write(mutant)
    try:
        return (attempted(copy, mutant, killers, sound, kinds)
                or examined(copy, mutant, sound, ["model"], True)
                or examined(copy, mutant, sound, kinds))
    except NotCompiled:
        return NOT_COMPILED
    finally:
        copy.restore(mutant)


def attempted(copy, mutant, killers, sound, kinds):
    for check in likely_first(mutant, killers):
        if check.kind in kinds and check.program in copy.tests[check.kind]:
            killer = made_and_run(copy, check, ATTEMPT).killer
            # A runner without such a test fails too, and names no test.
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
