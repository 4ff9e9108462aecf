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
import time

HANG_SECONDS = float(os.environ.get("WEIR_HANG_SECONDS", "180"))
HANG_SHARE = 0.05
LOOK_SECONDS = 1  # between two looks at a program that has run for a while
TICK = 1 / os.sysconf("SC_CLK_TCK")

# code: None: it was ended, and why says it in words. processor, wall: seconds
Ended = collections.namedtuple("Ended", "code why processor wall")

running = set()  # the leaders of the sessions


def end_session(leader):
    """Also those that are in process groups of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    for process in processes_of(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)


def end_all():
    for leader in list(running):
        end_session(leader)


def stat_of(path):
    """What the kernel says of a process or a thread: its state, the session, and the seconds that it and its children used."""
    try:
        # The name, in parentheses, may hold anything.
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[3]), sum(map(int, fields[11:15])) * TICK


def processes_of(session):
    """The processes of a session, and what they have used. Whoever has ended counts as its parent's, once that has waited for it."""
    found = {}
    for path in pathlib.Path("/proc").iterdir():
        stat = stat_of(path / "stat") if path.name.isdigit() else None
        if stat is not None and stat[1] == session:
            found[path] = stat[2]
    return found


def wants_to_run(processes):
    """Whether a thread of theirs runs, waits for its turn, or waits for a disk."""
    with contextlib.suppress(OSError):
        for process in processes:
            for thread in (process / "task").iterdir():
                stat = stat_of(thread / "stat")
                if stat is not None and stat[0] in "RD":
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


def await_end(process, seconds, hang_seconds):
    watch = Watch(process.pid, hang_seconds)
    while True:
        pause = min(LOOK_SECONDS, max(0.05, watch.wall() / 10), max(0.05, hang_seconds / 20))
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(pause)
            return Ended(code, None, watch.processor, watch.wall())
        hangs = watch.look(pause)
        if hangs:
            why = f"hung and was ended: {hangs}, {watch.processor:.1f} s in all, after {watch.wall():.0f} s"
            return Ended(None, why, watch.processor, watch.wall())
        if watch.charged > seconds:
            why = f"ran for more than {seconds:g} s of processor time and was ended: {watch.processor:.0f} s of all processors, in {watch.wall():.0f} s"
            return Ended(None, why, watch.processor, watch.wall())


def run(command, seconds, output, hang_seconds=HANG_SECONDS, **popen):
    """Runs a program to its end, or to that of its limits; whatever it started and left behind ends with it."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, start_new_session=True,
                               **{"stderr": subprocess.STDOUT, **popen})
    running.add(process.pid)
    try:
        return await_end(process, seconds, hang_seconds)
    finally:
        end_session(process.pid)
        process.wait()
        running.discard(process.pid)
