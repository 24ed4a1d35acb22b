"""A memory for agents that work for hours: core, recall and archival over one tree of branches.

    from taskweaver.memory.branched import MemoryManager

    with MemoryManager("memory.sqlite") as memory:
        memory.create_branch(None, branch_id="root")
        memory.mem_core_set("goal", "a faster solver", branch_id="root")
        memory.fork("root", "idea-1")
        print(memory.render_for_prompt("idea-1"))

See docs/memory.md.
"""

from taskweaver.memory.branched.blocks import Reply, read_reply
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import (
    BranchedMemoryError,
    BranchSealed,
    ForbiddenMemoryUpdateError,
    InvalidUpdate,
    MalformedMemoryUpdateError,
    MemoryUpdateError,
    MissingMemoryUpdateError,
    RecordNotVisible,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreTooNew,
    StoreUnwritable,
    UnknownBranch,
)
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.memory.branched.protocol import instructions

__all__ = [
    "BranchSealed",
    "BranchedMemoryError",
    "ForbiddenMemoryUpdateError",
    "InvalidUpdate",
    "MalformedMemoryUpdateError",
    "MemoryConfig",
    "MemoryManager",
    "MemoryUpdateError",
    "MissingMemoryUpdateError",
    "RecordNotVisible",
    "Reply",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreTooNew",
    "StoreUnwritable",
    "UnknownBranch",
    "instructions",
    "read_reply",
]
