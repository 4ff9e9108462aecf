"""gdb commands that show which thread waits for what in a program that uses Weir, in a live process or in a core.

    gdb -p PID -x scripts/gdb/weir.py -ex weir-waiters
    gdb PROGRAM CORE -x scripts/gdb/weir.py -ex weir-waiters

weir-waiters         each thread that waits in a call on a queue, and the state of each such queue
weir-queues          all queues and critical sections, and what waits in keyed joins and staging areas: what weir_dump() writes
weir-queue EXPR      one queue: what is inside, whether it is closed, its counters, the operations that wait (asynchronous ones too), and
                     the threads that announced that they feed or drain it

The commands run no code in the process, so they work on a core and on a process in any state. They need the debug information of the
same build of Weir. An object that another thread is changing may be shown half changed.
"""
import struct
import time

import gdb

REMOVED = 1
KIND = {1: "enqueue", 2: "dequeue", 3: "dequeue up to"}
ROLE = {1: "fed", 2: "drained"}
CLAIMED, CANCEL, DONE = 1, 4, 8
ITEM = 7  # Bits of a link's order in a hash list: if all are set, the link is that of an item, not a mark.
FAIR = 1
RIGHT_FREE, RIGHT_TAKEN = 0, (1 << 32) - 1
TURN_HELD = 1
ADMISSION_CLOSED, ADMISSION_PENDING = 1 << 63, (1 << 62) - 1
TOMB = 1 << 62
MOST_SLOTS = 1 << 20  # A ring with more slots is not counted.
MOST_LISTED = 10000


def number(value):
    """Returns the number in an integer or pointer, atomic or not."""
    return int(value.cast(gdb.lookup_type("unsigned long"))) if value.type.code == gdb.TYPE_CODE_PTR else int(value)


def unsigned(value, bits=64):
    return number(value) & ((1 << bits) - 1)


def offset_of(type_name, field):
    return next(f.bitpos // 8 for f in gdb.lookup_type(type_name).fields() if f.name == field)


def seconds_since(began_ns):
    """Returns a text that says how long an operation has waited. A core does not say what time it was."""
    if began_ns == 0:
        return "does not wait yet"
    if "Local core dump file" in gdb.execute("info files", to_string=True):
        return f"since {began_ns / 1e9:.3f} s of CLOCK_MONOTONIC"
    return f"for {(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - began_ns) / 1e9:.1f} s"


# ---- operations ----


def describe_one(part):
    queue = part["queue"]
    what = f'{KIND.get(number(part["kind"]), "?")} of {number(part["count"])}'
    return f'{what} in queue "{queue["name"].string()}"'


def is_kind(op, name):
    symbol = gdb.lookup_global_symbol(name)
    return symbol is not None and number(op["kind"]) == number(symbol.value().address)


def is_of_queues(op):
    return is_kind(op, "weiri_queue_kind") or is_kind(op, "weiri_select_kind")


def parts_of(op):
    """Returns the parts of an operation of queues: what it does in each queue."""
    first, size = number(op["entries"]), number(op["kind"]["entry_size"])
    part = gdb.lookup_type("struct weiri_queue_part").pointer()
    return [gdb.Value(first + i * size).cast(part).dereference() for i in range(number(op["entry_count"]))]


def describe(op):
    """Describes an operation or a select."""
    parts = parts_of(op)
    state = unsigned(op["state"], 32)
    marks = [text for bit, text in ((CLAIMED, "claimed"), (CANCEL, "cancelled"), (DONE, "completed")) if state & bit]
    moved = sum(number(part["done"]) for part in parts)
    done = f", {moved} done" if moved != 0 else ""
    text = ("select: " if is_kind(op, "weiri_select_kind") else "") + " or ".join(describe_one(part) for part in parts)
    return text + done + (f" ({', '.join(marks)})" if marks else "") + ", " + seconds_since(number(op["began_ns"]))


def nodes_from(link, node_type_name, owner_type_name, offset):
    """Yields the nodes of a list in order, each with the object that contains it at the offset. Removed nodes are left out."""
    node_type = gdb.lookup_type(node_type_name).pointer()
    owner_type = gdb.lookup_type(owner_type_name).pointer()
    for _ in range(MOST_LISTED):
        if link & ~REMOVED == 0:
            return
        node = gdb.Value(link & ~REMOVED).cast(node_type)
        link = unsigned(node["next"])
        if link & REMOVED == 0:
            owner = gdb.Value(number(node) - offset)
            yield node, owner.cast(owner_type).dereference()


def operations_on(list_value):
    """Yields the operations on a list of waiters, in order. Bells are left out, because they belong to no operation."""
    offset = offset_of("struct weiri_pending_entry", "node")
    for _, entry in nodes_from(unsigned(list_value["first"]), "struct weiri_list_node", "struct weiri_pending_entry", offset):
        if number(entry["pending"]) != 0:
            yield entry["pending"].dereference()


def owner_of(op):
    thread = f'thread {number(op["thread"])}'
    return f"{thread}'s" if number(op["is_blocking"]) else f"asynchronous, begun by {thread}"


# ---- queues ----


def span_counts(ring):
    """The same for a ring of spans, from its head and its slots, one of which describes the newest span."""
    shift, slots = number(ring["shape"]["shift"]), number(ring["shape"]["mask"]) + 1
    if slots > MOST_SLOTS:
        return None
    memory = bytes(gdb.selected_inferior().read_memory(number(ring["slots"]), slots * 16))
    states = [word[0] & (1 << 63) - 1 for word in struct.iter_unpack("=QQ", memory)]
    head = unsigned(ring["head"])
    out = (head >> 8) + (head & 0xFF) - slots
    ends = [(state >> 9 << shift | i) + (state & 0x1FF) for i, state in enumerate(states) if state != 0]
    return max([end - slots for end in ends] + [out]), out


def ring_counts(ring):
    """Returns how many values went in and came out, which follows from the laps of the slots. None: there are too many slots."""
    capacity = number(ring["capacity"])
    if "SPAN16" in str(ring["format"]):
        return span_counts(ring)
    wide = "LTQ16" in str(ring["format"])
    if capacity > MOST_SLOTS:
        return None
    size = 16 if wide else 8
    memory = bytes(gdb.selected_inferior().read_memory(number(ring["slots"]), capacity * size))
    words = [word[0] for word in struct.iter_unpack("=QQ" if wide else "=Q", memory)]
    if wide:
        states = [word & (TOMB - 1) for word in words]
    else:
        states = [(word & (1 << 63) - 1) >> number(ring["cell_bits"]) for word in words]
    return sum(state + 1 >> 1 for state in states), sum(state >> 1 for state in states)


def priority_counts(queue):
    """Counts from the node that was the dummy before, along the links of taken nodes, to the present dummy."""
    shift = number(queue["tag_shift"])
    word = unsigned(queue["near"])
    out, index = word >> shift, (word & (1 << shift) - 1) >> 1
    for _ in range(number(queue["capacity"]) + 1):
        link = unsigned(queue["nodes"][index]["link"])
        if link & 1 == 0:
            break
        out, index = out + 1, (link & (1 << shift) - 1) >> 1
    return unsigned(queue["oldest"]) >> shift, out


def store_counts(queue):
    for store, counts in (("ring", ring_counts), ("drawn", ring_counts), ("priority", priority_counts)):
        if number(queue[store]) != 0:
            return counts(queue[store].dereference())
    return None


def print_counters(queue, counts):
    counters = queue["counters"]
    given_back = number(queue["putback"]["items"])
    moved = f"{counts[0]} in, {counts[1] - given_back} out" if counts else "? in, ? out"
    waits, blocked = ([unsigned(counters[name][side]) for side in (0, 1)] for name in ("waits", "blocked_ns"))
    print(f'  {moved}, at most {max(unsigned(counters["high_water"]), counts[0] - counts[1] + given_back if counts else 0)} inside; '
          f"waits: {waits[0]} of enqueues (the ended ones {blocked[0] / 1e9:.3f} s), {waits[1]} of dequeues ({blocked[1] / 1e9:.3f} s); "
          f'{unsigned(counters["wakes"])} wakes, {unsigned(counters["retries"])} retries')


def is_section(queue):
    return number(queue["right"]) != 0


def print_queue(queue):
    if is_section(queue):
        print_section(queue)
    else:
        print_store(queue)
    for side, name in (("producers", "for room"), ("consumers", "to enter" if is_section(queue) else "for an item")):
        for op in operations_on(queue[side]["list"]):
            print(f"  waits {name}: {describe(op)}; {owner_of(op)}")
    first = unsigned(queue["announced"]["first"])
    offset = offset_of("struct weir_queue_announcement", "node")
    for _, one in nodes_from(first, "struct weiri_list_node", "struct weir_queue_announcement", offset):
        label = one["as"].string()
        print(f'  {ROLE[number(one["role"])]} by: thread {number(one["thread"])}' + (f', as "{label}"' if label else ""))


def print_store(queue):
    admission = unsigned(queue["admission"])
    closed = "closed" if admission & ADMISSION_CLOSED else "open"
    if admission & ADMISSION_CLOSED and admission & ADMISSION_PENDING:
        closed += f", {admission & ADMISSION_PENDING} enqueues still to come"
    turn = ", a batch collects" if number(queue["turn"]) & TURN_HELD else ""
    fair = ", fair" if number(queue["flags"]) & FAIR else ""
    counts = store_counts(queue)
    given_back = number(queue["putback"]["items"])
    inside = (str(counts[0] - counts[1]) if counts else "?") + (f" and {given_back} given back" if given_back else "")
    print(f'queue "{queue["name"].string()}" at {number(queue.address):#x}: {queue["store"]["name"].string()}{fair}, '
          f'{inside} of {number(queue["capacity"])} inside, {closed}{turn}')
    print_counters(queue, counts)


def print_section(queue):
    """Prints a critical section, whose store is the right to be inside."""
    right = queue["right"].dereference()
    holder, entered = unsigned(right["holder"], 32), unsigned(right["entered"])
    by = f"by thread {holder}" if holder != RIGHT_TAKEN else "by no thread in particular"
    state = "free" if holder == RIGHT_FREE else f"taken {by}"
    print(f'critical section "{queue["name"].string()}" at {number(queue.address):#x}: {state}')
    print_counters(queue, (entered + (holder == RIGHT_FREE), entered))


def print_area(area):
    print(f'{area["kind"]["name"].string()} "{area["name"].string()}" at {number(area.address):#x}')
    for op in operations_on(area["waitable"]["waiters"]["list"]):
        verb = op.address.cast(gdb.lookup_type("struct weiri_waitable_op").pointer())["verb"].string()
        print(f'  waits: {verb}, {seconds_since(number(op["began_ns"]))}; {owner_of(op)}')


def all_registered():
    """Returns the entries of all queues and areas, in the order of their creation."""
    symbol = gdb.lookup_static_symbol("all_objects")
    if symbol is None:
        raise gdb.GdbError("there is no registry of queues: the library's debug information is missing")
    first = unsigned(symbol.value()["list"]["first"]["next"])
    offset = offset_of("struct weiri_id_entry", "node") + offset_of("struct weiri_hash_node", "link")
    numbered = [one for link, one in nodes_from(first, "struct weiri_hash_link", "struct weiri_id_entry", offset)
                if unsigned(link["order"]) & ITEM == ITEM]
    # A registered object begins with its number.
    registered = gdb.lookup_type("struct weiri_registered").pointer()
    return [one.address.cast(registered).dereference() for one in sorted(numbered, key=lambda one: unsigned(one["number"]))]


def queue_of(registered):
    """Returns the queue of an entry of the registry. None: the entry is an area's."""
    kind = gdb.lookup_global_symbol("weiri_queue_registered").value().address
    if number(registered["kind"]) != number(kind):
        return None
    return registered["object"].cast(gdb.lookup_type("struct weir_queue").pointer()).dereference()


# ---- threads ----


def awaited_operation():
    """Returns the operation of queues for which the selected thread waits, or None."""
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.name() == "weiri_pending_run":
            op = frame.read_var("pending")
            return None if op.is_optimized_out or not is_of_queues(op) else op.dereference()
        frame = frame.older()
    return None


def waiting_threads():
    for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num):
        thread.switch()
        try:
            op = awaited_operation()
        except gdb.error:
            continue
        if op is not None:
            yield thread, op


class Waiters(gdb.Command):
    """weir-waiters: threads that wait in queues, and these queues."""

    def __init__(self):
        super().__init__("weir-waiters", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        before, queues, count = gdb.selected_thread(), {}, 0
        for thread, op in waiting_threads():
            count += 1
            print(f'thread {thread.ptid[1] or thread.ptid[2]} "{thread.name or "?"}": {describe(op)}')
            for part in parts_of(op):
                queues.setdefault(number(part["queue"]), part["queue"].dereference())
        waits = "thread waits" if count == 1 else "threads wait"
        print(f"{count} {waits} in {len(queues)} queue{'' if len(queues) == 1 else 's'}")
        for queue in queues.values():
            print_queue(queue)
        if before is not None:
            before.switch()


class Queues(gdb.Command):
    """weir-queues: all queues, critical sections, keyed joins and staging areas."""

    def __init__(self):
        super().__init__("weir-queues", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        queues = others = 0
        for one in all_registered():
            queue = queue_of(one)
            if queue is None:
                print_area(one["object"].cast(gdb.lookup_type("struct weiri_area").pointer()).dereference())
            else:
                print_queue(queue)
            if queue is None or is_section(queue):
                others += 1
            else:
                queues += 1
        print(f"{queues} queue{'' if queues == 1 else 's'}" + (f", {others} other object{'' if others == 1 else 's'}" if others else ""))


class Queue(gdb.Command):
    """weir-queue EXPR: what is inside a queue, and what waits in it."""

    def __init__(self):
        super().__init__("weir-queue", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        value = gdb.parse_and_eval(argument)
        pointer = gdb.lookup_type("struct weir_queue").pointer()
        print_queue(value.cast(pointer).dereference())


Waiters()
Queues()
Queue()
