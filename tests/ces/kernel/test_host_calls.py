"""Code in a kernel calls functions of the application: in every sandbox, restarted and forked."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from kernels import TIERS, Managers, Started, run
from patience import PATIENCE_S

from taskweaver.ces.hostcalls import MOST_BYTES, HostCalls
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.plugin import host_function

pytestmark = pytest.mark.measured

SOURCE = Path(host_function.__file__).read_text("utf-8")
FUNCTIONS: dict[str, list[str]] = {
    "add": ["a", "b"], "fail": [], "long": ["size"], "hang": [], "private": [], "picture": [],
}  # fmt: skip
# With Landlock, a package that is found by PYTHONPATH needs its folder to be listed.
PACKAGE = (Path(__file__).parents[3],)
POLICIES = [None, *(SandboxPolicy(tier=tier, read_only=PACKAGE) for tier in TIERS)]


class Functions:
    """What the application offers here, and what became of it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.permitting: list[threading.Thread] = []
        self.hanging: Future[Any] = Future()
        self.is_hanging = threading.Event()

    def permit(self, name: str, arguments: Mapping[str, Any]) -> str:
        assert isinstance(arguments, dict)
        self.permitting.append(threading.current_thread())
        if name == "interrupted":
            raise KeyboardInterrupt
        return "not for you." if name == "private" else ""

    def call(self, name: str, arguments: Mapping[str, Any]) -> Future[Any]:
        self.calls.append((name, arguments))
        done: Future[Any] = Future()
        if name == "add":
            done.set_result([{"value": arguments["a"] + arguments["b"]}])
        elif name == "long":
            done.set_result([{"value": "x" * arguments["size"]}])
        elif name == "picture":
            done.set_result([{"file": "dot.png", "type": "image", "data": "YWJj"}])
        elif name == "hang":
            self.is_hanging.set()
            return self.hanging
        else:
            done.set_exception(ValueError(f"no good: {name}"))
        return done


def offer(client: Kernel, functions: Functions) -> None:
    client.offer(functions)
    for name, parameters in FUNCTIONS.items():
        config = {"parameters": parameters, "needed": parameters, "about": f"about {name}"}
        client.load_plugin(name, SOURCE, config)


def is_cancelled(call: Future[Any]) -> bool:
    ended = threading.Event()
    call.add_done_callback(lambda _: ended.set())  # `wait` takes no notice of a cancelled one
    ended.wait(PATIENCE_S)
    return call.cancelled()


@pytest.mark.parametrize("policy", POLICIES)
def test_calls_work_in_every_sandbox_after_a_restart_and_in_a_fork(
    managers: Managers, policy: SandboxPolicy | None
) -> None:
    client, functions = managers(policy=policy).get_session_client("s-main"), Functions()
    offer(client, functions)
    assert run(client, "np.int64(2); add(np.int64(2), b=3)").output == 5
    assert functions.permitting == [threading.current_thread()]
    assert not run(client, "import os; os.kill(os.getpid(), 9)").is_success
    assert run(client, "x = 20; add(x, 1)").output == 21
    snapshot = client.snapshot()
    other = Functions()
    fork = snapshot.fork("s-other", session_dir=client.place.folder)
    snapshot.close()
    offer(fork, other)
    assert run(fork, "add(x, 2)").output == 22
    assert run(client, "add(x, 3)").output == 23
    assert len(other.calls) == 1
    assert dict(run(client, "1").variables) == {"x": "20"}
    assert run(client, "add.__doc__").output == "about add"


def test_what_goes_wrong_is_an_exception_that_says_it(started: Started) -> None:
    client, functions = started(), Functions()
    offer(client, functions)
    for code, reason in {
        "fail()": "fail: ValueError: no good: fail",
        "private()": "private: not for you.",
        "add(1, 2, 3)": "add() takes 2 arguments, not 3",
        "add(1, a=3)": "add() got a twice",
        "add(pd.DataFrame, 1)": "the arguments cannot be sent as JSON: type has no form in JSON",
        f"long({MOST_BYTES})": "the result has 8.0 MiB, and at most 8 MiB can be handed over",
        f"add('x' * {MOST_BYTES + 9}, '')": "the arguments have more than 8 MiB; send less.",
    }.items():
        result = run(client, code)
        assert not result.is_success, code
        assert reason in (result.error or ""), result.error
    assert run(client, f"len(long({MOST_BYTES - 200}))").output == MOST_BYTES - 200


def test_a_file_is_written_and_listed(started: Started) -> None:
    client = started()
    offer(client, Functions())
    result = run(client, "open(picture()).read()")
    assert result.output == "abc"
    assert [(item.type, item.original_name) for item in result.artifact] == [("image", "dot.png")]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_call_ends_with_its_cell(managers: Managers, policy: SandboxPolicy | None) -> None:
    client = managers(policy=policy, cell_timeout_s=3.0).get_session_client("s")
    functions = Functions()
    offer(client, functions)
    result = run(client, "y = 1; hang()")
    assert (result.status, result.is_state_lost) == ("timeout", False)
    assert is_cancelled(functions.hanging)
    assert run(client, "add(y, 1)").output == 2


def test_an_interrupt_at_the_question_ends_the_cell(started: Started) -> None:
    client, functions = started(), Functions()
    offer(client, functions)
    config = {"parameters": [], "needed": [], "about": ""}
    client.load_plugin("interrupted", SOURCE, config)
    with pytest.raises(KeyboardInterrupt):
        run(client, "z = 1\ntry: interrupted()\nexcept Exception as e: z = str(e)\nadd(1, 1)")
    assert run(client, "z").output in {1, "interrupted: it was not allowed."}
    assert functions.calls == []


def test_calls_are_answered_only_while_a_cell_runs(started: Started) -> None:
    client, functions = started(), Functions()
    offer(client, functions)
    go = client.place.folder / "cwd" / "go"  # type: ignore[attr-defined]
    code = """
import os, threading, time
def later():
    while not os.path.exists("go"): time.sleep(0.01)
    try: text = str(add(1, 1))
    except Exception as error: text = str(error)
    open("said.part", "w").write(text); os.rename("said.part", "said")
threading.Thread(target=later).start()
"""
    run(client, code)
    go.touch()
    said = go.with_name("said")
    while not said.exists():
        threading.Event().wait(0.02)
    assert said.read_text() == "add: it can be called only while a cell runs."


HOSTILE = [
    b"garbage\n", b"[1, 2]\n", b"\n", b'{"name": 3, "arguments": {}}\n', b'{"name": "add"}\n',
    b'{"name": "add", "arguments": [1]}\n', b"[" * 100_000 + b"\n", b"\xff\xfe\n",
    b"x" * (MOST_BYTES + 100) + b"\n",
]  # fmt: skip


def test_hostile_requests_are_refused_and_harm_nobody(tmp_path: Path) -> None:
    functions = Functions()
    calls = HostCalls(tmp_path, functions)
    with closing(calls), calls.answered():
        for request in HOSTILE:
            reply = json.loads(asked(calls.path, request))
            assert set(reply) == {"error"}, request[:40]
    assert functions.calls == []
    calls.close()
    assert list(tmp_path.iterdir()) == []


def asked(path: Path, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        with suppress(BrokenPipeError):
            connection.sendall(request)
        reply = b""
        while piece := connection.recv(1 << 16):
            reply += piece
        return reply


def test_many_silent_connections_do_not_keep_others_out_for_ever(tmp_path: Path) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    with closing(HostCalls(tmp_path, Functions())) as calls:
        with calls.answered():
            for connection in silent:
                connection.connect(str(calls.path))
            assert b"calls are under way" in asked(calls.path, b"x\n")
        for connection in silent:
            connection.close()
