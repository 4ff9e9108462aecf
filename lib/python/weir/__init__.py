"""Lock-free variables and queues.

Var    a value that is read without waiting, and replaced as a whole; Views show it to NumPy without a copy
Queue  a bounded FIFO queue of objects, for threads (get, put, for) and for event loops (aget, aput, async for)
Ring   the same for messages between processes; a process that is killed blocks no other

snapshot() reads several variables as of one instant, commit() changes several at one instant.
"""
import os as _os

from ._aio import Reader as _Reader, aget, aput
from ._weir import Aborted, Closed, Error, Queue, Ring, Var, View, Watch, _forked, _set_aiter, commit, flush, retired_bytes, set_budget, snapshot
from ._weir import version as __version__

_set_aiter(_Reader)
_os.register_at_fork(after_in_child=_forked)

__all__ = ["Aborted", "Closed", "Error", "Queue", "Ring", "Var", "View", "Watch", "aget", "aput", "commit", "flush", "retired_bytes",
           "set_budget", "snapshot"]
