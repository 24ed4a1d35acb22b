"""Limits that the system keeps for each process, see ``setrlimit(2)``."""

from __future__ import annotations

import resource

_GRACE_S = 2
_KINDS = (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)


def set_limits(*limits: int) -> None:
    """Limit this process and all that it starts; it leaves no core file.

    Args:
        limits: Bytes of address space, number of processes, bytes of a file and seconds of
            processor time, or the first of them; 0 sets no limit.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, limit in zip(_KINDS, limits, strict=False):
        if limit:
            # Over the first limit on processor time, the system says why; over the second, no more.
            most = limit + _GRACE_S if kind == resource.RLIMIT_CPU else limit
            resource.setrlimit(kind, (limit, most))
