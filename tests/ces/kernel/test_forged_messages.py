"""Code that forges what its kernel sends harms its own cell at most: a typed result, no more."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from kernels import LIMITS, Started, answers, run, warmed
from sizes import some, spread

from taskweaver.ces.common import CellStatus, Client, ExecutionResult, Manager, PluginCode
from taskweaver.ces.kernel.outcome import fields, reported
from taskweaver.code_interpreter.code_executor import sections
from taskweaver.role.situation import variables_text

pytestmark = pytest.mark.measured

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 10**40, 1.5, "", "x", "\x00\x1b[2J\n", [], [[]], [None], [1, 2, 3],
    {}, {"": None}, {"a": {"b": []}}, ["a", "b", "c", "d"], "../../etc/passwd", [{}],
)  # fmt: skip
DEEP = "[" * 100_000

SET_UP = """
import json, zmq, itertools
_kernel = get_ipython().kernel
_send = type(_kernel.session).send
_sign = _kernel.session.sign

def _restore():
    vars(_kernel.session).pop("send", None)

def _raw(*frames):
    '''Send signed frames as they are, on the socket for output.'''
    frames = [f if isinstance(f, bytes) else json.dumps(f).encode() for f in frames]
    topic = [b"x", b"<IDS|MSG>", _sign(frames)]
    _kernel.iopub_socket.send_multipart([*topic, *frames])

def _try(do):
    '''Go on where our own side of the library refuses to send something.'''
    try:
        do()
    except Exception:
        pass

def _replace(change):
    '''Change the content of the next reply.'''
    def send(stream, msg_or_type, content=None, *more, **rest):
        if msg_or_type == "execute_reply":
            _restore()
            content = change(content)
        return _send(_kernel.session, stream, msg_or_type, content, *more, **rest)
    _kernel.session.send = send

def _replace_report(text):
    def change(content):
        return {**content, "user_expressions": {"taskweaver": text}}
    _replace(change)
"""


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """A manager with a template, for some forgeries cost the kernel."""
    limits = dataclasses.replace(LIMITS, cell_timeout_s=5.0)
    with warmed(tmp_path_factory.mktemp("forging"), limits) as made:
        yield made


@pytest.fixture
def forging(manager: Manager, tmp_path: Path) -> Iterator[Client]:
    client = manager.get_session_client(str(tmp_path), session_dir=tmp_path)
    assert run(client, SET_UP).is_success
    yield client
    client.stop()


def check(result: ExecutionResult) -> None:
    """Check that a result is of the types it promises, and can be told."""
    assert result.status in get_args(CellStatus)
    assert isinstance(result.error, str | None)
    assert all(isinstance(text, str) for text in [*result.stdout, *result.stderr])
    assert all(isinstance(part, str) for line in result.log for part in line)
    assert all(isinstance(part, str) for pair in result.variables for part in pair)
    for artifact in result.artifact:
        assert all(isinstance(value, str) for value in dataclasses.asdict(artifact).values())
        assert artifact.type in {"chart", "df", "file", "txt", "svg", "html", "image"}
        assert not Path(artifact.file_name).is_absolute()
        assert ".." not in Path(artifact.file_name).parts
    json.dumps(dataclasses.asdict(result)).encode()
    assert len(sections(result)) < 100_000
    assert len(variables_text(result.variables)) < 10_000


def test_output_of_any_form_is_left_out_or_text(forging: Client) -> None:
    parent = "parent=_kernel.get_parent('shell')"
    code = "\n".join(
        f"_try(lambda: _kernel.session.send(_kernel.iopub_socket, {kind!r}, {content!r}, {parent}))"
        for odd in ODD
        for kind, content in (
            *(("stream", {"name": odd, "text": "a"}), ("stream", {"name": "stdout", "text": odd})),
            *(("stream", odd), ("stream", {}), ("status", odd), ("error", odd), ("odd", odd)),
            ("status", {"execution_state": odd}),
        )
    )
    result = run(forging, f"{code}\nprint('end')")
    check(result)
    assert "end" in "".join(result.stdout)
    assert answers(forging)


def test_frames_that_are_no_message_are_left_out(forging: Client) -> None:
    header = {"msg_id": "1", "msg_type": "stream", "version": "5.3"}
    content = {"name": "stdout", "text": "forged"}
    chance = random.Random(5)
    messages: list[list[Any]] = []
    for odd in ODD:
        messages += [
            [odd, odd, odd, odd],
            [header, odd, {}, content],
            [header | {"msg_type": odd}, {}, {}, content],
            [header | {"version": odd}, {}, {}, content],
            [header | {"date": odd}, {"date": odd}, odd, odd],
            [header, {"msg_id": odd}, {}, content],
            [header, {}, {}, content][: chance.randrange(4)],
            [header, {}, {}, content, odd, odd],
        ]
    lines = [f"_try(lambda: _raw(*{frames!r}))" for frames in messages]
    lines += [f"_raw({bytes(chance.randbytes(9))!r}, b'{{', b'[', deep)" for _ in range(20)]
    lines.insert(0, f"deep = b'[' * {len(DEEP)}")
    lines += ["_kernel.iopub_socket.send_multipart([b'x'])"]
    lines += ["_kernel.iopub_socket.send_multipart([b'', b'<IDS|MSG>'])"]
    lines += ["_kernel.iopub_socket.send_multipart([b'a', b'<IDS|MSG>', b'', b'{}', b'{}'])"]
    result = run(forging, "\n".join([*lines, "print('end')"]))
    check(result)
    assert "end" in "".join(result.stdout)
    assert "forged" not in "".join(result.stdout)
    assert answers(forging)


@pytest.mark.parametrize("field", ["user_expressions", "traceback", "status", "ename", None])
def test_a_reply_of_any_form_is_a_result(forging: Client, field: str | None) -> None:
    for odd in some(spread(ODD, 3), 9) if field else ODD[:1]:
        changed = f"{{**c, {field!r}: {odd!r}}}" if field else repr(odd)
        check(run(forging, f"_replace(lambda c: {changed})\n1 / 0"))
        check(run(forging, f"_replace(lambda c: {changed})\n1"))
    assert answers(forging)


def reports(odd_values: Sequence[Any] = ODD) -> Iterator[str]:
    """Yield forged reports; each field has each of the odd values."""
    artifact = {
        "name": "a", "type": "file", "file_name": "a.txt", "original_name": "a", "preview": "p",
    }  # fmt: skip
    whole: dict[str, Any] = {
        "output": 1, "variables": [["a", "1"]], "artifacts": [artifact],
        "log": [["INFO", "tag", "text"]], "dropped_chars": 0,
    }  # fmt: skip
    for odd in odd_values:
        yield json.dumps(odd)
        for field in whole:
            yield json.dumps(whole | {field: odd})
            yield json.dumps(whole | {field: [odd]})
        for field in artifact:
            yield json.dumps(whole | {"artifacts": [artifact | {field: odd}]})
            yield json.dumps(whole | {"artifacts": [{field: odd}]})
        yield json.dumps(whole | {"variables": [[odd, odd]], "log": [[odd, odd, odd]]})
    yield from ("", "{", DEEP, "NaN", '{"output": ' + "1" * 5000 + "}")
    for depth in (60, 500, 900):
        yield '{"output": ' + "[" * depth + "]" * depth + "}"
    yield json.dumps({"output": "x" * 3_000_000})
    yield json.dumps(whole | {"artifacts": [artifact] * 20_000, "variables": [["n", "v"]] * 50_000})
    yield json.dumps(whole | {"log": [["INFO", "t", "m" * 1000]] * 5_000})


def test_a_report_of_any_form_is_a_result(forging: Client, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    run(forging, "open('a.txt', 'w').write('x')")
    for number, report in enumerate(reports(some(spread(ODD, 3), 5))):
        file = folder / f"{number}.json"
        file.write_text(report)
        result = run(forging, f"_replace_report(open({str(file)!r}).read())")
        check(result)
        assert len(result.artifact) <= 200
        assert result.status in {"ok", "error"}
    assert answers(forging)


def test_a_kernel_that_no_longer_answers_is_given_up_in_time(started: Started) -> None:
    client = started(cell_timeout_s=1.0)
    run(client, SET_UP)
    check(run(client, "_kernel.session.key = b'another'"))
    results = [run(client, "21") for _ in range(2)]
    for result in results:
        check(result)
    assert results[-1].output == 21 or results[-1].status in {"timeout", "error"}


@pytest.mark.parametrize(
    "body", ["b'[1]'", pytest.param("b'x' * 2_000_000", marks=pytest.mark.long)]
)
def test_a_flood_does_not_keep_the_owner_from_its_deadline(started: Started, body: str) -> None:
    client = started(cell_timeout_s=1.5)
    assert run(client, SET_UP).is_success
    flood = f"body = {body}\nwhile True: _kernel.iopub_socket.send_multipart([b'x', body])"
    result = run(client, flood)
    check(result)
    assert result.status == "timeout"
    assert answers(client)


def test_forged_output_is_bounded_as_other_output_is(started: Started) -> None:
    client = started(cell_timeout_s=20.0, output_limit_bytes=10_000)
    run(client, SET_UP)
    heard: list[str] = []
    code = (
        "p = _kernel.get_parent('shell')\nfor _ in range(400):\n"
        "    content = {'name': 'stdout', 'text': 'y' * 1000}\n"
        "    _kernel.session.send(_kernel.iopub_socket, 'stream', content, p)"
    )
    result = client.execute_code("x", code, lambda _, text: heard.append(text))
    check(result)
    assert len("".join(result.stdout)) <= 120_000
    assert len("".join(heard)) <= 120_000
    assert result.is_truncated


def test_what_is_told_of_plugins_may_have_any_form(forging: Client) -> None:
    code = (
        "from taskweaver.plugin import register_plugin, test_plugin\n"
        "@register_plugin\ndef p():\n    return 1\n"
        "@test_plugin(name='t', description='d')\ndef test(plugin): forge()\n"
        "import builtins\nforge = builtins.forge\nforge()\n"
    )
    for odd in some(spread(ODD, 3), 8):
        for report in ({"problems": odd, "results": odd}, {"problems": {"p": odd, "other": odd}}):
            told = json.dumps(report | {"refused": odd})
            forge = f"__import__('builtins').forge = lambda: _replace_report({told!r})"
            run(forging, f"{SET_UP}\n{forge}")
            problems = forging.load_plugins([PluginCode("p", code, {"n": told})])
            assert problems.keys() <= {"p"}
            assert all(isinstance(text, str) for text in problems.values())
            for result in forging.test_plugin("p"):
                assert isinstance(result.name, str)
                assert isinstance(result.failure, str)
    assert answers(forging)


def test_calls_of_plugins_in_a_report_are_claims() -> None:
    rows = [
        ["fair", 0.1, 0.2, ""], ["failed", 1, 2, "Value Error"], ["early", -1.0, 2.0, ""],
        ["endless", 0.0, 1e300, ""], ["none", float("nan"), 1.0, ""], ["text", "0", 1.0, ""],
        ["short", 0.0], "no row", {"name": "x"}, [3, 0.0, 1.0, ""], ["long" * 999, 0.0, 1.0, ""],
    ]  # fmt: skip
    reply = {"user_expressions": {"taskweaver": json.dumps({"calls": rows})}}
    calls = reported("x", "", fields(reply)).calls
    assert [(call.name, call.error) for call in calls[:2]] == [("fair", ""), ("failed", "error")]
    assert len(calls) == 3
    assert len(calls[2].name) < 300
    odd = {"user_expressions": {"taskweaver": '{"calls": 7}'}}
    assert reported("x", "", fields(odd)).calls == []
