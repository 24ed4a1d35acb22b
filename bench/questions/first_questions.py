"""First questions by three people who saw only files: put to the product, for a judge to read.

`python -m bench.questions.first_questions FOLDER` takes a folder with the data files, which
packages hold (`package` in `people`), and prints each question with its truth and the answer. With
`--among` all files of the folder are there, not only the one that is asked about. No model is used.
The questions are half of those that were asked. The other half was seen by its judges alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from taskweaver import TaskWeaver

QUESTIONS = Path(__file__).parent / "people"


def ask(conversation: dict[str, Any], folder: Path, *, among: bool) -> None:
    """Ask the questions of a conversation in a session of their own, and print the answers."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        for file in folder.iterdir():
            if among or file.name == conversation["file"]:
                shutil.copy(file, place)
        with TaskWeaver(place, {"llm.api_type": "offline"}) as product:
            for turn in conversation["turns"]:
                answer = product.ask(turn["question"])
                print(f"\n[{conversation['file']}] {turn['question']}")
                print(f"truth: {turn['truth']}{' (may refuse)' * turn.get('may_refuse', False)}")
                print(f"answer: {answer}")


def main() -> None:
    """Ask all conversations whose file is in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--among", action="store_true")
    options = parser.parse_args()
    for file in sorted(QUESTIONS.glob("*.json")):
        for conversation in json.loads(file.read_text("utf-8")):
            if (options.folder / conversation["file"]).exists():
                ask(conversation, options.folder, among=options.among)


if __name__ == "__main__":
    main()
