"""Run all attacks in a session of each tier, as a program: ``python -m attacks.run FOLDER NAMES``.

It runs as the user whose attacks they are, in a folder of that user's. NAMES is JSON: for each tier
the names of its attacks, none for all. It prints JSON: for each tier and attack whether it
succeeded.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import psutil
from attacks.attack import Attack, Outcome
from attacks.corpus import ATTACKS
from attacks.world import PRELUDE, World

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.common import Client, Manager
from taskweaver.session.session import Session

SECRET = "ATTACK_SECRET"
"""Variable of the environment with the secret of this run, as a key has it."""
_CELL_TIMEOUT_S = 30.0
_UNBOUNDED = dict.fromkeys(
    (
        "execution.process_limit", "execution.open_file_limit", "execution.file_limit_mb",
        "execution.folder_limit_mb", "execution.log_limit_mb", "execution.memory_limit_mb",
    ),
    0,
)  # fmt: skip
"""Without a sandbox the bounds are switched off, too: what holds then is no bound."""
_BEGIN = """
import json
def begin(say, victim):
    for name in {*globals()} - USUAL:
        del globals()[name]
    globals().update(done=False, found="", SAY=say, VICTIM=victim)
def report(_):
    global done, found
    print(REPORT + json.dumps([bool(done), str(found)[:20_000]]))
    done, found = False, ""
get_ipython().events.register("post_run_cell", report)
done, found, USUAL = False, "", {*globals(), "USUAL", "done", "found"}
"""
REPORT = "\nreport of the attack: "
_AFTER = 'if "swapper" in globals(): swapper.kill(); swapper.wait(60)'


class Range:
    """A session in which attacks are run, and a sibling session beside it."""

    def __init__(self, folder: Path, tier: str, more: Mapping[str, object]) -> None:
        """Open both.

        Args:
            folder: An empty folder of the user's.
            tier: A value of ``execution.sandbox``.
            more: Further keys of the configuration.
        """
        keys = {"execution.sandbox": tier, "execution.cell_timeout_s": _CELL_TIMEOUT_S, **more}
        self._project = folder / "project"
        (self._project / "plugins").mkdir(parents=True)
        secret = os.environ[SECRET]
        file = self._project / "taskweaver_config.json"
        file.write_text(json.dumps({**keys, "code_interpreter.code_prefix": f"# {secret}"}))
        self.app = TaskWeaverApp(self._project, model=lambda _: "none")
        self.session = self.app.get_session()
        self.world = World(folder / "world", secret, self.session.workspace / "kernel.log")
        self._prepare_sibling()
        self.session.run_code("kept = 1")
        self.session.wait_until_stored()
        self._name()

    @property
    def client(self) -> Client:
        """The kernel of the session's main branch."""
        return self._client(self.session)

    def _client(self, session: Session) -> Client:
        manager = self.app.app_injector.get(Manager)  # type: ignore[type-abstract]
        return manager.get_session_client(
            f"{session.session_id}-main", session_dir=session.workspace, cwd=session.execution_cwd
        )

    def _prepare_sibling(self) -> None:
        sibling = self.app.get_session()
        self._client(sibling).execute_code("x", f"import os; kept = {self.world.secret!r}")
        (sibling.execution_cwd / "notes.txt").write_text(self.world.secret)
        with (sibling.workspace / "kernel.log").open("a") as log:
            log.write(self.world.secret)
        self.world.names |= {
            "OTHER": str(sibling.workspace), "PROJECT": str(self._project),
            "SIBLING": _kernel_in(sibling.execution_cwd),
        }  # fmt: skip

    def _name(self) -> None:
        """Give the kernel the names that code uses."""
        names = {**self.world.names, "REPORT": REPORT}
        values = "; ".join(f"{name} = {value!r}" for name, value in names.items())
        self.client.execute_code("names", f"{PRELUDE}{values}{_BEGIN}")

    def attempt(self, attack: Attack) -> bool:
        """Run an attack; return whether it had its effect.

        Raises:
            RuntimeError: The kernel lives, and its cell has not reported: this proves nothing.
        """
        code = attack.code
        slug = attack.slug
        values = {
            **self.world.names, "SLUG": slug, "MARK": self.world.marker(slug),
            "DEPUTY": self.world.deputy(slug) if "@DEPUTY@" in code else "",
        }  # fmt: skip
        for name, value in values.items():
            code = code.replace(f"@{name}@", str(value))
        say = f"{slug};".encode()
        victim = self.world.names["VICTIM"]
        before = f"begin({say!r}, {victim})"
        # One cell is cheaper than two; a magic of cells stands at the beginning of its own.
        for cell in (before, code) if code.startswith("%") else (f"{before}\n{code}",):
            result = self.client.execute_code("attack", cell)
        if attack.act is not None:
            attack.act(self.session)
            self.client.execute_code("after", _AFTER)
        told = report_of(result.stdout)
        if result.is_state_lost:
            self._name()
        elif told is None:
            raise RuntimeError(f"no report came after the attack {attack.name!r}: {result.status}")
        cwd = self.session.execution_cwd
        has_succeeded = attack.effect(self.world, Outcome(slug, *(told or (False, "")), cwd))
        self._tidy()
        return has_succeeded

    def _tidy(self) -> None:
        """Remove what the attack left in the working folder."""
        for path in self.session.execution_cwd.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """End the sessions, and what stands outside."""
        self.app.stop()
        self.world.close()


def report_of(stdout: Sequence[str]) -> tuple[bool, str] | None:
    """Return what the kernel reported at the end of a cell; None without a whole report."""
    _, mark, text = "".join(stdout).rpartition(REPORT)
    report, end, _ = text.partition("\n")
    if not (mark and end):
        return None
    is_claimed, found = json.loads(report)
    return is_claimed, found


def _kernel_in(cwd: Path) -> int:
    """Return the process id of the kernel that works in a folder."""
    for process in psutil.Process().children(recursive=True):
        try:
            if Path(process.cwd()) == cwd.resolve() and not process.children():
                return process.pid
        except psutil.Error:
            continue
    raise RuntimeError("the sibling's kernel is not found")


@contextmanager
def opened(
    folder: Path, tier: str, keys: Mapping[str, object] = MappingProxyType({})
) -> Iterator[Range]:
    """Open a range for attacks for the time of the block."""
    (folder / "world").mkdir(parents=True)
    made = Range(folder, tier, keys)
    try:
        yield made
    finally:
        made.close()


def _run(folder: Path, tier: str, names: Sequence[str]) -> dict[str, bool]:
    """Run the attacks of some names, or all, in a tier; return for each whether it succeeded."""
    chosen = [attack for attack in ATTACKS if not names or attack.name in names]
    keys = dict(pair for attack in chosen for pair in attack.keys)
    with opened(folder / tier, tier, keys if tier != "none" else _UNBOUNDED) as made:
        return {attack.name: made.attempt(attack) for attack in chosen}


def main() -> None:
    """Run the attacks."""
    folder, wanted = sys.argv[1:]
    os.environ.setdefault(SECRET, f"sibling-secret-{secrets.token_hex(12)}")
    results = {}
    for tier, names in json.loads(wanted).items():
        results[tier] = _run(Path(folder), tier, names)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
