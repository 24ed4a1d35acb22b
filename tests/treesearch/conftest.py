"""Searches whose figures are not the subject."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from dask_cluster import cluster_program
from search_figures import bare_figures


@pytest.fixture(autouse=True, scope="module")
def _figures() -> Iterator[None]:
    """Draw nothing in the figures of reports: drawing them costs as much as ten attempts."""
    with bare_figures():
        yield


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """The program that starts the processes of clusters, for the tests of a file."""
    from distributed.utils import _offload_executor

    _offload_executor.submit(int).result()  # its thread is Dask's own, and stays
    with cluster_program(tmp_path_factory.mktemp("dask")) as made:
        yield made
