#!/usr/bin/env python3
"""What a call from Python costs, beside the queues of the standard library.

usage: PYTHONPATH=BUILD/lib/python bench/python_rates.py [--check]

Each figure is the best of many short runs, the contenders in turn, so that what disturbs the machine disturbs all of them. With --check,
the exit code is 1 if a limit is missed three times in a row. The limits have room for other processors and for a busy machine, and still
see a lock, a copy or a wake-up that came in. An idle machine reaches 1.1 times SimpleQueue's time, a tenth of queue.Queue's, and 8 times
the rate of call_soon_threadsafe, which needs two processors at a time.
"""
import asyncio
import queue
import sys
import threading
import timeit

import weir

REPEAT, CALLS = 200, 2_000
LOOP_REPEAT, LOOP_ITEMS = 20, 3_000
ATTEMPTS = 3


def best(functions, repeat=REPEAT, calls=CALLS):
    """Returns the nanoseconds of one call of each."""
    times = [min(samples) for samples in zip(*([timeit.timeit(fn, number=calls) for fn in functions] for _ in range(repeat)))]
    return [time / calls * 1e9 for time in times]


def pair_of(q):
    def pair():
        q.put(1)
        q.get()
    return pair


async def take(get, count):
    for _ in range(count):
        await get()


async def loop_of_weir(count):
    q = weir.Queue(1024)
    thread = threading.Thread(target=lambda: [q.put(i) for i in range(count)])
    thread.start()
    await take(lambda: weir.aget(q), count)
    thread.join()


async def loop_of_calls(count):
    q, loop = asyncio.Queue(), asyncio.get_running_loop()
    thread = threading.Thread(target=lambda: [loop.call_soon_threadsafe(q.put_nowait, i) for i in range(count)])
    thread.start()
    await take(q.get, count)
    thread.join()


# ---- Each prints its figures, and returns whether they are within their limits. ----

def read_is_near_an_empty_call():
    var, lock, holder = weir.Var(bytes(64)), threading.Lock(), type("Holder", (), {"value": bytes(64)})()

    def locked():
        with lock:
            return holder.value

    empty, read, by_lock = best([var.watch().fileno, var.read, locked])
    print(f"empty call {empty:.0f} ns; Var.read {read:.0f} ns, {read - empty:.0f} more; lock and attribute {by_lock:.0f} ns")
    return read - empty <= 60


def pair_is_near_that_of_simple_queue():
    ours, simple, plain = best([pair_of(weir.Queue(1024)), pair_of(queue.SimpleQueue()), pair_of(queue.Queue())])
    print(f"put and get: Queue {ours:.0f} ns; SimpleQueue {simple:.0f} ns ({ours / simple:.2f}x); queue.Queue {plain:.0f} ns "
          f"({ours / plain:.3f}x)")
    return ours <= 1.4 * simple and ours <= 0.15 * plain


def loop_is_far_from_calls():
    ours, calls = (time / LOOP_ITEMS for time in best([lambda: asyncio.run(loop_of_weir(LOOP_ITEMS)),
                                                       lambda: asyncio.run(loop_of_calls(LOOP_ITEMS))], LOOP_REPEAT, 1))
    print(f"thread to asyncio: Queue {ours:.0f} ns an item; call_soon_threadsafe and asyncio.Queue {calls:.0f} ns ({calls / ours:.1f}x)")
    return calls >= 2 * ours


def main():
    figures = read_is_near_an_empty_call, pair_is_near_that_of_simple_queue, loop_is_far_from_calls
    if sys.argv[1:] != ["--check"]:
        for figure in figures:
            figure()
        return 0
    missed = [figure.__name__ for figure in figures if not any(figure() for _ in range(ATTEMPTS))]
    for name in missed:
        print("FAIL", name)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
