"""The Python package: values without a copy, queues, event loops, signals, and what an interpreter does at its end.

usage: test_package.py [TEST...]    with the package on PYTHONPATH
"""
import array
import asyncio
import ctypes
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import weakref

import greenlet
import numpy as np

import weir

PATIENCE = 20  # seconds until a test that waits for another thread fails


async def until(condition):
    """Lets the other tasks of the loop run until the condition holds."""
    loop, deadline = asyncio.get_running_loop(), time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


def sleeps(process):
    """True if the main thread of the process waits in the kernel."""
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "S"


def run_python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, **options)


class Values(unittest.TestCase):
    def test_arrays_go_in_and_out_without_a_copy(self):
        given = np.arange(12, dtype=np.float32).reshape(3, 4)
        var = weir.Var(given, name="weights")
        shown = np.asarray(var.read())
        self.assertTrue(np.shares_memory(given, shown))
        self.assertFalse(shown.flags.writeable)
        self.assertEqual((var.name, var.dtype, var.version, var.read().shape, var.read().nbytes), ("weights", "f32", 1, (3, 4), 48))
        self.assertTrue(np.shares_memory(given, np.from_dlpack(var.read())))

    def test_a_copy_is_made_on_request(self):
        given = np.zeros(4)
        var = weir.Var(given, copy=True)
        given[0] = 1
        self.assertEqual(np.asarray(var.read())[0], 0)

    def test_every_dtype_of_numpy_that_weir_has(self):
        for dtype in (np.bool_, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
                      np.float64):
            shown = np.asarray(weir.Var(np.ones((2, 0, 3), dtype)).read())
            self.assertEqual((shown.dtype, shown.shape), (np.dtype(dtype), (2, 0, 3)))
            self.assertEqual(np.asarray(weir.Var(np.ones((), dtype)).read()), 1)

    def test_other_buffers_and_numbers(self):
        self.assertEqual(bytes(weir.Var(b"abc").read()), b"abc")
        self.assertEqual(memoryview(weir.Var(array.array("q", [1, 2])).read()).tolist(), [1, 2])
        self.assertEqual([weir.Var(value).dtype for value in (True, 7, 0.5)], ["bool", "i64", "f64"])

    def test_a_view_keeps_its_version(self):
        var = weir.Var(np.zeros(3))
        before = var.read()
        self.assertEqual(var.assign(np.ones(3)), 2)
        self.assertEqual((before.version, var.read().version), (1, 2))
        self.assertEqual(np.asarray(before).sum(), 0)
        self.assertIsNone(var.try_read_newer(2))
        self.assertEqual(var.try_read_newer(1).version, 2)

    def test_a_view_is_released_once_no_buffer_shows_it(self):
        view = weir.Var(b"abc").read()
        shown = memoryview(view)
        with self.assertRaisesRegex(BufferError, "still shows"):
            view.release()
        shown.release()
        with view:
            pass
        view.release()
        for use in (lambda: view.version, lambda: memoryview(view), lambda: view.__dlpack__(), lambda: weir.Var(view)):
            with self.assertRaisesRegex(ValueError, "released"):
                use()

    def test_history(self):
        var = weir.Var(0, history=2)
        var.assign(1)
        self.assertEqual(int(np.asarray(var.read_version(1))), 0)
        for version, what in ((0, "gone"), (9, "not published yet")):
            with self.assertRaisesRegex(LookupError, what):
                var.read_version(version)

    def test_writes_that_depend_on_what_was_there(self):
        var = weir.Var(np.array([1.0, 2.0]))
        self.assertEqual(var.compare_assign(1, np.array([5.0, 5.0])), 2)
        with self.assertRaises(weir.Aborted):
            var.compare_assign(1, np.zeros(2))
        self.assertEqual(var.update(lambda view: np.asarray(view) * 2), 3)
        var.assign_add(np.ones(2))
        var.assign_sub(np.array([0.0, 1.0]))
        self.assertEqual(var.exchange(np.zeros(2)).version, 5)
        with self.assertRaises(ZeroDivisionError):
            var.update(lambda view: 1 / 0)
        self.assertEqual(var.version, 6)

    def test_updates_of_threads_are_not_lost(self):
        var = weir.Var(0)

        def add():
            for _ in range(200):
                var.update(lambda view: int(np.asarray(view)) + 1)

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(int(np.asarray(var.read())), 800)

    def test_several_variables_change_and_are_read_at_one_instant(self):
        a, b = weir.Var(0), weir.Var(0)
        over = threading.Event()

        def write():
            for number in range(1, 300):
                weir.commit([(a, a.version, number), (b, b.version, number)])
            over.set()

        thread = threading.Thread(target=write)
        thread.start()
        while not over.is_set():
            one, other = weir.snapshot((a, b))
            self.assertEqual(int(np.asarray(one)), int(np.asarray(other)))
        thread.join()
        self.assertEqual(weir.snapshot([]), ())
        with self.assertRaises(weir.Aborted):
            weir.commit([(a, 1, 0), (b, b.version, 0)])
        for bad in ([a], [(a, 1)], [(1, 1, 1)], [(a, 1, object())], []):
            with self.assertRaises((TypeError, ValueError)):
                weir.commit(bad)
        with self.assertRaisesRegex(TypeError, "item 1"):
            weir.snapshot([a, 1])

    def test_readers_beside_a_writer_of_256_kib_see_whole_values_in_bounded_memory(self):
        writes = int(os.environ.get("WEIR_PYTHON_WRITES", "1500"))
        var = weir.Var(np.zeros(32768))
        over = threading.Event()
        torn = []

        def read():
            last = 0
            while not over.is_set():
                with var.read() as view:
                    shown = np.asarray(view)
                    if shown[0] != shown[-1] or shown.min() != shown.max() or view.version < last:
                        torn.append(view.version)
                    last = view.version
                    del shown

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        most = 0
        for number in range(writes):
            var.assign(np.full(32768, float(number)))
            most = max(most, weir.retired_bytes())
        over.set()
        for reader in readers:
            reader.join()
        self.assertEqual(torn, [])
        self.assertLess(most, 64 << 20)

    def test_memory_goes_back_to_its_owner_after_the_last_reader(self):
        given = bytearray(b"abc")
        var = weir.Var(given)
        with self.assertRaises(BufferError):
            given.append(1)  # a buffer that is lent cannot be resized
        view = var.read()
        var.assign(b"xyz")
        with self.assertRaises(BufferError):
            given.append(1)
        view.release()
        weir.flush(PATIENCE)
        given.append(1)
        self.assertEqual(given, b"abc\1")

    def test_memory_that_another_thread_lets_go_comes_back_by_the_next_call(self):
        given = bytearray(b"abc")
        var = weir.Var(given)
        var.assign(b"xyz")
        thread = threading.Thread(target=weir.flush, args=(PATIENCE,))
        thread.start()
        thread.join()
        var.read()
        given.append(1)


class BadValues(unittest.TestCase):
    def test_what_cannot_be_shown_in_place_is_refused(self):
        for value, error, text in ((np.zeros((4, 4))[:, ::2], ValueError, "strided"),
                                   (np.zeros((1,) * 9), ValueError, "9 dims"),
                                   (np.zeros(2, np.complex64), TypeError, "Zf"),
                                   (np.zeros(2, "S3"), TypeError, "format"),
                                   (object(), TypeError, "__dlpack__"),
                                   (1 << 70, OverflowError, "")):
            with self.assertRaisesRegex(error, text):
                weir.Var(value)

    def test_values_fit_their_variable(self):
        var = weir.Var(np.zeros(3, np.float32), name="w")
        with self.assertRaisesRegex(ValueError, '"w"'):
            var.assign(np.zeros(3, np.float64))
        self.assertEqual(var.version, 1)

    def test_a_view_is_not_written(self):
        view = weir.Var(b"abc").read()
        with self.assertRaises(TypeError):
            memoryview(view)[0] = 1
        with self.assertRaises((BufferError, TypeError)):
            (ctypes.c_char * 3).from_buffer(view)

    def test_types_that_only_calls_make(self):
        for made in (weir.View, weir.Watch, weir.Ring):
            with self.assertRaises(TypeError):
                made()

    def test_timeouts(self):
        var = weir.Var(0)
        for timeout, error in ((-1, ValueError), (float("nan"), ValueError), ("1", TypeError)):
            with self.assertRaises(error):
                var.wait(1, timeout)
        with self.assertRaises(TimeoutError):
            var.wait(1, 0.001)
        self.assertEqual(var.wait(0, 1).version, 1)

    def test_numbers_of_versions(self):
        var = weir.Var(0)
        for call in (var.wait, var.watch, var.read_version, var.try_read_newer, lambda version: var.compare_assign(version, 1),
                     lambda version: weir.commit([(var, version, 1)]), lambda length: weir.Var(0, history=length)):
            for version, error in ((-1, (OverflowError, ValueError)), (1 << 64, OverflowError), ("1", TypeError)):
                with self.assertRaises(error):
                    call(version)
        self.assertEqual(var.version, 1)


class DLPack(unittest.TestCase):
    def test_the_version_that_the_consumer_knows(self):
        view = weir.Var(np.arange(3)).read()
        self.assertIn('"dltensor"', repr(view.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(view.__dlpack__(max_version=(1, 0))))
        self.assertIn('"dltensor_versioned"', repr(view.__dlpack__(max_version=(2, 7))))
        self.assertEqual(view.__dlpack_device__(), (1, 0))
        for words in ({"stream": 1}, {"copy": True}, {"dl_device": (2, 0)}):
            with self.assertRaises(BufferError):
                view.__dlpack__(**words)

    def test_an_exporter_without_a_buffer(self):
        class Exporter:
            def __init__(self, view, versioned):
                self.view, self.versioned = view, versioned

            def __dlpack__(self, **words):
                if words and not self.versioned:
                    raise TypeError("version 0")
                return self.view.__dlpack__(**words)

        home = weir.Var(np.arange(3))
        source = home.read()
        for versioned in (False, True):
            var = weir.Var(Exporter(source, versioned))
            self.assertTrue(np.shares_memory(np.asarray(var.read()), np.asarray(source)))
            var.assign(np.zeros(3, np.int64))
            weir.flush(PATIENCE)

    def test_an_exporter_that_gives_something_else(self):
        class Exporter:
            def __dlpack__(self, **words):
                return 7

        with self.assertRaisesRegex(TypeError, "no capsule"):
            weir.Var(Exporter())

    def test_a_consumer_that_never_calls_the_deleter_keeps_its_memory_only(self):
        given = bytearray(b"abc")
        var = weir.Var(given)
        capsule = var.read().__dlpack__()
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        rename(capsule, b"used_dltensor")
        del capsule
        var.assign(b"xyz")
        weir.flush(PATIENCE)
        with self.assertRaises(BufferError):
            given.append(1)
        self.assertEqual(bytes(var.read()), b"xyz")


class Queues(unittest.TestCase):
    def test_items_come_out_in_order_and_as_the_same_objects(self):
        q = weir.Queue(4, name="work")
        items = [object() for _ in range(4)]
        for item in items:
            q.put(item)
        self.assertEqual((len(q), q.capacity, q.name, q.closed), (4, 4, "work", False))
        with self.assertRaises(queue.Full):
            q.put_nowait(1)
        with self.assertRaises(queue.Full):
            q.put(1, 0.001)
        self.assertEqual([q.get() for _ in range(4)], items)
        with self.assertRaises(queue.Empty):
            q.get_nowait()
        with self.assertRaises(queue.Empty):
            q.get(0.001)

    def test_many_at_once(self):
        q = weir.Queue(4)
        self.assertEqual(q.put_many(range(6), 0.001), 4)
        self.assertEqual(q.get_many(3), [0, 1, 2])
        self.assertEqual(q.get_many(10), [3])
        with self.assertRaises(queue.Empty):
            q.get_many(3, 0.001)
        for most in (0, -1):
            with self.assertRaises(ValueError):
                q.get_many(most)

    def test_references_are_neither_lost_nor_kept(self):
        item = object()
        before = sys.getrefcount(item)
        q = weir.Queue(8)
        for put in (lambda: q.put(item), lambda: q.put_nowait(item), lambda: q.put_many([item, item])):
            put()
        self.assertEqual(sys.getrefcount(item), before + 4)
        q.get()
        q.get_many(2)
        self.assertEqual(sys.getrefcount(item), before + 1)
        del q
        self.assertEqual(sys.getrefcount(item), before)

    def test_a_close_ends_those_that_wait_with_its_cause(self):
        q = weir.Queue(1)
        seen = []

        def take():
            try:
                q.get()
            except weir.Closed as closed:
                seen.append(str(closed))

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        q.close("the source is empty")
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(len(seen), 3)
        self.assertTrue(all("the source is empty" in text for text in seen))
        with self.assertRaisesRegex(weir.Closed, "the source is empty"):
            q.put(1)
        with self.assertRaises(weir.Closed):
            q.get_nowait()

    def test_a_cause_that_is_cut_is_still_text(self):
        q = weir.Queue(1)
        q.close("a" + "\u00e9" * 400)
        with self.assertRaisesRegex(weir.Closed, "a\u00e9\u00e9"):
            q.get()

    def test_iteration_ends_with_the_queue(self):
        q = weir.Queue(64)
        threads = [threading.Thread(target=lambda: [q.put(i) for i in range(500)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        closer = threading.Thread(target=lambda: ([thread.join() for thread in threads], q.close()))
        closer.start()
        self.assertEqual(sorted(q), sorted(list(range(500)) * 3))
        closer.join()

    def test_a_long_chain_of_queues_ends_on_a_small_stack(self):
        code = """
import threading, weakref, weir
class Tail: pass
def chain(length):
    item = Tail()
    tail = weakref.ref(item)
    for _ in range(length):
        outer = weir.Queue(2)
        outer.put(item)
        item = outer
    del outer
    assert tail() is not None
    item = None
    assert tail() is None
threading.stack_size(256 << 10)
for length in (49, 50, 51, 52, 5000):
    thread = threading.Thread(target=chain, args=(length,))
    thread.start()
    thread.join()
print("ended")
"""
        done = run_python(code)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ended\n", ""))

    @unittest.skipIf("libasan" in os.environ.get("LD_PRELOAD", ""), "greenlets copy stacks, which AddressSanitizer does not follow")
    def test_each_stack_of_a_thread_ends_its_own_queues(self):
        ended = []

        class Item:
            def __init__(self, name, last=lambda: None):
                self.name, self.last = name, last

            def __del__(self):
                self.last()
                ended.append(self.name)

        def nest(item):
            for _ in range(60):  # more than CPython lets end inside each other
                outer = weir.Queue(2)
                outer.put(item)
                item = outer
            return item

        def far_down(calls, fn):
            return max([0], key=lambda _: far_down(calls - 1, fn) if calls else fn())

        def other():
            far_down(50, [nest(Item("of the other stack", main.switch))].clear)
            ended.append("the other stack")

        main = greenlet.getcurrent()
        stack = greenlet.greenlet(other)
        stack.switch()  # comes back in the midst of the end of a queue
        nest(Item("of this stack"))
        self.assertEqual(ended, ["of this stack"])
        stack.switch()
        self.assertEqual(ended, ["of this stack", "of the other stack", "the other stack"])

    def test_bad_arguments(self):
        for capacity in (0, -1, 1 << 62):
            with self.assertRaises((ValueError, MemoryError)):
                weir.Queue(capacity)
        q = weir.Queue(1)
        for call in (lambda: q.put(), lambda: q.put(1, 2, 3), lambda: q.get(1, 2), lambda: q.put_many(7)):
            with self.assertRaises(TypeError):
                call()
        q.put(1)
        with self.assertRaises(ValueError):
            q.put(1, -1)


class Loops(unittest.TestCase):
    def test_tasks_and_threads_share_a_queue(self):
        q = weir.Queue(16)

        async def take(out):
            async for item in q:
                out.append(item)

        async def main():
            outs = [[], [], []]
            tasks = [asyncio.ensure_future(take(out)) for out in outs]
            thread = threading.Thread(target=lambda: ([q.put(i) for i in range(2000)], q.close()))
            thread.start()
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
            thread.join()
            return sorted(sum(outs, []))

        self.assertEqual(asyncio.run(main()), list(range(2000)))
        self.assertEqual(q._waiters, {})

    def test_a_task_waits_for_room(self):
        q = weir.Queue(2)

        async def main():
            task = asyncio.ensure_future(asyncio.wait_for(self.fill(q), PATIENCE))
            out = [await weir.aget(q) for _ in range(50)]
            await task
            return out

        self.assertEqual(asyncio.run(main()), list(range(50)))

    async def fill(self, q):
        for i in range(50):
            await weir.aput(q, i)

    def test_a_cancelled_task_takes_nothing(self):
        q = weir.Queue(2)

        async def main():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(weir.aget(q), 0.01)
            self.assertEqual(q._waiters, {})
            q.put("kept")
            return await weir.aget(q)

        self.assertEqual(asyncio.run(main()), "kept")

    def test_a_side_that_ends_late_leaves_the_next_one_alone(self):
        async def main():
            q, loop, out = weir.Queue(8), asyncio.get_running_loop(), []

            async def take(name):
                out.append((name, await weir.aget(q)))

            tasks = [asyncio.ensure_future(take(0))]
            await until(lambda: q._waiters)

            def in_one_iteration():
                q.put_nowait("first")
                loop.call_soon(lambda: tasks.append(asyncio.ensure_future(take(1))))
                loop.call_soon(lambda: (q.get_nowait(), tasks[0].cancel()))

            loop.call_soon(in_one_iteration)
            await until(lambda: tasks[0].done() and q._waiters)
            tasks.append(asyncio.ensure_future(take(2)))
            await until(lambda: sum(len(side.futures) for side in q._waiters.values()) == 2)
            q.put_many("ab")
            await asyncio.wait_for(asyncio.gather(*tasks[1:]), PATIENCE)
            return out, q._waiters

        self.assertEqual(asyncio.run(main()), ([(1, "a"), (2, "b")], {}))

    def test_a_wait_that_is_closed_or_could_not_begin_leaves_nothing_behind(self):
        async def main():
            q, loop = weir.Queue(2), asyncio.get_running_loop()
            waiting = weir.aget(q)
            waiting.send(None)
            waiting.close()
            self.assertEqual(q._waiters, {})
            add_reader, loop.add_reader = loop.add_reader, lambda *words: os.open("/nowhere", os.O_RDONLY)
            with self.assertRaises(OSError):
                await weir.aget(q)
            loop.add_reader = add_reader
            task = asyncio.ensure_future(weir.aget(q))
            await until(lambda: q._waiters)
            q.put(1)
            return await asyncio.wait_for(task, PATIENCE)

        self.assertEqual(asyncio.run(main()), 1)

    def test_a_loop_that_is_left_while_a_task_waits_is_collected(self):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *words: None)  # it is told of a task that never ended
        q = weir.Queue(2)
        task = loop.create_task(weir.aget(q))
        loop.run_until_complete(until(lambda: q._waiters))
        loop.close()
        left = weakref.ref(task)
        del loop, q, task
        with unittest.mock.patch.object(sys, "unraisablehook", lambda told: None):  # the coroutine closes, and its loop is closed
            gc.collect()
        self.assertIsNone(left())

    def test_a_watch_tells_of_newer_versions(self):
        var = weir.Var(0)
        watch = var.watch(1)

        async def main():
            loop, seen = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(watch.fileno(), seen.set)
            thread = threading.Thread(target=var.assign, args=(5,))
            thread.start()
            await asyncio.wait_for(seen.wait(), PATIENCE)
            loop.remove_reader(watch.fileno())
            thread.join()

        asyncio.run(main())
        self.assertEqual(watch.try_take().version, 2)
        self.assertIsNone(watch.try_take())
        del var
        gc.collect()


class Signals(unittest.TestCase):
    # The child says that it is about to wait, and when the exception came; the clock is that of the parent.
    CHILD = """
import signal, sys, time, weir
signal.signal(signal.SIGINT, signal.default_int_handler)
q, var = weir.Queue(1), weir.Var(0)
q.put("here"); held = q.get()
wait = {"get": lambda: q.get(), "put": lambda: (q.put(1), q.put(2)), "wait": lambda: var.wait(1), "many": lambda: q.get_many(3)}[sys.argv[1]]
print("ready", flush=True)
try:
    wait()
except KeyboardInterrupt:
    print(time.monotonic(), len(q))
"""

    def test_control_c_ends_a_wait_at_once_and_loses_nothing(self):
        for what, left in (("get", 0), ("put", 1), ("wait", 0), ("many", 0)):
            child = subprocess.Popen([sys.executable, "-c", self.CHILD, what], stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "ready\n")
            deadline, sent = time.monotonic() + PATIENCE, None
            while child.poll() is None and time.monotonic() < deadline:
                if sleeps(child.pid):
                    sent = sent or time.monotonic()
                    child.send_signal(signal.SIGINT)
                try:
                    child.wait(0.01)
                except subprocess.TimeoutExpired:
                    pass
            ended, length = child.stdout.read().split()
            child.wait()
            child.stdout.close()
            self.assertEqual(int(length), left, what)
            self.assertLess((float(ended) - sent) * 1000, float(os.environ.get("WEIR_PYTHON_PATIENCE_MS", "1000")))

    def test_a_handler_that_raises_nothing_lets_the_wait_go_on(self):
        code = """
import os, signal, threading, time, weir
q, seen = weir.Queue(1), threading.Event()
signal.signal(signal.SIGUSR1, lambda number, frame: seen.is_set() or (seen.set(), q.put("by the handler")))
def send():
    while not seen.wait(0.005):
        os.kill(os.getpid(), signal.SIGUSR1)
threading.Thread(target=send).start()
print(q.get(20))
"""
        self.assertEqual(run_python(code).stdout, "by the handler\n")


    def test_a_handler_that_waits_itself_leaves_the_wait_its_signals(self):
        code = """
import os, signal, threading, weir
q, var, over, seen = weir.Queue(1), weir.Var(0), threading.Event(), []
def handler(number, frame):
    seen.append(number)
    if len(seen) > 1:
        over.set()
        raise KeyboardInterrupt
    var.assign(1)
signal.signal(signal.SIGUSR1, handler)
def send():
    while not over.wait(0.05):
        os.kill(os.getpid(), signal.SIGUSR1)
threading.Thread(target=send, daemon=True).start()
try:
    q.get(20)
except KeyboardInterrupt:
    print("interrupted")
"""
        self.assertEqual(run_python(code).stdout, "interrupted\n")

    def test_what_arrives_while_the_handler_runs_is_not_lost(self):
        code = """
import os, signal, threading, time, weir
q, in_handler, put = weir.Queue(1), threading.Event(), threading.Event()
def handler(number, frame):
    in_handler.set()
    put.wait(20)
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
def sleeps():
    return open(f"/proc/self/task/{os.getpid()}/stat").read().rsplit(")", 1)[1].split()[0] == "S"
def send():
    while not in_handler.is_set():
        if sleeps():
            os.kill(os.getpid(), signal.SIGINT)
        in_handler.wait(0.05)
    q.put("kept")
    put.set()
try:
    threading.Thread(target=send, daemon=True).start()
    q.get(20)
except KeyboardInterrupt:
    print(len(q), q.get(20))
"""
        self.assertEqual(run_python(code).stdout, "1 kept\n")

    def test_the_thread_that_forks_is_the_main_thread_of_the_child(self):
        code = """
import os, signal, threading, time, weir
q = weir.Queue(1)
signal.signal(signal.SIGINT, signal.default_int_handler)
def fork():
    child = os.fork()
    if child == 0:
        try:
            q.get(20)
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(1)
    ended = threading.Event()
    threading.Thread(target=lambda: (os.waitpid(child, 0), ended.set())).start()
    while not ended.wait(0.01):
        try:
            if open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()[0] == "S":
                os.kill(child, signal.SIGINT)
        except OSError:
            pass  # it has just ended
    print("over")
thread = threading.Thread(target=fork)
thread.start()
thread.join()
"""
        begun = time.monotonic()
        self.assertEqual(run_python(code).stdout, "over\n")
        self.assertLess(time.monotonic() - begun, 15)


class Ends(unittest.TestCase):
    def test_daemon_threads_may_wait_when_the_interpreter_ends(self):
        code = """
import threading, weir
q, var = weir.Queue(1), weir.Var(b"x" * 1000)
keep = var.read()
for target in (q.get, lambda: var.wait(1), lambda: [var.assign(bytes(100)) for _ in iter(int, 1)]):
    threading.Thread(target=target, daemon=True).start()
print("end")
"""
        ended = run_python(code)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "end\n", ""))

    def test_values_may_outlive_everything(self):
        ended = run_python("import weir, sys; sys.keep = [weir.Var(bytearray(9)).read(), weir.Queue(3)]; sys.keep[1].put(sys.keep)")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_the_child_of_a_fork_goes_on(self):
        var, q = weir.Var(np.arange(4)), weir.Queue(4)
        q.put(1)
        child = os.fork()
        if child == 0:
            good = np.asarray(var.read()).sum() == 6 and var.assign(np.ones(4, np.int64)) == 2 and q.get() == 1
            q.put(2)
            os._exit(0 if good and q.get() == 2 else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual((var.version, q.get()), (1, 1))

    def test_a_second_interpreter_has_a_module_of_its_own(self):
        code = """
import _xxsubinterpreters as interpreters, weir
mine = weir.Var(bytearray(5))
inside = '''
import weir
var = weir.Var(bytearray(7))
for i in range(50):
    var.assign(bytearray(7))
    var.read()
q = weir.Queue(3)
q.put(var)
weir.flush(5)
'''
for _ in range(3):
    other = interpreters.create()
    interpreters.run_string(other, inside)
    interpreters.destroy(other)
mine.assign(b"still")
weir.flush(5)
print(bytes(mine.read()))
"""
        ended = run_python(code)
        self.assertEqual((ended.returncode, ended.stdout), (0, "b'still'\n"), ended.stderr)


class Rings(unittest.TestCase):
    def test_messages_between_processes(self):
        file = os.memfd_create("ring", os.MFD_ALLOW_SEALING)
        ring = weir.Ring.create(file, 8, 64)
        child = os.fork()
        if child == 0:
            mine = weir.Ring.attach(file)
            for i in range(100):
                mine.put(b"%d" % i)
            os._exit(0)
        self.assertEqual([ring.get(PATIENCE) for _ in range(100)], [b"%d" % i for i in range(100)])
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual((ring.capacity, ring.item_size, len(ring), ring.recover()), (8, 64, 0, 1))
        with self.assertRaises(queue.Empty):
            ring.get(0.001)
        with self.assertRaises(ValueError):
            ring.put(bytes(65))

        ring.close()
        self.assertTrue(ring.closed)
        with self.assertRaises(weir.Closed):
            ring.put(b"x")
        with self.assertRaises(weir.Closed):
            ring.get()
        os.close(file)

    def test_no_ring_in_other_files(self):
        with self.assertRaises((ValueError, weir.Error)):
            weir.Ring.attach(0)
        with self.assertRaises(ValueError):
            weir.Ring.create(-1, 0, 8)


if __name__ == "__main__":
    unittest.main(verbosity=0)
