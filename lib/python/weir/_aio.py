"""Queues in asyncio: the loop polls the descriptor of a queue, and no thread waits.

A task first takes what there is. Only if there is nothing does it ask the loop for the descriptor. All tasks of a loop that wait for
one side of a queue share that; the loop wakes one of them each time, so no task wakes in vain while others have taken the items.
"""
import asyncio
import collections
import queue as _queue
import typing

from ._weir import Closed, Queue

_T = typing.TypeVar("_T")


class _Side:
    """The tasks of one loop that wait for one descriptor of one queue. It removes itself with the last of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fileno: int, home: dict[typing.Any, typing.Any]) -> None:
        self.loop, self.fileno, self.home = loop, fileno, home
        self.futures: typing.Deque[asyncio.Future[None]] = collections.deque()

    def wake_one(self) -> None:
        while self.futures:
            future = self.futures.popleft()
            if not future.done():
                future.set_result(None)
                break
        self.end_if_idle()

    def end_if_idle(self) -> None:
        key = self.loop, self.fileno
        if not self.futures and self.home.get(key) is self:
            del self.home[key]
            self.loop.remove_reader(self.fileno)

    async def wait(self) -> None:
        future = self.loop.create_future()
        self.futures.append(future)
        try:
            await future
        finally:  # also if the coroutine is closed
            future.cancel()
            if future in self.futures:
                self.futures.remove(future)
            self.end_if_idle()


def _side(queue: Queue[typing.Any], fileno: int) -> _Side:
    loop = asyncio.get_running_loop()
    home = queue._waiters
    side: typing.Optional[_Side] = home.get((loop, fileno))
    if side is None:
        side = _Side(loop, fileno, home)
        loop.add_reader(fileno, side.wake_one)  # may fail
        home[loop, fileno] = side
    return side


async def aget(queue: Queue[_T]) -> _T:
    """Takes an item; waits for it in the running loop. Raises Closed as get() does."""
    while True:
        try:
            return queue.get_nowait()
        except _queue.Empty:
            await _side(queue, queue.fileno()).wait()


async def aput(queue: Queue[_T], item: _T) -> None:
    """Puts an item; waits for room in the running loop. Raises Closed as put() does."""
    while True:
        try:
            return queue.put_nowait(item)
        except _queue.Full:
            await _side(queue, queue.writable_fileno()).wait()


class Reader(typing.Generic[_T]):
    """What `async for item in queue` iterates over: the items, until the queue is closed and drained."""

    def __init__(self, queue: Queue[_T]) -> None:
        self.queue = queue

    def __aiter__(self) -> "Reader[_T]":
        return self

    async def __anext__(self) -> _T:
        try:
            return await aget(self.queue)
        except Closed:
            raise StopAsyncIteration from None
