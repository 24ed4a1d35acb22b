"""Code of several users of one server, in sandboxes of bubblewrap: none reaches another's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from agents import SteeredModel, ask, new_session, serving_agents
from live_folders import paths_below
from served import Served
from support import has_bwrap

pytestmark = pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not run here")

MARK = "plans-of-ann-4711"


@dataclass(frozen=True)
class Place:
    """The session of a user, and its client."""

    client: httpx2.Client
    session: str

    def run(self, code: str) -> str:
        """Run code; return its answer."""
        return str(ask(self.client, self.session, code, kind="code")["answer"])

    @property
    def id(self) -> str:
        """Id of the session."""
        return self.session.rpartition("/")[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walls")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with serving_agents(folder, SteeredModel(), {"execution.sandbox": "bwrap"}) as running:
        yield running


@pytest.fixture(scope="module")
def ann(server: Served) -> Place:
    """Give a user with a file, a variable, a program and a listening socket."""
    client = server.client(server.accounts.add("ann").text)
    place = Place(client, new_session(client))
    code = f"""
import os, socket, subprocess
open('plans.txt', 'w').write({MARK!r})
secret = {MARK!r}
program = subprocess.Popen(['sleep', '600'])
listener = socket.socket(socket.AF_UNIX); listener.bind('\\0{MARK}'); listener.listen()
port = socket.create_server(('127.0.0.1', 0))
print('port', port.getsockname()[1], 'uid', os.getuid())
"""
    assert "port" in place.run(code)
    return place


@pytest.fixture(scope="module")
def bob(server: Served) -> Place:
    client = server.client(server.accounts.add("bob").text)
    return Place(client, new_session(client))


def test_files_of_another_user_are_not_there(folder: Path, ann: Place, bob: Place) -> None:
    (file,) = paths_below(folder, "plans.txt")
    assert file.read_text() == MARK
    (connection,) = paths_below(folder, f"kernels/{ann.id}-main.json")
    homes = str(Path(json.loads(connection.read_text())["ip"]).parent)
    accounts = folder / "server" / "accounts.sqlite"
    wanted = [str(file), str(file.parent), str(connection), homes, str(accounts)]
    wanted += [str(folder / "agents" / "ann"), str(folder / "project")]
    code = f"""
import os
def reached(path):
    try:
        return bool(os.listdir(path)) if os.path.isdir(path) else open(path, 'rb').read() != b''
    except OSError:
        return False
print([path for path in {wanted!r} if reached(path)], os.listdir({str(folder / "agents")!r}))
"""
    assert "[] ['bob']" in bob.run(code)
    search = f"""
import os, subprocess
found = subprocess.run(['grep', '-rls', '{MARK[:6]}''{MARK[6:]}', '/home', '/tmp', '/var', '/root',
                        os.path.expanduser('~'), '.'], capture_output=True, text=True)
print('found', found.stdout.split())
"""
    assert "found []" in bob.run(search)


def test_processes_and_sockets_of_another_user_are_not_there(ann: Place, bob: Place) -> None:
    code = f"""
import os, socket
seen = []
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        seen.append(open(f'/proc/{{pid}}/cmdline').read())
    except OSError:
        pass
print('sleeps', sum('sleep' in one for one in seen))
abstract = socket.socket(socket.AF_UNIX)
try:
    abstract.connect('\\0{MARK}')
    print('joined')
except OSError:
    print('apart')
print('names', sum({MARK!r} in line for line in open('/proc/net/unix')))
"""
    answer = bob.run(code)
    assert "sleeps 0" in answer
    assert "apart" in answer
    assert "names 0" in answer


def test_all_signals_of_a_user_end_nothing_of_another(ann: Place, bob: Place) -> None:
    bob.run("import os, signal\nos.kill(-1, signal.SIGKILL)")
    assert "None" in ann.run("print(program.poll())")
    assert MARK in ann.run("secret")
    assert "2" in bob.run("1 + 1")


def test_a_port_of_another_user_is_not_reached(ann: Place, bob: Place) -> None:
    number = int(ann.run("print('port', port.getsockname()[1])").split("port ")[1].split()[0])
    code = f"""
import socket
try:
    socket.create_connection(('127.0.0.1', {number}), 2).close()
    print('joined')
except OSError:
    print('apart')
"""
    assert "apart" in bob.run(code)
