"""Runs programs one after the other in one interpreter, each in its folder, as the search did.

It is put beside the files of a best node, and needs nothing but IPython.
"""

import os
import shutil
import sys
from importlib import import_module, util
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

USUAL = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot"}


def main(programs: list[str]) -> None:
    """Run programs, each given as its folder, its node and its seed, with colons between."""
    make: Any = InteractiveShell.instance
    shell = make(config=Config({"HistoryManager": {"enabled": False}}), colors="nocolor")
    names = {name: module for name, module in USUAL.items() if util.find_spec(module.split(".")[0])}
    shell.push({name: import_module(module) for name, module in names.items()})
    sys.path[0] = ""  # modules are looked for where each program is
    start = Path.cwd()
    for program in programs:
        folder, node, seed = program.split(":")
        os.environ.update({"TASKWEAVER_NODE": node, "TASKWEAVER_SEED": seed})
        os.chdir(start / folder)
        shutil.rmtree("working", ignore_errors=True)
        Path("working").mkdir()
        if not shell.run_cell(Path("experiment.py").read_text("utf-8")).success:
            raise SystemExit(f"The program of {node} failed.")


if __name__ == "__main__":
    main(sys.argv[1:])
