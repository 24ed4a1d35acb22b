"""A memory for agents that work for hours: core, recall and archival over one tree of branches.

    from taskweaver.memory.branched import MemoryManager

    with MemoryManager("memory.sqlite") as memory:
        memory.create_branch(None, branch_id="root")
        memory.mem_core_set("goal", "a faster solver", branch_id="root")
        memory.fork("root", "idea-1")
        print(memory.render_for_prompt("idea-1"))

A library of its own: it imports the standard library and small modules of `taskweaver.utils`. The
public names are imported on first use; `__init__.pyi` declares them for type checkers. See
docs/memory.md.
"""

from taskweaver.utils.lazy import on_demand

_PLACES = {
    "BranchSealed": "errors",
    "BranchedMemoryError": "errors",
    "ForbiddenMemoryUpdateError": "errors",
    "InvalidUpdate": "errors",
    "MalformedMemoryUpdateError": "errors",
    "MemoryConfig": "config",
    "MemoryManager": "manager",
    "MemoryUpdateError": "errors",
    "MissingMemoryUpdateError": "errors",
    "RecordNotVisible": "errors",
    "Reply": "blocks",
    "StoreBusy": "errors",
    "StoreClosed": "errors",
    "StoreCorrupt": "errors",
    "StoreTooNew": "errors",
    "StoreUnwritable": "errors",
    "UnknownBranch": "errors",
    "instructions": "protocol",
    "read_reply": "blocks",
}
__all__ = list(_PLACES)
__getattr__ = on_demand(__name__, _PLACES)
