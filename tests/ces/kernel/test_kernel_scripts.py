"""Shell scripts in a kernel: what they print, how they end, and what they leave behind."""

from __future__ import annotations

import psutil
import pytest
from kernels import Shared, Started, answers, run
from patience import PATIENCE_S

from taskweaver.ces.common import Client

pytestmark = pytest.mark.measured


def test_output_of_both_kinds_and_the_exit_status_come_back(shared: Shared) -> None:
    client, _ = shared
    good = run(client, "%%bash\necho 'one {x} $x'; echo two >&2")
    assert (good.is_success, good.error) == (True, None)
    assert ("".join(good.stdout), "".join(good.stderr)) == ("one {x} $x\n", "two\n")
    bad = run(client, "%%bash\necho before\nexit 3")
    assert (bad.is_success, bad.error) == (False, "exit status 3")
    assert "".join(bad.stdout) == "before\n"
    assert run(client, "%%sh\nkill -9 $$").error == "ended by SIGKILL"


def test_a_command_that_reads_does_not_eat_the_script(shared: Shared) -> None:
    assert "".join(run(shared[0], "%%bash\ncat\necho after").stdout) == "after\n"


def test_options_are_those_of_ipython(fresh: Client) -> None:
    assert run(fresh, "%%bash --out said\necho hi").is_success
    assert run(fresh, "said").output == "hi\n"


def test_what_a_script_leaves_running_is_not_waited_for(fresh: Client) -> None:
    result = run(fresh, "%%bash\nsleep 1000 &\necho done")
    assert "".join(result.stdout) == "done\n"
    assert result.duration_s < 60


def test_a_script_without_end_is_stopped_with_all_it_started(started: Started) -> None:
    client = started(cell_timeout_s=2.0)
    result = run(client, "%%bash\nsleep 1001 & echo $!\nwait")
    assert result.status == "timeout"
    child = int("".join(result.stdout))
    psutil.wait_procs(
        [psutil.Process(child)] if psutil.pid_exists(child) else [], timeout=PATIENCE_S
    )
    assert not psutil.pid_exists(child)
    assert answers(client)
