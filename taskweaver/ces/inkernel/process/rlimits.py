"""Limits that the system keeps for each process, see ``setrlimit(2)``."""

from __future__ import annotations

import resource

_GRACE_S = 2
_KINDS = (
    resource.RLIMIT_NPROC,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_CPU,
    resource.RLIMIT_NOFILE,
)


def set_limits(*limits: int) -> None:
    """Limit this process and all that it starts; it leaves no core file.

    They are the number of processes, bytes of a file, seconds of processor time and open files, or
    the first of these; 0 sets no limit, and a lower one that is set already stays.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, limit in zip(_KINDS, limits, strict=False):
        if limit:
            # Over the first limit on processor time, the system says why; over the second, no more.
            most = limit + _GRACE_S if kind == resource.RLIMIT_CPU else limit
            before = resource.getrlimit(kind)[1]
            if before != resource.RLIM_INFINITY:
                limit, most = min(limit, before), min(most, before)
            resource.setrlimit(kind, (limit, most))
