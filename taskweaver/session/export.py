"""A conversation as a file others can use: a notebook, a script, or a report with its figures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.namespace import USUAL_NAMES
from taskweaver.memory.cells import ExecutedCell, executed_cells, successful_cells
from taskweaver.memory.round import Round
from taskweaver.session.errors import SessionError
from taskweaver.session.export_cells import (
    NotebookOutputs,
    printing,
    table_functions,
    with_outside_cells,
    without_profiles,
)
from taskweaver.tables.plans.code import modules_of
from taskweaver.utils.files import write_text
from taskweaver.utils.markup.inert_markdown import (
    inert_line,
    inert_markdown,
    inert_picture,
    inert_text,
)
from taskweaver.utils.redact import MASK, has_mask, redact_secrets_in
from taskweaver.utils.text import fenced

FORMATS = {".ipynb": "notebook", ".py": "script", ".md": "report"}
_MARK = f"# This cell holds {MASK} in place of a secret."
_PICTURES = {".png", ".svg", ".jpg", ".jpeg", ".gif"}


def export(
    rounds: Sequence[Round], target: Path, *, title: str, folder: Path | None = None
) -> None:
    """Write finished rounds in the format a file's name ends in (see `FORMATS`).

    A notebook and a script run from top to bottom in the working directory of the conversation,
    without TaskWeaver: `read_table` is a function that reads each table with pandas.
    Secrets are masked, cells that hold a mask are named at the top and marked. Questions and
    answers are written from an allow-list, see `inert_markdown`: no reader of a file runs script
    or loads anything from elsewhere. A notebook has the stored outputs of its cells, a script
    prints their results.

    The file is replaced when the whole of it is written. A notebook takes in the pictures of the
    working directory `folder`; without it there are none.

    Raises:
        SessionError: If the format is unknown, nothing is to be written, or writing fails.
    """
    writers: dict[str, Callable[[Sequence[Round], str], str]]
    writers = {".ipynb": partial(_notebook, folder=folder), ".py": _script, ".md": _report}
    finished = [
        Round.from_dict(redact_secrets_in(round_.shown_dict()))
        for round_ in rounds
        if round_.state == "finished"
    ]
    finished = without_profiles(with_outside_cells(finished))
    if target.suffix not in writers:
        known = ", ".join(f"{suffix} ({what})" for suffix, what in FORMATS.items())
        raise SessionError(f"{target.name}: the name must end in one of {known}.")
    if not finished:
        raise SessionError("There is no finished round to export yet.")
    try:
        write_text(target, writers[target.suffix](finished, title))
    except OSError as error:
        raise SessionError(f"{target} cannot be written: {error.strerror}") from error


def _mask_note(rounds: Sequence[Round]) -> str:
    """Return a sentence that names the cells with a mask, by number, empty without any."""
    cells = successful_cells(rounds)
    found = [str(number) for number, cell in enumerate(cells, 1) if has_mask(cell.code)]
    if not found:
        return ""
    which = f"Cell {found[0]} holds" if len(found) == 1 else f"Cells {', '.join(found)} hold"
    return f"{which} {MASK} in place of a secret: put code there that reads it before you run this."


def _marked(code: str) -> str:
    """Return the code of a cell, with a comment at its end if it holds a mask.

    At its end because a cell's first line may be a magic (`%%bash`), for which it is a comment too.
    """
    return f"{code.rstrip()}\n{_MARK}" if has_mask(code) else code


def _answer(round_: Round) -> str:
    return inert_markdown(round_.post_list[-1].message) if round_.post_list else ""


def _question(round_: Round) -> str:
    lines = inert_text(round_.question.strip()).split("\n")
    return "\n".join(f"> {line}" for line in lines)


def _notebook(rounds: Sequence[Round], title: str, folder: Path | None) -> str:
    """Return a notebook of format 4.5 (https://nbformat.readthedocs.io)."""
    cells: list[dict[str, Any]] = [_markdown("title", f"# {inert_line(title)}")]
    imports = _imports(rounds)
    note = _mask_note(rounds)
    cells += [_markdown("masked", note)] if note else []
    cells += [_code("imports", imports)] if imports else []
    outputs, number = NotebookOutputs(folder), 0
    for round_ in rounds:
        cells.append(_markdown(f"{round_.id}-q", _question(round_)))
        for cell in _cells(round_):
            number += 1
            made = _code(cell.post_id, _marked(cell.code))
            cells.append(made | {"execution_count": number, "outputs": outputs.of(cell, number)})
        cells.append(_markdown(f"{round_.id}-a", _answer(round_)))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "cells": cells,
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _code(id_: str, code: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": _cell_id(id_),
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": code,
    }


def _cells(round_: Round) -> list[ExecutedCell]:
    """Return the cells of a round that ran to their end."""
    return [cell for cell in executed_cells([round_]) if cell.is_success and cell.code]


def _imports(rounds: Sequence[Round]) -> str:
    """Return code for the names that kernels define without an import, where they are used."""
    functions = table_functions(rounds)
    code = "\n".join([functions, *(cell.code for cell in successful_cells(rounds))])
    used = [alias for alias in USUAL_NAMES if re.search(rf"\b{alias}\.", code)]
    imports = [f"import {name}" for name in modules_of(functions)]
    imports += [f"import {USUAL_NAMES[alias]} as {alias}" for alias in sorted(used)]
    return "\n\n\n".join(filter(None, ["\n".join(imports), functions]))


def _markdown(id_: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": _cell_id(id_), "metadata": {}, "source": text}


def _cell_id(text: str) -> str:
    """Return a text as the id of a cell: up to 64 letters, digits, - and _."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in text)[-64:]


def _script(rounds: Sequence[Round], title: str) -> str:
    note = _mask_note(rounds)
    line = " ".join(title.split()).replace("\\", "/").replace('"', "'")
    parts = [f'"""{line}"""', f"# {note}" if note else "", _imports(rounds)]
    parts = [part for part in parts if part]
    for round_ in rounds:
        codes = [_marked(printing(cell.code, cell.report)).strip() for cell in _cells(round_)]
        if codes:
            query = round_.question.strip()
            asked = "\n".join(f"# {line}" for line in query.splitlines())
            parts.append("\n\n".join([asked, *codes]))
    return "\n\n\n".join(parts) + "\n"


def _report(rounds: Sequence[Round], title: str) -> str:
    parts = [f"# {inert_line(title)}", *filter(None, [_mask_note(rounds)])]
    for number, round_ in enumerate(rounds, start=1):
        parts += [f"## {number}.", _question(round_), _answer(round_)]
        for cell in successful_cells([round_]):
            code = fenced(_marked(cell.code), "python")
            parts.append(f"<details><summary>code</summary>\n\n{code}\n\n</details>")
        pictures = (path for path in round_.artifacts if Path(path).suffix.lower() in _PICTURES)
        parts += map(inert_picture, pictures)
    return "\n\n".join(parts) + "\n"
