"""The way out of a sandbox: a proxy, and a bridge to it. The servers are real and local."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kernels import Managers, answers, needs_bwrap, run
from patience import PATIENCE_S

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.egress import EgressProxy
from taskweaver.ces.sandbox.hosts import AllowedHosts
from taskweaver.config.errors import ConfigError
from taskweaver.utils.system.network import is_public

TABLE = b"a,b\n1,2\n3,4\n"
Names = dict[str, list[str]]
Open = Callable[..., EgressProxy]


class Files(BaseHTTPRequestHandler):
    """A server that repeats the request, and has a table."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        told = TABLE if self.path == "/t.csv" else f"{self.requestline}\n{self.headers}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.send_header("Connection", "keep-alive, X-Hop")
        self.send_header("X-Hop", "1")
        self.end_headers()
        self.wfile.write(told)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def files() -> Iterator[int]:
    """Give the port of a server of files."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@contextmanager
def answering(reply: Callable[[socket.socket], object]) -> Iterator[int]:
    """Give the port of a server that deals with one connection."""

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                reply(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def saying(reply: bytes) -> Callable[[socket.socket], None]:
    """Return a server that hears a request and sends these bytes."""

    def serve(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(reply)

    return serve


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """A resolver to which names below ``test`` are this machine, but for those that are listed."""
    known: Names = {}
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *rest: Any, **more: Any) -> Any:
        if not host.endswith(".test"):
            return real(host, port, *rest, **(more | {"flags": socket.AI_NUMERICHOST}))
        places = known.get(host, ["127.0.0.1"])
        return [entry for place in places for entry in real(place, port, *rest, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


@pytest.fixture
def opened() -> Iterator[Callable[..., EgressProxy]]:
    """Give a maker of proxies for which this machine is public."""
    with ExitStack() as stack:

        def open_one(*hosts: str, **more: Any) -> EgressProxy:
            more = {"is_permitted": lambda address: address == "127.0.0.1"} | more
            return stack.enter_context(closing(EgressProxy(hosts, **more)))

        yield open_one


def connected(proxy: EgressProxy) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(30)
    client.connect(str(proxy.path))
    return client


def rest_of(client: socket.socket) -> bytes:
    data = b""
    while more := client.recv(1 << 16):
        data += more
    return data


def ask(proxy: EgressProxy, request: str | bytes) -> str:
    """Return all that comes back."""
    with connected(proxy) as client:
        client.sendall(request.encode() if isinstance(request, str) else request)
        return rest_of(client).decode()


def get(proxy: EgressProxy, place: str, path: str = "/x?y=1", more: str = "") -> str:
    return ask(proxy, f"GET http://{place}{path} HTTP/1.1\r\nHost: elsewhere.test\r\n{more}\r\n")


def status_of(reply: str) -> int:
    return int(reply.split(" ", 2)[1])


def test_an_allowed_host_answers(files: int, opened: Open) -> None:
    proxy = opened(f"files.test:{files}")
    hop = "Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nX-Other: 2\r\nProxy-Authorization: n\r\n"
    reply = get(proxy, f"FILES.test.:{files}", more=hop)
    head, _, body = reply.partition("\r\n\r\n")
    assert status_of(reply) == 200
    assert "Connection: close" in head
    assert "keep-alive" not in head
    assert "X-Hop" not in head
    assert body.startswith("GET /x?y=1 HTTP/1.1\n")
    assert "X-Other: 2" in body
    assert "elsewhere" not in body
    assert [name for name in ("X-Mine", "keep-alive", "Proxy-") if name in body] == []
    assert status_of(get(proxy, f"files.test:{files}", "")) == 200
    post = f"POST http://files.test:{files}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    assert ask(proxy, post).endswith("\r\n\r\ncba")


def test_a_tunnel_carries_bytes_both_ways(opened: Open) -> None:
    sent = os.urandom(1 << 20)
    with (
        answering(lambda connection: connection.sendall(rest_of(connection)[::-1])) as port,
        connected(opened(f"*.echo.test:{port}")) as client,
    ):
        client.sendall(f"CONNECT deep.echo.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert client.recv(1 << 10) == b"HTTP/1.1 200 Connection established\r\n\r\n"
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert rest_of(client) == sent[::-1]


@pytest.mark.parametrize(
    ("entry", "allowed", "refused"),
    [
        ("a.test", [("a.test", 80), ("a.test", 443)], [("a.test", 8080), ("b.a.test", 80)]),
        ("a.test:81", [("a.test", 81)], [("a.test", 80), ("a.test", 443)]),
        ("*.a.test", [("b.a.test", 80), ("c.b.a.test", 443)], [("a.test", 80), ("ba.test", 80)]),
        ("*.a.test:81", [("b.a.test", 81)], [("b.a.test", 80), ("a.test", 81)]),
        ("A.Test.", [("a.test", 80)], [("a.test.evil", 80), ("xa.test", 80)]),
    ],
)
def test_the_list(entry: str, allowed: list[Any], refused: list[Any]) -> None:
    hosts = AllowedHosts(["other.test", entry])
    assert [place for place in allowed if place not in hosts] == []
    assert [place for place in refused if place in hosts] == []


@pytest.mark.parametrize(
    "entry",
    ["", "*", "*.", "a.*", "https://a.test", "a.test/x", "a b", "a:0", "a:65536", "a:x", "ä.test"],
)
def test_an_entry_that_is_no_host_is_told_at_once(entry: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"execution\.allowed_hosts: .*is not the name of a host"):
        AllowedHosts([entry])
    if entry == "https://a.test":
        config = {"execution.allowed_hosts": [entry], "execution.sandbox": "none"}
        with pytest.raises(ConfigError, match=r"https://a\.test"):
            TaskWeaverApp(tmp_path, config=config).get_session()


@pytest.mark.parametrize(
    "request_line", ["GET http://{} HTTP/1.1", "GET http://{}/ HTTP/1.0", "CONNECT {} HTTP/1.1"]
)
def test_what_is_not_on_the_list_is_refused(request_line: str, files: int, opened: Open) -> None:
    proxy = opened(f"files.test:{files}")
    for place in (f"other.test:{files}", f"sub.files.test:{files}", "files.test:80", "[::1]:80"):
        reply = ask(proxy, request_line.format(place) + "\r\nHost: x\r\n\r\n")
        assert reply.startswith("HTTP/1.1 403 Not in execution.allowed_hosts\r\n")
        assert "add it to execution.allowed_hosts" in reply


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_an_address_that_is_not_public_is_refused_though_it_is_listed(
    host: str, files: int, opened: Open
) -> None:
    proxy = opened(f"{host}:{files}", is_permitted=is_public)
    reply = get(proxy, f"{host}:{files}")
    assert status_of(reply) == 403
    assert "not a public address: only execution.network" in reply
    assert status_of(ask(proxy, f"CONNECT {host}:{files} HTTP/1.1\r\nHost: x\r\n\r\n")) == 403


def test_all_addresses_are_judged_and_the_judged_one_is_used(
    files: int, names: Names, opened: Open
) -> None:
    names["mixed.test"] = ["127.0.0.1", "127.0.0.2"]
    assert status_of(get(opened(f"mixed.test:{files}"), f"mixed.test:{files}")) == 403

    def judge(address: str) -> bool:
        names["turning.test"] = ["10.0.0.1"]  # which no test may reach
        return address == "127.0.0.1"

    proxy = opened(f"turning.test:{files}", is_permitted=judge)
    assert status_of(get(proxy, f"turning.test:{files}")) == 200


def test_public_addresses() -> None:
    others = (
        "127.0.0.1 10.1.2.3 100.64.0.1 169.254.169.254 224.0.0.1 ::1 fe80::1%lo fec0::1 ff02::1"
        " ::ffff:8.8.8.8 2002:7f00:1:: 64:ff9b::7f00:1"
    )
    assert is_public("8.8.8.8")
    assert is_public("2606:4700::1111")
    assert is_public("64:ff9b::808:808")
    assert [address for address in others.split() if is_public(address)] == []


@pytest.mark.parametrize(
    "head",
    [
        b"garbage", b"GET / HTTP/1.1", b"", b"GET https://a.test/ HTTP/1.1",
        b"GET http://u:p@a.test/ HTTP/1.1", b"CONNECT a HTTP/1.1", b"CONNECT a.test:0 HTTP/1.1",
        b"GET http://a.test/ HTTP/1.1\r\nno header", b"GET http://a.test/ HTTP/1.1\r\n folded: 1",
        b"GET http://a.test/ HTTP/1.1\r\nX: 1\nY: 2", b"GET http://a.test/ x HTTP/1.1",
        b"GET http://[::/ HTTP/1.1", b"\xff" * 99,
    ],
)  # fmt: skip
def test_garbage_is_refused(head: bytes, opened: Open) -> None:
    for host in (b"", b"\r\nHost: x"):  # HTTP/1.1 demands one
        assert status_of(ask(opened("a.test", "a"), head + host + b"\r\n\r\n")) == 400


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        ("Content-Length: 3\r\nContent-Length: 30", "abc"),
        ("Content-Length: 3, 30", "abc"), ("Content-Length : 3", "abc"),
        ("Content-Length: +3", "abc"), ("Transfer-Encoding: gzip, chunked", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "-1\r\n\r\n"),
        ("Transfer-Encoding: chunked", "3\r\nabcd\r\n"),
        ("Host: other.test", ""), ("Content-Length: 30", "abc"),
    ],
)  # fmt: skip
def test_a_body_of_uncertain_length_is_refused(fields: str, body: str, opened: Open) -> None:
    with answering(rest_of) as port:
        proxy = opened(f"a.test:{port}")
        head = f"POST http://a.test:{port}/ HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n"
        with connected(proxy) as client:
            client.sendall((head + body).encode())
            client.shutdown(socket.SHUT_WR)
            assert b" 400 " in rest_of(client).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ("Content-Length: 3", b"abc"), ("Content-Length: 3, 3", b"abc"), ("X: 1", b""),
        ("Transfer-Encoding: Chunked", b"3;x=y\r\nabc\r\n0\r\nX-Late: 1\r\n\r\n"),
        ("Connection: Content-Length, Host\r\nContent-Length: 3", b"abc"),
    ],
)  # fmt: skip
def test_a_second_request_and_a_second_reply_are_not_passed_on(
    fields: str, body: bytes, opened: Open
) -> None:
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        data = b""
        while not data.endswith((b"abc", b"0\r\n\r\n") if body else b"\r\n\r\n"):
            data += connection.recv(1 << 16)
        second = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + second)
        received.append(data + rest_of(connection))

    hidden = b"GET /hidden HTTP/1.1\r\nHost: other.test\r\n\r\n"
    with answering(serve) as port:
        head = f"POST http://a.test:{port}/ HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n"
        reply = ask(opened(f"a.test:{port}"), head.encode() + body + hidden)
    assert reply.endswith("\r\n\r\nok")
    assert [word for word in (b"hidden", b"X-Late", b"other.test") if word in received[0]] == []
    assert received[0].count(b"Host:") == received[0].count(f"Host: a.test:{port}".encode()) == 1


def test_a_reply_without_a_length_and_one_that_breaks_off(opened: Open) -> None:
    for sent, is_whole in (
        (b"HTTP/1.1 200 OK\r\n\r\nall of it", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nall\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nall", False),
    ):
        with answering(saying(sent)) as port:
            reply = get(opened(f"a.test:{port}"), f"a.test:{port}")
        assert "\r\nConnection: close\r\n" in reply
        assert "all" in reply.partition("\r\n\r\n")[2]
        assert reply.endswith("\r\n0\r\n\r\n") == is_whole


def test_a_head_that_is_too_long_or_broken_off_is_refused(opened: Open) -> None:
    proxy = opened("a.test")
    assert status_of(get(proxy, "a.test", more=f"X: {'x' * (16 << 10)}\r\n")) == 431
    assert status_of(ask(proxy, b"x" * (1 << 20))) == 431
    with connected(proxy) as client:
        client.sendall(b"GET http://a.test/ HTTP/1.1\r\n")
        client.shutdown(socket.SHUT_WR)
        assert b" 400 " in rest_of(client)


def test_a_host_that_cannot_be_reached_is_an_error_of_the_gateway(
    names: Names, opened: Open
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    names["nowhere.test"] = []
    long = "x" * 80 + ".invalid"
    proxy = opened(f"down.test:{port}", "unknown.invalid", "nowhere.test", long)
    for place in (f"down.test:{port}", "unknown.invalid", "nowhere.test", long):
        assert status_of(get(proxy, place)) == 502
    for reply in (b"", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200", b"x" * (1 << 17)):
        with answering(saying(reply)) as port:
            assert status_of(get(opened(f"odd.test:{port}"), f"odd.test:{port}")) == 502


def test_a_reply_may_have_heads_before_it(opened: Open) -> None:
    interim, last = b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"
    with answering(saying(interim + last)) as port:
        proxy = opened(f"slow.test:{port}")
        told = get(proxy, f"slow.test:{port}", more="Expect: 100-continue\r\n")
    assert told.startswith(interim.decode())
    assert told.endswith("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")


def test_whoever_says_nothing_is_hung_up_on(opened: Open) -> None:
    with answering(rest_of) as port:
        proxy = opened(f"silent.test:{port}", idle_s=0.3)
        assert ask(proxy, b"") == ""
        assert ask(proxy, b"GET http") == ""
        tunnel = ask(proxy, f"CONNECT silent.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n")
    assert tunnel == "HTTP/1.1 200 Connection established\r\n\r\n"
    with answering(rest_of) as port:
        proxy = opened(f"silent.test:{port}", idle_s=0.3)
        assert "gave no reply: not in time" in get(proxy, f"silent.test:{port}")


def test_there_is_an_end_to_connections_at_once(opened: Open) -> None:
    proxy = opened("a.test")
    silent = [connected(proxy) for _ in range(64)]
    with connected(proxy) as late:
        assert b" 503 " in rest_of(late)
    for client in silent:
        client.sendall(b"x\r\n\r\n")
        assert b" 400 " in rest_of(client)
        client.close()


def test_closing_ends_everything(opened: Open) -> None:
    before = set(threading.enumerate())
    with answering(rest_of) as port:
        proxy = opened(f"silent.test:{port}")
        assert (proxy.path.parent.stat().st_mode & 0o777) == 0o700
        with connected(proxy) as quiet, connected(proxy) as tunnel, connected(proxy) as waiting:
            tunnel.sendall(f"CONNECT silent.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert b" 200 " in tunnel.recv(1 << 10)
            waiting.sendall(b"GET http://silent.test:")
            proxy.close()
            proxy.close()
            assert [rest_of(client) for client in (quiet, tunnel)] == [b"", b""]
    late = set(threading.enumerate()) - before
    for thread in late:
        thread.join(PATIENCE_S)
    assert [thread for thread in late if thread.is_alive()] == []
    assert not proxy.path.parent.exists()


@pytest.fixture
def boxed(files: int, monkeypatch: pytest.MonkeyPatch, managers: Managers) -> Kernel:
    """A kernel in a sandbox that may reach ``files.test``."""
    local = partial(EgressProxy, is_permitted=lambda address: address == "127.0.0.1")
    monkeypatch.setattr("taskweaver.ces.sandbox.session_sandbox.EgressProxy", local)
    policy = SandboxPolicy(allowed_hosts=(f"files.test:{files}",))
    client = managers(policy=policy).get_session_client("s")
    assert run(client, f"import socket, urllib.request as u; PORT = {files}").is_success
    return client


@needs_bwrap
def test_code_inside_reaches_what_is_allowed_and_nothing_else(boxed: Kernel) -> None:
    fetched = run(boxed, "u.urlopen(f'http://files.test:{PORT}/t.csv').read().decode()")
    assert fetched.output == TABLE.decode()
    read = run(boxed, "int(pd.read_csv(f'http://files.test:{PORT}/t.csv')['b'].sum())")
    assert read.output == 6
    tunnel = (
        "from http.client import HTTPConnection\n"
        "c = HTTPConnection(*os.environ['HTTPS_PROXY'].removeprefix('http://').split(':'))\n"
        "c.set_tunnel('files.test', PORT); c.request('GET', '/t.csv'); c.getresponse().status"
    )
    assert run(boxed, f"import os\n{tunnel}").output == 200
    shell = run(boxed, "r = !curl -s http://files.test:$PORT/t.csv || echo none\nr[0]")
    assert shell.output in {"a,b", "none"}
    for place in ("http://other.test:{PORT}", "https://other.test", "http://127.0.0.2.test"):
        refused = run(boxed, f"u.urlopen(f'{place}')")
        assert "403" in str(refused.error)
        assert "Not in execution.allowed_hosts" in str(refused.error)
    for address in ("('127.0.0.1', PORT)", "('8.8.8.8', 53)", "('files.test', PORT)"):
        assert not run(boxed, f"socket.create_connection({address}, 5)").is_success
    devices = run(boxed, "[line.split(':')[0].strip() for line in open('/proc/net/dev')][2:]")
    assert devices.output == ["lo"]
    assert not run(boxed, "import os; os.remove('/run/egress')").is_success
    assert not run(boxed, "open('/run/x', 'w')").is_success
    assert answers(boxed)
    run(boxed, "from concurrent.futures import ThreadPoolExecutor as Pool")
    code = (
        "fetch = lambda n: len(u.urlopen(f'http://files.test:{PORT}/t.csv').read())\n"
        "with Pool(16) as pool: r = set(pool.map(fetch, range(100)))\nsum(r)"
    )
    assert run(boxed, code).output == len(TABLE), "many connections at once"


@needs_bwrap
def test_the_application_says_what_is_allowed(tmp_path: Path) -> None:
    config = {"execution.allowed_hosts": ["a.test", "*.b.test"], "execution.sandbox": "bwrap"}
    with TaskWeaverApp(tmp_path, config=config) as app:
        assert app.sandbox == "bubblewrap, no network but a.test, *.b.test"
    with TaskWeaverApp(tmp_path, config=config | {"execution.network": True}) as app:
        assert app.sandbox == "bubblewrap, with the network"


@needs_bwrap
def test_a_forked_kernel_has_the_way_out_and_it_ends_with_the_session(boxed: Kernel) -> None:
    folder = boxed.place.folder
    snapshot = boxed.snapshot()
    child = snapshot.fork("b", session_dir=folder, cwd=folder / "branches" / "b" / "cwd")
    snapshot.close()
    assert run(child, "len(pd.read_csv(f'http://files.test:{PORT}/t.csv'))").output == 2
    proxies = [thread for thread in threading.enumerate() if thread.name == "egress-proxy"]
    assert len(proxies) == 1
    child.stop()
    boxed.stop()
    assert not proxies[0].is_alive()
