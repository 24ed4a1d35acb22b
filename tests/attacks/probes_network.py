"""Attacks by the network and by local sockets."""

from __future__ import annotations

from attacks.attack import Attack, called_out, is_listening

GROUP = "network"


def _calls(name: str, code: str) -> Attack:
    return Attack(name, code, called_out, GROUP)


def _tries(name: str, code: str, *, is_by_machine: bool = False) -> Attack:
    return Attack(name, code, group=GROUP, is_by_machine=is_by_machine)


ATTACKS = (
    _calls(
        "connect to the machine",
        "s = socket.create_connection(('127.0.0.1', PORT), 2); s.send(SAY)",
    ),
    _calls(
        "connect to the machine by its own address",
        "s = socket.create_connection(('0.0.0.0', PORT), 2); s.send(SAY)",
    ),
    _calls("connect by IPv6", "s = socket.create_connection(('::1', PORT6), 2); s.send(SAY)"),
    _calls(
        "connect from a child",
        (
            "subprocess.run([sys.executable, '-c', 'import socket; "
            'socket.create_connection(("127.0.0.1", @PORT@), 2).send(b"@SLUG@;")\'], check=True)'
        ),
    ),
    _calls(
        "fetch from the machine",
        (
            "import urllib.request as u\n"
            "try: u.urlopen('http://127.0.0.1:@PORT@/@SLUG@;', timeout=0.3)\n"
            "except Exception: pass"
        ),
    ),
    _calls(
        "connect by MPTCP",
        "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n"
        "s.connect(('127.0.0.1', PORT)); s.send(SAY)",
    ),
    _calls(
        "connect by sending",
        "socket.socket().sendto(SAY, socket.MSG_FASTOPEN, ('127.0.0.1', PORT))",
    ),
    _calls(
        "send a datagram",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(SAY, ('127.0.0.1', UDP))",
    ),
    _calls(
        "connect to a local socket",
        "s = socket.socket(socket.AF_UNIX); s.connect(UNIX); s.send(SAY)",
    ),
    _calls(
        "connect to a local socket through a link",
        ("os.symlink(UNIX, 'u'); s = socket.socket(socket.AF_UNIX); s.connect('u'); s.send(SAY)"),
    ),
    _calls(
        "connect to an abstract socket",
        "s = socket.socket(socket.AF_UNIX); s.connect(ABSTRACT); s.send(SAY)",
    ),
    Attack(
        "listen on the machine",
        "os.server = socket.create_server(('0.0.0.0', 0)); found = str(os.server.getsockname()[1])",
        is_listening,
        GROUP,
    ),
    _tries("see the network's devices", "done = len(os.listdir('/sys/class/net')) > 0"),
    _tries(
        "see the machine's routes",
        "done = len(open('/proc/net/route').read().splitlines()) > 1",
        is_by_machine=True,
    ),
    _tries("see the machine's connections", "done = f'{PORT:04X}' in open('/proc/net/tcp').read()"),
    _tries(
        "use a vsock",
        "socket.socket(40, socket.SOCK_STREAM).close(); done = True",
        is_by_machine=True,
    ),
    _tries(
        "make a raw socket",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(); done = True",
    ),
    _tries(
        "make a packet socket",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(); done = True",
    ),
    _tries(
        "make a crypto socket",
        "socket.socket(38, socket.SOCK_SEQPACKET).close(); done = True",
        is_by_machine=True,
    ),
    _tries(
        "make a bluetooth socket",
        "socket.socket(31, socket.SOCK_RAW, 1).close(); done = True",
        is_by_machine=True,
    ),
)
