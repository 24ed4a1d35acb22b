"""Attacks on the system's kernel and its settings."""

from __future__ import annotations

from attacks.attack import Attack

GROUP = "system"


def _tries(name: str, code: str, *, is_by_machine: bool = False) -> Attack:
    return Attack(name, code, group=GROUP, is_by_machine=is_by_machine)


def _calls(name: str, call: str, *, is_by_machine: bool = False) -> Attack:
    """Return an attack by a call that the filter refuses, whatever its arguments."""
    return _tries(name, f"done = not refused({call})", is_by_machine=is_by_machine)


ATTACKS = (
    _tries("make a namespace of users", "done = subprocess.call(['unshare', '-U', 'true']) == 0"),
    # In a process with one thread: the interpreter's lock is held in the child, as it needs it.
    _tries(
        "make one by clone",
        "code = '''import ctypes, os, platform, signal\n"
        "clone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\n"
        "pid = ctypes.PyDLL(None).syscall(clone, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)\n"
        "if pid == 0: os._exit(0)\n"
        "os._exit(0 if pid > 0 and os.waitpid(pid, 0) else 1)'''\n"
        "done = subprocess.call([sys.executable, '-c', code]) == 0",
    ),
    _calls("make one by clone3", "435, None, 0"),
    _tries(
        "enter another's namespace", "done = libc.setns(os.pidfd_open(VICTIM), 0x04000000) == 0"
    ),
    *(
        _tries(
            f"share the machine's {kind} namespace",
            f"done = os.readlink('/proc/self/ns/{kind}') == NAMESPACES['{kind}']",
        )
        for kind in ("user", "pid", "net", "ipc", "uts", "mnt")
    ),
    _tries(
        "mount a file system",
        "os.makedirs('m', exist_ok=True)\n"
        "done = libc.mount(b'none', b'm', b'tmpfs', 0, None) == 0\n"
        "libc.umount(b'm')",
    ),
    _calls("mount by the new calls", "NUMBERS['fsopen'], b'tmpfs', 0"),
    _tries(
        "change the root", "done = subprocess.call(['/usr/sbin/chroot', '/', '/bin/true']) == 0"
    ),
    _tries(
        "write to the system",
        "open('/usr/tw-probe', 'w').close(); os.remove('/usr/tw-probe'); done = True",
    ),
    _tries("make a folder at the top", "os.mkdir('/tw-probe'); os.rmdir('/tw-probe'); done = True"),
    _tries(
        "make a control group",
        "import glob\n"
        "for path in glob.glob('/sys/fs/cgroup/*/') + ['/sys/fs/cgroup/']:\n"
        "    try: os.mkdir(path + 'tw-probe'); os.rmdir(path + 'tw-probe'); done = True\n"
        "    except OSError: pass",
    ),
    _tries(
        "leave its control group",
        "import glob\n"
        "for path in glob.glob('/sys/fs/cgroup/*/cgroup.procs'):\n"
        "    try: open(path, 'a').close(); done = True\n"
        "    except OSError: pass",
    ),
    _tries("set the clock", "time.clock_settime(0, time.clock_gettime(0)); done = True"),
    _tries("name the machine", "socket.sethostname(socket.gethostname()); done = True"),
    _tries("learn the machine's name", "done = socket.gethostname() == MACHINE"),
    _tries(
        "change a setting",
        "path = '/proc/sys/vm/swappiness'; value = open(path).read()\n"
        "open(path, 'w').write(value); done = True",
    ),
    _tries(
        "choose who handles crashes", "open('/proc/sys/kernel/core_pattern', 'r+'); done = True"
    ),
    _tries(
        "press the system's keys",
        "open('/proc/sysrq-trigger', 'w'); done = True",
        is_by_machine=True,
    ),
    _tries(
        "change a setting of memory",
        "import glob; open(glob.glob('/sys/kernel/mm/*/enabled')[0], 'r+'); done = True",
        is_by_machine=True,
    ),
    _tries("see the machine's devices", "done = os.path.exists('/sys/block')"),
    _tries(
        "read the kernel's memory map",
        "done = any(int(line.split()[0], 16) for line in open('/proc/kallsyms'))",
        is_by_machine=True,
    ),
    _tries(
        "read the kernel's log",
        "done = libc.klogctl(3, ctypes.create_string_buffer(64), 64) >= 0",
        is_by_machine=True,
    ),
    _calls("reach kernel programs", "NUMBERS['bpf'], 99, None, 0", is_by_machine=True),
    _calls("reach counters", "NUMBERS['perf_event_open'], None, 0, -1, -1, 0", is_by_machine=True),
    _calls("reach io_uring", "NUMBERS['io_uring_setup'], 0, None", is_by_machine=True),
    _calls("reach page faults", "NUMBERS['userfaultfd'], 0x7fffffff", is_by_machine=True),
    _calls("reach the key ring", "NUMBERS['keyctl'], 0, -3, 0", is_by_machine=True),
    _calls("request a key", "NUMBERS['request_key'], None, None, None, 0", is_by_machine=True),
    _calls("reach files by handle", "NUMBERS['open_by_handle_at'], -1, None, 0"),
    _calls("load a module", "NUMBERS['finit_module'], -1, b'', 0", is_by_machine=True),
    _calls("load another kernel", "NUMBERS['kexec_load'], 0, 999, None, 0", is_by_machine=True),
    _tries("watch all files", "done = libc.fanotify_init(0, 0) >= 0"),
)
