"""Attacks on processes: of the owner, of others on the machine, of sibling sessions."""

from __future__ import annotations

from attacks.attack import Attack, ended_the_victim, found_the_secret

GROUP = "processes"


def _tries(name: str, code: str) -> Attack:
    return Attack(name, code, group=GROUP)


def _kills(name: str, code: str) -> Attack:
    return Attack(name, code, ended_the_victim, GROUP)


def _reads(name: str, code: str, guard: str = "") -> Attack:
    return Attack(name, code, found_the_secret, GROUP, guard)


ATTACKS = (
    _kills("signal another process", "os.kill(VICTIM, signal.SIGTERM)"),
    _kills(
        "signal it by a handle", "signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGTERM)"
    ),
    _kills(
        "signal it through a file's owner",
        "import fcntl\n"
        "a, b = socket.socketpair(); fcntl.fcntl(a, fcntl.F_SETSIG, signal.SIGTERM)\n"
        "fcntl.fcntl(a, fcntl.F_SETOWN, VICTIM)\n"
        "fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC); b.send(b'x')",
    ),
    _kills(
        "limit another's time",
        "resource.prlimit(VICTIM, resource.RLIMIT_CPU, (0, 0)); "
        "open(f'/proc/{VICTIM}/stat').read(); os.kill(VICTIM, signal.SIGXCPU)",
    ),
    _tries("signal the owner", "os.kill(OWNER, 0); done = True"),
    _tries("signal a sibling session's kernel", "os.kill(SIBLING, 0); done = True"),
    _tries("signal the process group of the owner", "os.killpg(os.getpgid(OWNER), 0); done = True"),
    _tries(
        "trace another process",
        "done = libc.ptrace(0x4206, VICTIM, 0, 0) == 0\nlibc.ptrace(17, VICTIM, 0, 0)",
    ),
    _tries(
        "trace a sibling session's kernel",
        "done = libc.ptrace(0x4206, SIBLING, 0, 0) == 0\n"
        "os.waitpid(SIBLING, os.WNOHANG) if done else None\nlibc.ptrace(17, SIBLING, 0, 0)",
    ),
    _tries(
        "take an open file of another process",
        "def take(pid):\n"
        "    try: handle = os.pidfd_open(pid)\n"
        "    except OSError: return False\n"
        "    got = [libc.syscall(438, handle, fd, 0) for fd in range(9)]\n"
        "    return any(fd >= 0 for fd in got)\n"
        "pids = [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()]\n"
        "done = any(map(take, [VICTIM, *pids[:9], *pids[-9:]]))",
    ),
    _tries("read another's memory", "open(f'/proc/{VICTIM}/mem', 'rb').close(); done = True"),
    _tries(
        "write the memory of any process that it sees",
        "others = {int(p) for p in os.listdir('/proc') if p.isdigit()} - {os.getpid()}\n"
        "for pid in [*sorted(others)[:9], *sorted(others)[-9:], VICTIM]:\n"
        "    try: os.close(os.open(f'/proc/{pid}/mem', os.O_RDWR)); done = True\n"
        "    except OSError: pass",
    ),
    _tries(
        "read another's memory by a call",
        "import ctypes as c\n"
        "class V(c.Structure): _fields_ = [('base', c.c_void_p), ('size', c.c_size_t)]\n"
        "where = int(next(line for line in open(f'/proc/{VICTIM}/maps')).split('-')[0], 16)\n"
        "buffer = c.create_string_buffer(8); here = V(c.addressof(buffer), 8)\n"
        "done = libc.process_vm_readv(VICTIM, c.byref(here), 1, c.byref(V(where, 8)), 1, 0) == 8",
    ),
    _reads("read another's environment", "found = open(f'/proc/{VICTIM}/environ').read()"),
    _reads("read the owner's environment", "found = open(f'/proc/{OWNER}/environ').read()"),
    _reads(
        "read a sibling session's memory",
        (
            "maps = [l.split()[0] for l in open(f'/proc/{SIBLING}/maps') if '[heap]' in l]\n"
            "start, end = (int(n, 16) for n in maps[0].split('-'))\n"
            "with open(f'/proc/{SIBLING}/mem', 'rb') as f:\n"
            "    f.seek(start); data = f.read(min(end - start, 64 << 20))\n"
            "place = data.find(b'sibling-' + b'secret-'); done = place >= 0\n"
            "found = data[place:place + 80].decode('latin-1')"
        ),
    ),
    _reads(
        "find a key in its environment",
        "found = str(dict(os.environ))",
        guard="the environment of kernels is built, not copied",
    ),
    _reads("read the folder of another", "found = str(os.listdir(f'/proc/{VICTIM}/cwd/..'))"),
    _tries("open another's files", "done = bool(os.readlink(f'/proc/{VICTIM}/fd/0'))"),
    _tries(
        "see other processes",
        "for p in os.listdir('/proc'):\n"
        "    try: done |= 'sleep' in open(f'/proc/{int(p)}/cmdline').read().split(chr(0))\n"
        "    except (OSError, ValueError): pass",
    ),
    _tries(
        "change another's limits",
        "resource.prlimit(VICTIM, resource.RLIMIT_CORE, (0, 0)); done = True",
    ),
    _tries(
        "lower another's priority",
        "nice = os.getpriority(os.PRIO_PROCESS, VICTIM)\n"
        "os.setpriority(os.PRIO_PROCESS, VICTIM, min(nice + 1, 19)); done = True",
    ),
    Attack(
        "share the owner's session of a terminal",
        "done = os.getsid(0) == os.getsid(OWNER)",
        group=GROUP,
        guard="kernels have a session of their own",
    ),
    _tries(
        "become another user", "done = subprocess.call(['setpriv', '--reuid=12345', 'true']) == 0"
    ),
    _tries(
        "hold capabilities",
        "done = any(int(l.split()[1], 16) for l in open('/proc/self/status')"
        " if l.startswith(('CapEff', 'CapPrm')))",
    ),
    _tries(
        "gain rights by a program of root's",
        "done = any(l.split()[1] == '0' for l in open('/proc/self/status') if 'NoNewPrivs' in l)",
    ),
)
