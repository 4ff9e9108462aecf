"""Programs that are ended when they use too much processor time, or hang.

A clock on the wall tells nothing about a program on a slow or busy machine: it may have run for a tenth of that time. So what is
limited is processor time, of the program and of what it started, and of several processors' no more than one's: a program of many
threads has as long on a machine of many processors as on one of few.

A program that waits for ever uses none. It hangs when it and all that it started used less than a twentieth of a processor for
HANG_SECONDS together, and hardly ever had a thread that wanted to run: one that waits for its turn on a busy machine does.
"""
import collections
import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time

HANG_SECONDS = float(os.environ.get("WEIR_HANG_SECONDS", "180"))
HANG_SHARE = 0.05
LOOK_SECONDS = 1  # between two looks at a program that has run for a while
TICK = 1 / os.sysconf("SC_CLK_TCK")

# code: None: it was ended, and why says it in words. processor, wall: seconds
Ended = collections.namedtuple("Ended", "code why processor wall")

running = set()  # the leaders of the sessions
starting = threading.RLock()  # also taken by a signal handler in the middle of it
stopping = threading.Event()

# state: as ps prints it; seconds: of processor time, its own and of the children that it waited for
Stat = collections.namedtuple("Stat", "state parent session seconds")


def end_session(leader):
    """Also those that are in process groups, or sessions, of their own."""
    # Before any of them ends, since what it started would then be nobody's.
    found = processes_of(leader)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    for process in [*found, *processes_of(leader)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)


class Stopped(Exception):
    """All is being ended."""


def end_all():
    """For good: nothing starts after this, and what was ended by it has no outcome."""
    stopping.set()
    with starting:
        for leader in list(running):
            end_session(leader)


def stat_of(path):
    """What the kernel says of a process or a thread."""
    try:
        # The name, in parentheses, may hold anything.
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Stat(fields[0], int(fields[1]), int(fields[3]), sum(map(int, fields[11:15])) * TICK)


def processes_of(session):
    """
    The processes of a session and all that these started, and what they have used. What a process used that has ended is its parent's,
    once that has waited for it.
    """
    stats = {int(path.name): stat_of(path / "stat") for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()}
    stats = {pid: stat for pid, stat in stats.items() if stat is not None}
    found = {pid for pid, stat in stats.items() if stat.session == session}
    more = found
    while more:
        more = {pid for pid, stat in stats.items() if stat.parent in more} - found
        found |= more
    return {pathlib.Path("/proc", str(pid)): stats[pid].seconds for pid in found}


def wants_to_run(processes):
    """Whether a thread of theirs runs, waits for its turn, or waits for a disk."""
    for process in processes:
        with contextlib.suppress(OSError):  # It may be gone.
            for thread in (process / "task").iterdir():
                stat = stat_of(thread / "stat")
                if stat is not None and stat.state in "RD":
                    return True
    return False


class Watch:
    """What a session has used since it began, and whether it hangs."""

    def __init__(self, session, hang_seconds):
        self.session, self.hang_seconds = session, hang_seconds
        self.processor = self.charged = self.sum = 0.0
        self.began = self.looked = time.monotonic()
        self.begin_stretch()

    def begin_stretch(self):
        self.stretch = self.stretch_used = 0.0
        self.looks = self.wanted = 0

    def look(self, pause):
        """After a pause of so many seconds, or more. True: it hangs."""
        now = time.monotonic()
        elapsed, self.looked = now - self.looked, now
        processes = processes_of(self.session)
        total = sum(processes.values())
        # Less than before: someone has ended for whom nobody waited.
        used, self.sum = max(0.0, total - self.sum), total
        self.processor += used
        self.charged += min(used, elapsed)
        # Where nobody looked for long, the whole machine may have stood still: that counts as little.
        self.stretch += min(elapsed, 2 * pause)
        self.stretch_used += used
        self.looks += 1
        self.wanted += wants_to_run(processes)
        if self.stretch < self.hang_seconds:
            return False
        hangs = self.stretch_used < HANG_SHARE * self.stretch and 2 * self.wanted < self.looks
        words = f"{self.stretch_used:.1f} s of processor time in the last {self.stretch:.0f} s"
        self.begin_stretch()
        return words if hangs else False

    def wall(self):
        return time.monotonic() - self.began

    def pause(self):
        """How long to wait for the next look."""
        return min(LOOK_SECONDS, max(0.05, self.wall() / 10), max(0.05, self.hang_seconds / 20))

    def verdict(self, pause, seconds):
        """Why it has to end, or None."""
        hangs = self.look(pause)
        if hangs:
            return f"hung and was ended: {hangs}, {self.processor:.1f} s in all, after {self.wall():.0f} s"
        if self.charged > seconds:
            return (f"ran for more than {seconds:g} s of processor time and was ended: {self.processor:.0f} s of all processors, "
                    f"in {self.wall():.0f} s")
        return None


def ended_within(process, pause):
    """Waits so long for its end. What it and those of its children that it waited for have used, or None."""
    end, delay = time.monotonic() + pause, 0.001
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.monotonic() >= end:
            return None
        time.sleep(delay)
        delay = min(2 * delay, 0.05)


def await_end(process, seconds, hang_seconds):
    watch = Watch(process.pid, hang_seconds)
    while True:
        pause = watch.pause()
        used = ended_within(process, pause)
        if used is not None:
            return Ended(process.returncode, None, max(used, watch.processor), watch.wall())
        why = watch.verdict(pause, seconds)
        if why is not None:
            return Ended(None, why, watch.processor, watch.wall())


class Guard(threading.Thread):
    """Beside a thread that reads what a program prints: ends the program at its limits, and then says why."""

    def __init__(self, process, seconds, hang_seconds):
        super().__init__(daemon=True)
        self.process, self.seconds, self.hang_seconds = process, seconds, hang_seconds
        self.why, self.over = None, threading.Event()
        self.start()

    def run(self):
        watch = Watch(self.process.pid, self.hang_seconds)
        while not self.over.wait(pause := watch.pause()):
            self.why = watch.verdict(pause, self.seconds)
            if self.why is not None:
                end_session(self.process.pid)
                return

    def stop(self):
        self.over.set()
        self.join()


def run(command, seconds, output, hang_seconds=HANG_SECONDS, **popen):
    """Runs a program to its end, or to that of its limits; whatever it started and left behind ends with it."""
    with starting:
        if stopping.is_set():
            raise Stopped
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, start_new_session=True,
                                   **{"stderr": subprocess.STDOUT, **popen})
        running.add(process.pid)
    try:
        ended = await_end(process, seconds, hang_seconds)
        if stopping.is_set():
            raise Stopped
        return ended
    finally:
        end_session(process.pid)
        process.wait()
        running.discard(process.pid)
