"""A configured key leaves the session nowhere: no log, no export, no screen, no error text.

The endpoint repeats the key in its errors and headers and the model in its answer, and code
prints the environment of the process that started it. The session's own files hold the text as it
is, since its code runs again; only their owner can read them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from command_line import CommandLine
from fake_endpoint import Call, FakeEndpoint, good, serving
from rounds import ALONE, keys_of
from support import NO_STATES, Listener, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.memory.cells import successful_cells
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.utils import redact
from taskweaver.utils.redact import MASK

PREFIXED = "sk-proj-CANARYq7Xw2LpR9vTn4KzY8mBd3"
HEXADECIMAL = "c0ffee15900dc0ffee15900dc0ffee15900dca7a"
OTHER = "0therCanaryOfAnotherService77"
OWN_FILES = ("memory.sqlite", "raw_exp_", "recorded.yaml", "prompts.jsonl")
"""Beginnings of the names of files that are kept as they are."""
EVERYDAY = "token = 'abcdefghijklmnop1234'; len(token)"
ALL_SECRETS = f"{HEXADECIMAL!r}, {PREFIXED!r}, {OTHER!r}"
ELSEWHERE = [code_reply(EVERYDAY), code_reply(ALL_SECRETS), code_reply("done", "text")]
STEAL = """
import os
pid = os.getppid()
while pid > 1:
    try:
        found = open(f"/proc/{pid}/environ").read().replace(chr(0), chr(10))
    except OSError:
        break
    if "CANARY" in found.upper():
        print(found)
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
seen = KEYS
print(seen, dict(os.environ))
print(seen, file=__import__("sys").stderr)
"""


@dataclass(frozen=True, slots=True)
class Place:
    project: Path
    endpoint: FakeEndpoint
    key: str
    commands: CommandLine

    def run(self, *arguments: str, text: str = "", status: int | None = 0) -> str:
        """Run a command, whose environment code can read; return what it wrote, checked."""
        cwd = self.project.parent
        names = {"OPENAI_API_KEY": self.key, "SOME_SERVICE_TOKEN": OTHER, "HOME": str(cwd)}
        done = self.commands.run(*arguments, env=os.environ | names, cwd=cwd, text=text)
        said = done.stdout + done.stderr
        assert status is None or done.returncode == status, said
        self.check(said)
        return said

    def run_here(self, *arguments: str, text: str = "") -> Result:
        """Run a command in this process; return its outcome, after a check of what it wrote."""
        done = CliRunner().invoke(commands, ["-p", str(self.project), *arguments], input=text)
        self.check(done.output)
        return done

    def check(self, text: str) -> None:
        for secret in (self.key, OTHER):
            at = text.find(secret)
            assert at < 0, text[max(at - 200, 0) : at + 100]

    def check_files(self) -> None:
        """Search every byte of every file but the one the key was written to.

        The session's own files may hold it, if only their owner can read them.
        """
        home = self.project.parent
        paths = [path for path in home.rglob("*") if path.is_file()]
        assert any(path.name == "memory.sqlite" for path in paths)
        for path in paths:
            if path.name == "taskweaver_config.json":
                continue
            data = path.read_bytes()
            if any(secret.encode() in data for secret in (self.key, OTHER)):
                is_state = path.parent.name == "chunks" and path.parents[1].name == "state"
                assert is_state or path.name.startswith(OWN_FILES), path
                assert path.stat().st_mode & 0o077 == 0, path


def echoing(key: str) -> dict[str, list[str]]:
    """Return the replies to each role, in order; the key is in all of them."""
    code = STEAL.replace("KEYS", repr(f"{key} {OTHER}"))
    plan = planner_reply("CodeInterpreter", f"find {key}", plan=f"1. use {key}")
    return {
        "planner": [plan, plan, planner_reply("User", f"the key is {key}, the other {OTHER}")],
        "code": [
            code_reply(code, thought=f"the key is {key}"),
            code_reply(f"raise RuntimeError({key!r})"),
            code_reply(f"I could not use {key}", "text"),
        ],
    }


@pytest.fixture
def place(
    tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    monkeypatch.setattr(redact, "_shared", redact.Redactor())  # tests before have taught the key
    monkeypatch.setenv("SOME_SERVICE_TOKEN", OTHER)
    key = HEXADECIMAL
    replies = echoing(key)

    def play(call: Call) -> None:
        if "refuse me" in call.body["messages"][-1]["content"]:
            headers = {"x_request_id": key, "location": f"http://127.0.0.1/{key}"}
            words = f"Incorrect API key provided: {key}. Authorization: Bearer {key}"
            call.answer(401, {"error": {"message": words, "code": key}}, **headers)
            return
        system = call.body["messages"][0]["content"]
        waiting = replies["code" if "ProgramApe" in system else "planner"]
        call.stream(good(waiting.pop(0) if len(waiting) > 1 else waiting[0]))

    with serving(play) as endpoint:
        config = keys_of(endpoint.url, **{"llm.api_key": key, "logging.level": "DEBUG"})
        config |= {"code_interpreter.max_retry_count": 1, "session.data_dir": "${AppBaseDir}/data"}
        project = make_project(tmp_path / "home" / "project", config, has_table=False)
        yield Place(project, endpoint, key, command_line)


SCRIPT = """refuse me
/save
find out
/info
/plugins
/save
/export all.ipynb
/export all.py
/export all.md
"""


def test_a_chat_by_command_leaves_the_key_nowhere(place: Place) -> None:
    shown = place.run("-p", str(place.project), "--debug", text=SCRIPT, status=1)
    assert f"the key is {MASK}" in shown
    assert f"RuntimeError: {MASK}" in shown
    assert place.endpoint.calls[0].headers["authorization"] == f"Bearer {place.key}"
    (experience,) = (place.project / "experience").glob("raw_exp_*.yaml")
    assert f"the key is {place.key}" in experience.read_text()
    place.check_files()


def test_the_memory_of_a_chat_is_shown_without_the_key(place: Place) -> None:
    said = place.run_here("--json", text="find out")
    assert f'"answer": "the key is {MASK}' in said.stdout
    assert place.run_here("sessions", "--json").exit_code == 0
    (file,) = place.project.rglob("memory.sqlite")
    exported, page = place.project / "memory.jsonl", place.project / "memory.html"
    for command in (
        ["show", str(file)],
        ["show", str(file), "--prompt"],
        ["search", str(file), "key"],
        ["history", str(file)],
        ["export", str(file), str(exported)],
        ["page", str(file), "-o", str(page)],
    ):
        place.run("memory", *command)
    assert page.exists()
    place.check_files()
    other = place.project / "other.sqlite"
    shown = place.run("memory", "import", str(other), str(exported), status=None)
    assert f"cell 1 holds {MASK}" in shown


def test_a_configuration_with_a_mistake_does_not_tell_the_key(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment does not have the key: it is known by the configuration alone."""
    file = place.project / "taskweaver_config.json"
    keys = json.loads(file.read_text())
    mistakes = [
        ("llm.api_key", [place.key, {"a": place.key}]),
        ("llm.api_base", f"http://user:{place.key}@127.0.0.1:99999999/v1"),
        ("llm.max_retries", place.key),
        ("ext_llms.llm_configs", place.key),
    ]
    for name, value in mistakes:
        file.write_text(json.dumps(keys | {name: value}))
        for arguments in (["--debug", "-m", "refuse me"], ["doctor", "--json"]):
            monkeypatch.setattr(redact, "_shared", redact.Redactor())
            assert place.run_here(*arguments).exit_code != 0 or name == "llm.api_base"
    file.write_text(json.dumps(keys)[:-1] + f', "x" {place.key}}}')
    assert "error" in place.run("-p", str(place.project), "--debug", "-m", "hi", status=2)


def test_the_library_leaves_the_key_nowhere(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    listener = Listener()
    with TaskWeaverApp(place.project) as app, app.get_session() as session:
        assert session.send_message("refuse me", listener).state == "failed"
        assert session.send_message("find out").state == "finished"
        saved = session.memory.save_experience(place.project / "experience", thin_mode=False)
        place.check("\n".join([app.announcement, *app.warnings, repr(app.config)]))
        place.check("\n".join(listener.messages(RoundEventType.round_error)))
        place.check_files()  # the database is still open, and has its log beside it
    place.check_files()
    replayed = place.run_here("replay", str(saved), "--json")
    assert MASK in replayed.stdout
    out, err = capfd.readouterr()
    place.check(out + err)


def test_a_recording_plays_back_exactly_and_its_requests_hold_no_key(place: Place) -> None:
    config = {"llm.api_type": "recorded", "llm.recorded.api_type": "openai"}
    with TaskWeaverApp(place.project, config=config) as app, app.get_session() as session:
        assert session.send_message(f"find out about {place.key}").state == "finished"
    file = place.project / "cache" / "recorded.yaml"
    entries = yaml.safe_load(file.read_text())
    assert MASK in str([entry["request"] for entry in entries])
    assert place.key not in str([entry["request"] for entry in entries])
    assert f"the key is {place.key}" in str([entry["reply"] for entry in entries])
    assert MASK not in str([entry["reply"] for entry in entries])
    place.check_files()


@pytest.fixture
def elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, FakeEndpoint]]:
    """A project whose endpoint has an address that does not say it is on this machine."""
    monkeypatch.setenv("SOME_SERVICE_TOKEN", OTHER)
    replies = iter(ELSEWHERE)
    with serving(lambda call: call.stream(good(next(replies)))) as endpoint:
        keys = {"llm.api_type": "openai", "llm.api_key": HEXADECIMAL, "llm.model": "m"}
        keys["llm.api_base"] = endpoint.url.replace("127.0.0.1", "127.1")
        config = keys | ALONE | NO_STATES
        yield make_project(tmp_path / "project", config, has_table=False), endpoint


def sent_to(endpoint: FakeEndpoint) -> str:
    return "\n".join(str(call.body["messages"]) for call in endpoint.calls)


def test_a_prompt_that_leaves_the_machine_holds_no_key_and_all_code(
    elsewhere: tuple[Path, FakeEndpoint],
) -> None:
    project, endpoint = elsewhere
    with TaskWeaverApp(project) as app, app.get_session() as session:
        for text in ("a token", f"use {HEXADECIMAL} and {PREFIXED}", f"and {OTHER}"):
            session.send_message(text)
        cells = successful_cells(session.memory.conversation.rounds)
    assert [cell.code for cell in cells] == [EVERYDAY, ALL_SECRETS]
    sent = sent_to(endpoint)
    assert all(secret not in sent for secret in (HEXADECIMAL, PREFIXED, OTHER))
    assert "abcdefghijklmnop1234" in sent
    assert f"use {MASK} and {MASK}" in sent


def test_a_prompt_to_this_machine_is_not_masked(elsewhere: tuple[Path, FakeEndpoint]) -> None:
    project, endpoint = elsewhere
    config = {"llm.api_base": endpoint.url}
    with TaskWeaverApp(project, config=config) as app, app.get_session() as session:
        session.send_message(f"use {PREFIXED} and {OTHER}")
    assert f"use {PREFIXED} and {OTHER}" in sent_to(endpoint)
