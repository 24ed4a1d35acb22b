"""Live states of a session's kernels at round ends: sleeping processes that others fork from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskweaver.ces.common import Client, Snapshot
from taskweaver.ces.errors import KernelError

_MOST = 16
"""Most snapshots that are kept: each is a process, however little memory it takes."""


@dataclass(slots=True)
class _Kept:
    """A snapshot, and the memory it alone keeps.

    `resident_bytes` is the size of its kernel at that moment. `extra_bytes` is the memory that the
    kernel has overwritten or freed since, up to the next snapshot; None until that one is taken.
    """

    snapshot: Snapshot
    client: Client
    resident_bytes: int
    extra_bytes: int | None = None

    def measure(self, private_bytes: int, resident_bytes: int) -> int:
        """Return the memory of the snapshot that its kernel does not share any more.

        Pages that the kernel wrote since are its own now. As far as it has grown they are new;
        the others replaced pages that the snapshot keeps.
        """
        return max(0, private_bytes - (resident_bytes - self.resident_bytes))


class Snapshots:
    """Snapshots by branch and round, the newest within a memory budget. Close it.

    Each is measured once, when its kernel's next one is taken: its extra memory is settled then.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._refused: dict[str, str] = {}

    def take(self, branch: str, round_id: str, client: Client) -> None:
        """Keep the state after a round, and drop the oldest that are over the budget."""
        if not self._limit_bytes:
            return
        now = client.footprint
        try:
            snapshot = client.snapshot()
        except KernelError as error:
            self._refused[round_id] = str(error)
            return
        for earlier in self._kept.values():
            if earlier.client is client and earlier.extra_bytes is None:
                private_bytes = now.resident_bytes - now.shared_bytes
                earlier.extra_bytes = earlier.measure(private_bytes, now.resident_bytes)
        self._kept[branch, round_id] = _Kept(snapshot, client, now.resident_bytes)
        while len(self._kept) > _MOST or self.extra_bytes > self._limit_bytes:
            self._kept.pop(next(iter(self._kept))).snapshot.close()

    @property
    def extra_bytes(self) -> int:
        """The memory that the snapshots take up beyond their kernels, as far as it is settled."""
        return sum(kept.extra_bytes or 0 for kept in self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, branches: Sequence[str], round_id: str) -> Snapshot | None:
        """Return the snapshot after a round, as the first of some branches took it."""
        kept = (self._kept.get((branch, round_id)) for branch in branches)
        return next((one.snapshot for one in kept if one is not None), None)

    def why_none(self, round_id: str) -> str:
        """Return why there is no snapshot of a round."""
        return self._refused.get(round_id, "No snapshot is kept from that round.")

    def close(self) -> None:
        """Discard all snapshots."""
        kept, self._kept = self._kept, {}
        for one in kept.values():
            one.snapshot.close()
