"""The choice of a run's executor."""

from __future__ import annotations

from pathlib import Path

from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.executors.local import LocalExecutor
from taskweaver.treesearch.execution.executors.protocol import JobExecutor
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.utils.system.installation import install_command


def open_executor(config: SearchConfig, sandbox: SandboxRequest, run_dir: Path) -> JobExecutor:
    """Open the executor of a run that a configuration names.

    `run_dir` is the folder of the run.

    Raises:
        SearchError: If it cannot be opened as configured.
    """
    if config.executor == "dask":
        return _dask_executor(config, sandbox, run_dir)
    return LocalExecutor(config.workers, sandbox)


def _dask_executor(config: SearchConfig, sandbox: SandboxRequest, run_dir: Path) -> JobExecutor:
    if config.is_script:
        raise SearchError(
            "Scripts run in kernels of this machine, not on Dask workers.",
            "Choose search.phase_mode split, or search.executor local.",
        )
    if not config.scheduler:
        raise SearchError(
            "search.executor dask needs the address of a scheduler.",
            "Give it, for example --scheduler tcp://127.0.0.1:8786.",
        )
    try:
        from taskweaver.treesearch.execution.executors.remote.dask_executor import DaskExecutor
    except ImportError as error:
        raise SearchError(
            f"search.executor dask needs a package that is missing: {error}.",
            f"Install it: {install_command('dask')}.",
        ) from error
    return DaskExecutor(config.scheduler, config.workers, sandbox, run_dir)
