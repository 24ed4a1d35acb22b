"""A memory for agents that work for hours: core, recall and archival over one tree of branches.

    from taskweaver.memory.branched import BranchedMemory

    with BranchedMemory("memory.sqlite") as store:
        run = store.create("run", live=True)
        run.core["goal"] = "a faster solver"
        with run.fork("idea-1") as idea:
            idea.remember("Blocks of 64 rows fit the cache.", tags=["PERFORMANCE"])
        print(idea.render().text)

`MemoryManager` offers the same under the names of the original system.

A library of its own: it imports the standard library and small modules of `taskweaver.utils`. The
public names are imported on first use; `__init__.pyi` declares them for type checkers. See
docs/memory.md.
"""

from taskweaver.utils.lazy import on_demand

_PLACES = {
    "BranchHandle": "handle",
    "BranchSealed": "errors",
    "BranchedMemory": "store",
    "BranchedMemoryError": "errors",
    "Erasure": "erasure",
    "ForbiddenMemoryUpdateError": "errors",
    "InvalidUpdate": "errors",
    "MalformedMemoryUpdateError": "errors",
    "MemoryConfig": "config",
    "MemoryManager": "manager",
    "MemoryUpdateError": "errors",
    "MissingMemoryUpdateError": "errors",
    "RecordNotVisible": "errors",
    "MemoryReply": "protocol.blocks",
    "StoreBusy": "errors",
    "StoreClosed": "errors",
    "StoreCorrupt": "errors",
    "StoreTooNew": "errors",
    "StoreUnwritable": "errors",
    "UnknownBranch": "errors",
    "instructions": "protocol.protocol",
    "read_reply": "protocol.blocks",
}
__all__ = list(_PLACES)
__getattr__, __dir__ = on_demand(__name__, _PLACES)
