"""Code of several users of one server, in sandboxes of bubblewrap: none reaches another's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from agents import ask, new_session
from live_folders import paths_below
from served import Served
from support import has_bwrap

pytestmark = pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not run here")

MARK = "plans-of-ann-4711"
CONFIG = {"execution.sandbox": "bwrap"}


@dataclass(frozen=True)
class Place:
    """The session of a user, and its client."""

    client: httpx2.Client
    session: str

    def run(self, code: str) -> str:
        return str(ask(self.client, self.session, code, kind="code")["answer"])


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


def test_nothing_of_another_user_is_there(server: Served, ann: Place, bob: Place) -> None:
    folder, session = server.log.parent, ann.session.rpartition("/")[2]
    (file,) = paths_below(folder, "plans.txt")
    assert file.read_text() == MARK
    (connection,) = paths_below(folder, f"kernels/{session}-main.json")
    homes = str(Path(json.loads(connection.read_text())["ip"]).parent)
    accounts = folder / "server" / "accounts.sqlite"
    wanted = [str(file), str(file.parent), str(connection), homes, str(accounts)]
    wanted += [str(folder / "agents" / "ann"), str(folder / "project")]
    port = int(ann.run("print('port', port.getsockname()[1])").split("port ")[1].split()[0])
    code = f"""
import os, socket, subprocess
def reached(path):
    try:
        return bool(os.listdir(path)) if os.path.isdir(path) else open(path, 'rb').read() != b''
    except OSError:
        return False
print([path for path in {wanted!r} if reached(path)], os.listdir({str(folder / "agents")!r}))
found = subprocess.run(['grep', '-rls', '{MARK[:6]}''{MARK[6:]}', '/home', '/tmp', '/var', '/root',
                        os.path.expanduser('~'), '.'], capture_output=True, text=True)
print('found', found.stdout.split())
pids = filter(str.isdigit, os.listdir('/proc'))
print('sleeps', sum('sleep' in open(f'/proc/{{pid}}/cmdline').read() for pid in pids))
print('names', sum({MARK!r} in line for line in open('/proc/net/unix')))
for family, address in ((socket.AF_UNIX, '\\0{MARK}'), (socket.AF_INET, ('127.0.0.1', {port}))):
    try:
        socket.socket(family).connect(address)
        print('joined')
    except OSError:
        print('apart')
"""
    answer = bob.run(code)
    for part in ("[] ['bob']", "found []", "sleeps 0", "names 0", "apart\napart"):
        assert part in answer, answer


def test_all_signals_of_a_user_end_nothing_of_another(ann: Place, bob: Place) -> None:
    bob.run("import os, signal\nos.kill(-1, signal.SIGKILL)")
    assert "None" in ann.run("print(program.poll())")
    assert MARK in ann.run("secret")
    assert "2" in bob.run("1 + 1")
