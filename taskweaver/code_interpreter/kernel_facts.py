"""A line of prompts on the kernel: the well-known libraries it has, and its network."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from taskweaver.ces.policy import SandboxPolicy

_LIBRARIES = (
    "scipy", "sklearn", "statsmodels", "seaborn", "plotly", "polars", "pyarrow", "duckdb",
    "openpyxl", "sqlalchemy", "networkx", "sympy", "xgboost", "lightgbm", "torch", "tensorflow",
    "jax", "transformers", "requests", "bs4",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts on the kernel in words; an empty text for a kernel of which none are known."""

    text: str = ""


def local_kernel_facts(policy: SandboxPolicy | None) -> KernelFacts:
    """Return the facts on kernels of this installation; None for no sandbox."""
    found = [name for name in _LIBRARIES if find_spec(name) is not None]
    network = policy.network if policy else "the network of this machine"
    return KernelFacts(f"Installed too: {', '.join(found) or 'nothing'}. Code has {network}.")
