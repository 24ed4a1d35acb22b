"""Execution of code: kernels, their results and artifacts.

Every kernel imports this package on its way to `inkernel`, and needs none of these names: they are
imported when they are asked for.
"""

from taskweaver.utils.lazy import on_demand
from taskweaver.utils.system.platform import require_supported

require_supported()

__all__ = [  # noqa: F822 - they come on demand
    "Client",
    "ExecutionArtifact",
    "ExecutionResult",
    "Manager",
    "code_execution_service_factory",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        "Client": "common",
        "ExecutionArtifact": "common",
        "ExecutionResult": "common",
        "Manager": "common",
        "code_execution_service_factory": "manager",
    },
)
