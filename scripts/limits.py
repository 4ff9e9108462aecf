"""Runs programs, and ends those that use too much processor time or hang.

The limits are of processor time, because the time of the clock says little about a program on a slow or busy machine: the program may
have run for a tenth of it. The time of the program's children counts too. Time that several processors spend at once counts once, so
that a program of many threads has the same limit on a machine of many processors as on a machine of few.

A program that waits for ever uses no processor time. A program hangs if two things are true of HANG_SECONDS: it and its children used
less than a twentieth of a processor, and in less than half of the looks one of their threads wanted to run. A thread that waits for
its turn on a busy machine wants to run.
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
LOOK_SECONDS = 1  # The time between two looks at a program that has run for a while.
TICK = 1 / os.sysconf("SC_CLK_TCK")

# code: the exit code, or None if the program was ended; then `why` is the reason in words. processor, wall: seconds.
Ended = collections.namedtuple("Ended", "code why processor wall")

running = set()  # The leaders of the sessions.
starting = threading.RLock()  # Recursive: a signal handler may take it while its thread holds it.
stopping = threading.Event()

# state: as ps prints it. seconds: the processor time of the process and of the children that it waited for.
Stat = collections.namedtuple("Stat", "state parent session seconds")


def end_session(leader):
    """Ends all processes of a session, and also their children in other process groups or sessions."""
    # The children are listed before any process ends, because the children of an ended process lose their parent.
    found = processes_of(leader)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    for process in [*found, *processes_of(leader)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)


class Stopped(Exception):
    """Every program is being ended."""


def end_all():
    """Ends all programs for good. No program starts afterwards, and the programs that this ended have no outcome."""
    stopping.set()
    with starting:
        for leader in list(running):
            end_session(leader)


def stat_of(path):
    """Returns what Linux says of a process or a thread, or None if it is gone."""
    try:
        # The name stands in parentheses and may contain any character.
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Stat(fields[0], int(fields[1]), int(fields[3]), sum(map(int, fields[11:15])) * TICK)


def processes_of(session):
    """
    Returns the processes of a session and their descendants, each with the processor time that it has used. The time of an ended process
    counts for its parent, once the parent has waited for it.
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
    """Returns whether any thread of the processes runs, waits for a processor, or waits for a disk."""
    for process in processes:
        with contextlib.suppress(OSError):  # The process may be gone.
            for thread in (process / "task").iterdir():
                stat = stat_of(thread / "stat")
                if stat is not None and stat.state in "RD":
                    return True
    return False


class Watch:
    """Measures what a session has used since it began, and detects that it hangs."""

    def __init__(self, session, hang_seconds):
        self.session, self.hang_seconds = session, hang_seconds
        self.processor = self.charged = self.sum = 0.0
        self.began = self.looked = time.monotonic()
        self.begin_stretch()

    def begin_stretch(self):
        self.stretch = self.stretch_used = 0.0
        self.looks = self.wanted = 0

    def look(self, pause):
        """Looks after a pause of at least so many seconds. Returns the figures in words if the session hangs, else False."""
        now = time.monotonic()
        elapsed, self.looked = now - self.looked, now
        processes = processes_of(self.session)
        total = sum(processes.values())
        # The total is less than before if a process has ended and its parent did not wait for it.
        used, self.sum = max(0.0, total - self.sum), total
        self.processor += used
        self.charged += min(used, elapsed)
        # After a long time without a look, the whole machine may have been stopped: only a little of that time counts.
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
        """Returns how long to wait before the next look."""
        return min(LOOK_SECONDS, max(0.05, self.wall() / 10), max(0.05, self.hang_seconds / 20))

    def verdict(self, pause, seconds):
        """Returns why the session must end, or None."""
        hangs = self.look(pause)
        if hangs:
            return f"hung and was ended: {hangs}, {self.processor:.1f} s in all, after {self.wall():.0f} s"
        if self.charged > seconds:
            return (f"ran for more than {seconds:g} s of processor time and was ended: {self.processor:.0f} s of all processors, "
                    f"in {self.wall():.0f} s")
        return None


def ended_within(process, pause):
    """
    Waits for the end of a process, for the given pause. Returns the processor time of the process and of the children that it waited
    for, or None if it has not ended.
    """
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
    """Ends a program at its limits, while another thread reads what the program prints. `why` then has the reason."""

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


def lower(leader):
    """
    Gives the session of a program the priority of the thread that started it. Linux may give each session an equal share, and then the
    priorities of programs count only within their sessions.
    """
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    if nice > 0:
        with contextlib.suppress(OSError):
            pathlib.Path(f"/proc/{leader}/autogroup").write_text(str(nice))


def run(command, seconds, output, hang_seconds=HANG_SECONDS, **popen):
    """Runs a program until it ends or reaches its limits. The processes that it started end with it."""
    with starting:
        if stopping.is_set():
            raise Stopped
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, start_new_session=True,
                                   **{"stderr": subprocess.STDOUT, **popen})
        running.add(process.pid)
    lower(process.pid)
    try:
        ended = await_end(process, seconds, hang_seconds)
        if stopping.is_set():
            raise Stopped
        return ended
    finally:
        end_session(process.pid)
        process.wait()
        running.discard(process.pid)
