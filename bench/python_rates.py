#!/usr/bin/env python3
"""What a call from Python costs, beside the queues of the standard library.

usage: PYTHONPATH=BUILD/lib/python bench/python_rates.py

Each figure is the best of REPEAT runs, the contenders in turn, so that what disturbs the machine disturbs all of them.
"""
import asyncio
import queue
import threading
import timeit

import weir

REPEAT, CALLS = 15, 50_000


def best(functions):
    """Returns the nanoseconds of one call of each."""
    times = [min(samples) for samples in zip(*([timeit.timeit(fn, number=CALLS) for fn in functions] for _ in range(REPEAT)))]
    return [time / CALLS * 1e9 for time in times]


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


def main():
    var, lock, holder = weir.Var(bytes(64)), threading.Lock(), type("Holder", (), {"value": bytes(64)})()

    def locked():
        with lock:
            return holder.value

    empty, read, by_lock = best([var.watch().fileno, var.read, locked])
    print(f"empty call {empty:.0f} ns; Var.read {read:.0f} ns, {read - empty:.0f} more; lock and attribute {by_lock:.0f} ns")
    ours, simple, plain = best([pair_of(weir.Queue(1024)), pair_of(queue.SimpleQueue()), pair_of(queue.Queue())])
    print(f"put and get: Queue {ours:.0f} ns; SimpleQueue {simple:.0f} ns ({ours / simple:.2f}x); queue.Queue {plain:.0f} ns "
          f"({ours / plain:.3f}x)")
    count = 20_000
    times = [min(samples) for samples in zip(*([timeit.timeit(lambda: asyncio.run(fn(count)), number=1) for fn in (loop_of_weir, loop_of_calls)]
                                               for _ in range(5)))]
    print(f"thread to asyncio: Queue {times[0] / count * 1e9:.0f} ns an item; call_soon_threadsafe and asyncio.Queue "
          f"{times[1] / count * 1e9:.0f} ns ({times[1] / times[0]:.1f}x)")


if __name__ == "__main__":
    main()
