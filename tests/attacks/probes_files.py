"""Attacks on files outside of the sandbox."""

from __future__ import annotations

import os
from pathlib import Path

from attacks.attack import Attack, Effect, Outcome, found_the_secret, left_a_file
from attacks.world import World

GROUP = "files"


def _writes(name: str, code: str) -> Attack:
    return Attack(name, code, left_a_file, GROUP)


def _reads(name: str, code: str, **more: str) -> Attack:
    return Attack(name, code, found_the_secret, GROUP, **more)  # type: ignore[arg-type]


def _tries(name: str, code: str, *, is_by_machine: bool = False) -> Attack:
    return Attack(name, code, group=GROUP, is_by_machine=is_by_machine)


def _left_in(folder: str) -> Effect:
    """Return the check for a file of the attack's name in a folder of the machine's."""

    def was_left(_: World, outcome: Outcome) -> bool:
        path = Path(folder) / f"{outcome.slug}-{os.getpid()}"
        is_there = path.exists()
        path.unlink(missing_ok=True)
        return is_there

    return was_left


ATTACKS = (
    _writes("write a file", "open('@MARK@', 'w').close()"),
    _writes("write through a shell", "os.system('touch @MARK@')"),
    _writes("write through a child", "subprocess.call(['touch', '@MARK@'])"),
    _writes("copy a file out", "shutil.copy('/etc/passwd', '@MARK@')"),
    _writes("write a table", "pd.DataFrame({'a': [1]}).to_csv('@MARK@')"),
    _writes("write an array", "np.save(open('@MARK@', 'wb'), np.ones(2))"),
    _writes("make a folder", "os.mkdir('@MARK@')"),
    _writes("write with the C library", "libc.open(b'@MARK@', 0o101, 0o600)"),
    _writes("rename a file", "os.rename(DELETABLE, '@MARK@')"),
    _writes(
        "write through a link", "os.symlink(OUT, 'out-link'); open('out-link/@SLUG@', 'w').close()"
    ),
    _writes("make a link outside", "os.symlink('/etc', '@MARK@')"),
    _writes("write through the root of a process", "open('/proc/self/root@MARK@', 'w').close()"),
    _writes(
        "write through the root of another process",
        "open(f'/proc/{VICTIM}/root@MARK@', 'w').close()",
    ),
    _writes("write through the folder of another", "open(f'/proc/{VICTIM}/cwd/../@SLUG@', 'w')"),
    _writes("leave a hook for git", "os.mkdir('@MARK@'); open('@MARK@/pre-commit', 'w').close()"),
    _reads("read a file", "found = open(CANARY).read()"),
    _reads("read it as a table", "found = str(list(pd.read_csv(CANARY).columns))"),
    _reads("read it through a shell", "found = subprocess.getoutput(f'cat {CANARY}')"),
    _reads("read it through a link", "os.symlink(CANARY, 'l'); found = open('l').read()"),
    _reads("link it in", "os.link(CANARY, 'hard'); found = open('hard').read()"),
    _reads("map it", "found = bytes(np.memmap(CANARY, mode='r')).decode()"),
    _reads("list a folder", "found = str(os.listdir(OUT))"),
    _reads("list the home folder", "found = str(os.listdir(HOME))"),
    _reads(
        "read the owner's files by its descriptors",
        "found = ''\n"
        "for fd in os.listdir(f'/proc/{OWNER}/fd'):\n"
        "    path = f'/proc/{OWNER}/fd/{fd}'\n"
        "    try:\n"
        "        if stat.S_ISREG(os.stat(path).st_mode):\n"
        "            found += open(path, 'rb').read(999).decode('latin-1')\n"
        "    except OSError: pass",
    ),
    _reads(
        "read the project's configuration",
        "found = open(PROJECT + '/taskweaver_config.json').read()",
    ),
    _reads("read another session's files", "found = open(OTHER + '/cwd/notes.txt').read()"),
    _reads("read another session's log", "found = open(OTHER + '/kernel.log').read()"),
    _tries("read the conversation", "done = open('../memory.sqlite', 'rb').read(6) == b'SQLite'"),
    _tries("change the conversation", "open('../memory.sqlite', 'r+b').close(); done = True"),
    _tries("read the stored variables", "os.listdir('../state'); done = True"),
    _tries("plant stored variables", "os.mkdir('../state/planted'); done = True"),
    _tries("change an installed library", "open(np.__file__, 'r+').close(); done = True"),
    _tries("change this program", "import taskweaver as t; open(t.__file__, 'r+'); done = True"),
    _tries(
        "leave code for every Python",
        # A folder that looks changed would make other tests start their warm process anew.
        "import site; folder = site.getsitepackages()[0]; path = folder + '/tw_probe.txt'\n"
        "then = os.stat(folder); open(path, 'w').close(); os.remove(path)\n"
        "os.utime(folder, ns=(then.st_atime_ns, then.st_mtime_ns)); done = True",
    ),
    _tries("change a shell's startup", "open(HOME + '/.bashrc', 'a').close(); done = True"),
    _tries("plant a plugin", "open(PROJECT + '/plugins/x.py', 'w'); done = True"),
    _tries("change the users of the machine", "open('/etc/passwd', 'r+').close(); done = True"),
    _tries("read the passwords", "done = bool(open('/etc/shadow').read())"),
    _tries("read the logs", "done = bool(os.listdir('/var/log'))"),
    _tries("make a file outside run as its owner", "os.chmod(CANARY, 0o4755); done = True"),
    _tries(
        "give a file away", "open('mine', 'w').close(); os.chown('mine', 12345, 1); done = True"
    ),
    _tries(
        "make a device",
        "os.mknod('device', stat.S_IFCHR | 0o600, os.makedev(1, 3)); os.remove('device')\n"
        "done = True",
    ),
    _tries("see the kernel's log device", "done = os.path.exists('/dev/kmsg')"),
    _tries(
        "open a disk",
        "import glob\n"
        "disks = [path for kind in ('vd', 'sd', 'nvme') for path in glob.glob(f'/dev/{kind}*')]\n"
        "os.close(os.open(disks[0], os.O_RDONLY)); done = True",
        is_by_machine=True,
    ),
    Attack(
        "leave a file in shared memory",
        "open('/dev/shm/@SLUG@-@OWNER@', 'w').close()",
        _left_in("/dev/shm"),
        GROUP,
    ),
    Attack(
        "leave a file in /tmp", "open('/tmp/@SLUG@-@OWNER@', 'w').close()", _left_in("/tmp"), GROUP
    ),
)
