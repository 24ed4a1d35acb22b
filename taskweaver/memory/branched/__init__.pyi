from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.erasure import Erasure
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
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.memory.branched.protocol.blocks import MemoryReply, read_reply
from taskweaver.memory.branched.protocol.protocol import instructions
from taskweaver.memory.branched.store import BranchedMemory

__all__ = [
    "BranchHandle",
    "BranchSealed",
    "BranchedMemory",
    "BranchedMemoryError",
    "Erasure",
    "ForbiddenMemoryUpdateError",
    "InvalidUpdate",
    "MalformedMemoryUpdateError",
    "MemoryConfig",
    "MemoryManager",
    "MemoryReply",
    "MemoryUpdateError",
    "MissingMemoryUpdateError",
    "RecordNotVisible",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreTooNew",
    "StoreUnwritable",
    "UnknownBranch",
    "instructions",
    "read_reply",
]
