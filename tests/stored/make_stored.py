"""Make an archive of a project with sessions and searches, and of a memory, by this version.

    PYTHONPATH=tests:tests/treesearch python tests/stored/make_stored.py RELEASE

writes tests/fixtures/stored/RELEASE.tar.xz. An archive is made once, before a release, and never
again: later versions open what it holds (test_stored.py).
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from search_lab import FULL, Climber, remembering, search
from support import Script, code_reply, planner_reply

from taskweaver import TaskWeaver
from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.chat import Chat
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.memory.branched import BranchedMemory

ARCHIVES = Path(__file__).parents[1] / "fixtures" / "stored"
TABLE = "city,month,visits\nOslo,1,10\nOslo,2,20\nRome,1,30\nRome,2,45\n"
IDEA = "# Where is the top?\n\nThree numbers, from 0 to 3.\n\nMetric: height (maximize)\n"
PICTURE = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()"
VARIABLES = (
    "class Point:\n    def __init__(self, x): self.x = x\n"
    "names = {'a': [1, 2]}; same = names['a']; point = Point(7)\n"
    "def twice(number): return number * factor\n"
    "factor = 2; con = __import__('sqlite3').connect(':memory:')\n"
    "open('note.txt', 'w').write('kept')"
)
SCRIPT = "import json\nseen = {}\njson.dump({{'metric': {}}}, open('working/result.json', 'w'))\n"


def make(folder: Path) -> None:
    """Fill a folder with a project and a memory."""
    project = folder / "project"
    (project / "data").mkdir(parents=True)
    (project / "taskweaver_config.json").write_text("{}")
    (project / "data" / "visits.csv").write_text(TABLE)
    (project / "idea.md").write_text(IDEA)
    talk_to_the_analyst(project)
    talk_to_a_model(project)
    run_searches(project)
    fill_memory(folder / "memory.sqlite")


def talk_to_the_analyst(project: Path) -> None:
    """Hold a conversation with forks, variables, a fact, a receipt and an experience."""
    with TaskWeaverApp(project, config={"llm.api_type": "offline"}) as app:
        chat = Chat(app, PlainSurface())
        line = CommandLine(chat)
        chat.ask("sum of visits per city in visits.csv")
        line.handle("/export receipt sums")
        line.handle("/fork variables")
        chat.session.run_code(VARIABLES)
        chat.session.wait_until_stored()
        chat.session.run_code("factor = 3")
        chat.session.wait_until_stored()
        line.handle("/checkout main")
        chat.ask("and the mean")
        line.handle("/undo")
        line.handle("/remember Visits are counted by hand.")
        line.handle("/save")


def talk_to_a_model(project: Path) -> None:
    """Hold a conversation with a plan, a failed cell, a picture and a fact of the session."""
    replies = [
        planner_reply("CodeInterpreter", "divide", plan="1. divide\n2. draw"),
        code_reply("1/0"), code_reply(PICTURE), planner_reply("User", "Here is the picture."),
        planner_reply("User", "You are welcome.", remember="Pictures are lines."),
    ]  # fmt: skip
    config = {"session.leader_writes_code": False}
    with TaskWeaver(project, config, model=Script(replies)) as tw:
        tw.ask("draw 1, 3, 2")
        tw.ask("thank you")


def run_searches(project: Path) -> None:
    """Make a run that is over, one that was stopped, and one of scripts in kernels."""
    small = {"stage1_nodes": 3, "stage2_nodes": 2, "stage3_nodes": 1, "stage4_nodes": 1}
    search(project, Climber(), name="over", report=True, calls="two", review=True, **small)
    full = {key.removeprefix("search."): value for key, value in FULL.items()}
    search(project, Climber(), name="stopped", steps=3, **full)
    single = {"phase_mode": "single", "stage1_nodes": 2, "stage2_nodes": 1, "stage3_nodes": 0,
              "stage4_nodes": 0}  # fmt: skip
    search(project, Climber(fault=script), name="scripts", report=True, **single)


def script(prompt: dict[str, str]) -> str | None:
    """Reply with a script, of which a child's uses the variables of its parent."""
    kind = prompt.get("Kind of attempt", "").split(" ")[0]
    if not kind:
        return None
    code = (
        SCRIPT.format("[1]", "seen[0]")
        if kind == "draft"
        else SCRIPT.format("seen + [2]", "seen[-1]")
    )
    return remembering(prompt, json.dumps({"plan": f"a {kind}", "name": "", "code": code}))


def fill_memory(file: Path) -> None:
    """Make a memory with branches, of which one is sealed, one pruned and one merged."""
    with BranchedMemory(file) as store:
        run = store.create("run", live=True)
        run.core.set("goal", "a faster solver", importance=5)
        blocks, threads, gone = run.fork("blocks"), run.fork("threads"), run.fork("gone")
        blocks.core["best_time"] = "1.4 s"
        threads.core["best_time"] = "2.0 s"
        blocks.append({"kind": "run_failed", "content": "out of memory"})
        record = blocks.remember("Blocks of 64 rows fit the cache.", tags=["PERFORMANCE"])
        blocks.update(record, text="Blocks of 32 rows fit the cache.")
        del threads.core["goal"]
        gone.core["lost"] = "yes"
        gone.prune()
        store.merge("blocks", "threads", "theirs")
        blocks.seal()


def main(release: str) -> None:
    """Write the archive of a release."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        shutil.rmtree(folder / "project" / "workspace" / "env", ignore_errors=True)
        with tarfile.open(ARCHIVES / f"{release}.tar.xz", "x:xz") as archive:
            for item in sorted(folder.iterdir()):
                archive.add(item, item.name, filter=_anonymous)


def _anonymous(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out who made a file; sockets and pipes of kernels are no files."""
    item.uid = item.gid = 0
    item.uname = item.gname = ""
    return item if item.isfile() or item.isdir() or item.issym() else None


if __name__ == "__main__":
    main(sys.argv[1])
