"""Where code runs: kernels, their results and artifacts.

Every kernel imports this package on its way to `inkernel`, and needs none of these names: they are
imported when they are asked for.
"""

from typing import TYPE_CHECKING

from taskweaver.utils.lazy import on_demand

if TYPE_CHECKING:
    from taskweaver.ces.common import Client, ExecutionArtifact, ExecutionResult, Manager
    from taskweaver.ces.manager import code_execution_service_factory

__all__ = [
    "Client",
    "ExecutionArtifact",
    "ExecutionResult",
    "Manager",
    "code_execution_service_factory",
]
__getattr__ = on_demand(
    __name__,
    {
        "Client": "common",
        "ExecutionArtifact": "common",
        "ExecutionResult": "common",
        "Manager": "common",
        "code_execution_service_factory": "manager",
    },
)
