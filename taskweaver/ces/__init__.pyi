from taskweaver.ces.common import Client, ExecutionArtifact, ExecutionResult, Manager
from taskweaver.ces.manager import code_execution_service_factory

__all__ = [
    "Client",
    "ExecutionArtifact",
    "ExecutionResult",
    "Manager",
    "code_execution_service_factory",
]
