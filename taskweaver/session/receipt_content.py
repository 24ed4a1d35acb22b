"""The content of a receipt: the newest answer with its cells, input files and versions of programs.

Input files are named and hashed when a receipt is written, and found when it is checked.
"""

from __future__ import annotations

import ast
import base64
import binascii
import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from taskweaver import __version__
from taskweaver.ces.inkernel.namespace import USUAL_NAMES
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import ExecutedCell, executed_cells
from taskweaver.memory.round import Round, RoundAnswer, file_notes
from taskweaver.session.answers.check import verify
from taskweaver.session.answers.outcomes import USER, Outcomes
from taskweaver.session.receipt import Input, Receipt, ReceiptError, refuse_masked
from taskweaver.session.storage.workdir import AddedFile
from taskweaver.utils.file_system.safe_fs import Folder, open_ordinary
from taskweaver.utils.files import leaves
from taskweaver.utils.named_files import Finder
from taskweaver.utils.parsing import parse
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

EMBEDDED_BYTES = 10 << 20
"""Most bytes of inputs that a receipt holds, the smallest files first."""

_CHUNK = 1 << 20
_STAMP = re.compile(r"(\d{8}-\d{6})")
_SECOND = 1.0
_ALWAYS = ("pandas", "numpy")


@dataclass(frozen=True, slots=True)
class ConversationOrigin:
    """Session, branch and folders of a conversation."""

    session_id: str
    branch: str
    cwd: Path
    data_dir: Path


def build_receipt(rounds: Sequence[Round], origin: ConversationOrigin) -> Receipt:
    """Return the receipt of the newest answer of a conversation.

    Secrets are masked in all texts but code, which is stored byte for byte.

    Raises:
        ReceiptError: If there is no answer that rests on a cell, a cell holds a secret or the
            mask of one, or an input cannot be read.
    """
    number = next((n for n in range(len(rounds), 0, -1) if rounds[n - 1].answer.text), 0)
    seen = list(rounds[:number])
    cells = executed_cells(seen)
    if not any(cell.is_success for cell in cells):
        raise ReceiptError("There is no answer yet that rests on code which ran.")
    _refuse_secrets(cells)
    round_ = seen[-1]
    return Receipt(
        session_id=origin.session_id,
        branch=origin.branch,
        written_at=datetime.now(UTC).isoformat(timespec="seconds"),
        question=redact_secrets(round_.question),
        reading=redact_secrets_in(_reading(round_)),
        answer=_answer(seen),
        cells=tuple(
            replace(
                cell,
                report=redact_secrets(cell.report),
                variables=tuple((name, redact_secrets(text)) for name, text in cell.variables),
            )
            for cell in cells
        ),
        inputs=inputs_of(seen, origin.cwd, origin.data_dir),
        versions=versions_for(cell.code for cell in cells),
    )


def _refuse_secrets(cells: Sequence[ExecutedCell]) -> None:
    refuse_masked(cells)
    secret = next((cell.number for cell in cells if redact_secrets(cell.code) != cell.code), None)
    if secret is not None:
        raise ReceiptError(
            f"Cell {secret} holds a secret, and a receipt stores code byte for byte. Let the code"
            " read the secret from its source, and ask again."
        )


def _answer(rounds: Sequence[Round]) -> RoundAnswer:
    """Return the newest answer, checked now if it was not when it was given."""
    answer = rounds[-1].answer
    if not answer.is_checked:
        leader = rounds[-1].post_list[-1].send_from
        answer = verify(answer.text, Outcomes().sources(rounds, leader))
    data = redact_secrets_in({"text": answer.text, "finding": answer.finding()})
    return RoundAnswer.from_finding(data["text"], data["finding"])


def _reading(round_: Round) -> dict[str, Any]:
    """Return how a request was understood: the last plan, and the orders to other roles."""
    plans = [plan for post in round_.post_list if (plan := post.last(AttachmentType.plan))]
    leader = round_.post_list[-1].send_from
    orders = [
        post.message
        for post in round_.post_list
        if post.send_from == leader and post.send_to not in {leader, USER}
    ]
    return {"plan": plans[-1] if plans else "", "orders": orders}


def inputs_of(rounds: Sequence[Round], cwd: Path, data_dir: Path) -> tuple[Input, ...]:
    """Return the files that the cells of a conversation were given, as they are now.

    These are the files that came with a request, and files of the working directory that code
    names and that were there before the request or are in the data folder.

    Raises:
        ReceiptError: If a file cannot be read.
    """
    try:
        with Folder.at(cwd) as folder:
            return _inputs(folder, _added(rounds, cwd, folder, data_dir), data_dir)
    except OSError as error:
        raise ReceiptError(f"The working directory cannot be read: {error}") from error


def _added(rounds: Sequence[Round], cwd: Path, folder: Folder, data_dir: Path) -> dict[str, float]:
    """Return the names of the files that cells were given, each with its round's beginning."""
    added: dict[str, float] = {}
    for round_ in rounds:
        began = _time_of(round_.id)
        for name in _names(file_notes(round_.user_query), cwd):
            added[name] = began
        code = "\n".join(cell.code for cell in executed_cells([round_]))
        for name in _names(code, cwd):
            facts = folder.stat(name)
            was_there = facts is not None and facts.st_mtime < began
            if name not in added and facts and (was_there or (data_dir / name).is_file()):
                added[name] = began
    return added


def _names(text: str, cwd: Path) -> list[str]:
    return [named.source.name for named in Finder(None, cwd).in_text(text) if not named.problem]


def _inputs(folder: Folder, added: Mapping[str, float], data_dir: Path) -> tuple[Input, ...]:
    sizes = {name: facts.st_size for name in added if (facts := folder.stat(name)) is not None}
    left, inputs = EMBEDDED_BYTES, []
    for name in sorted(added, key=lambda name: sizes.get(name, 0)):
        found = _input(folder, name, added[name], data_dir, left)
        left -= found.bytes if found.content is not None else 0
        inputs.append(found)
    return tuple(sorted(inputs, key=lambda item: item.name))


def _time_of(round_id: str) -> float:
    """Return when a round began, as its id says, infinity for an id without a time."""
    match = _STAMP.search(round_id)
    if match is None:
        return float("inf")
    return datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()


def _input(folder: Folder, name: str, added: float, data_dir: Path, left: int) -> Input:
    try:
        with folder.open_file(name) as file:
            facts = os.fstat(file.fileno())
            kept = file.read(left) if facts.st_size <= left else b""
            digest, size = hashlib.sha256(kept), len(kept)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise ReceiptError(f"The input {name} cannot be read: {error}") from error
    source = data_dir / name
    change = ""
    if facts.st_mtime >= added + _SECOND:
        change = "in the working directory"
    elif source.is_file() and _hash_of(source) != digest.hexdigest():
        change = "in the data folder"
    content = base64.b64encode(kept).decode("ascii") if len(kept) == size <= left else None
    return Input(name, size, digest.hexdigest(), change, content)


def _hash_of(path: Path) -> str:
    try:
        with open_ordinary(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError as error:
        raise ReceiptError(f"The input {path.name} cannot be read: {error}") from error


def files_for(
    inputs: Sequence[Input],
    data: Mapping[str, Path],
    folders: Sequence[Path],
    root: Path | None = None,
) -> dict[str, AddedFile]:
    """Find the inputs of a receipt: given files first, then its own copy, then some folders.

    Links in the folder `root` of the project may not leave it; None allows any target.

    Returns:
        The files by name.

    Raises:
        ReceiptError: If one is missing, or a given file is for no input.
    """
    unknown = sorted(set(data) - {item.name for item in inputs})
    if unknown:
        raise ReceiptError(f"The receipt has no input {', '.join(unknown)}.")
    return {item.name: _file_for(item, data.get(item.name), folders, root) for item in inputs}


def _file_for(
    item: Input, given: Path | None, folders: Sequence[Path], root: Path | None
) -> AddedFile:
    if given is not None:
        if not given.is_file():
            raise ReceiptError(f"{given} does not exist.")
        return {"name": item.name, "path": given}
    if item.content is not None:
        try:
            return {"name": item.name, "content": base64.b64decode(item.content, validate=True)}
        except (binascii.Error, ValueError) as error:
            raise ReceiptError(
                f"The content of {item.name} is not valid base64: {error}"
            ) from error
    paths = (folder / item.name for folder in folders)
    found = next((path for path in paths if path.is_file() and not leaves(path, root)), None)
    if found is None:
        raise ReceiptError(
            f"The input {item.name} ({item.bytes:,} bytes) is not in the receipt."
            f" Name it: --data {item.name}=PATH"
        )
    return {"name": item.name, "path": found}


def hash_of(file: AddedFile) -> str:
    """Return the hash of a file that was found.

    Raises:
        ReceiptError: If it cannot be read.
    """
    content = file.get("content")
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    return _hash_of(Path(file["path"]))


def versions_for(codes: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, TaskWeaver and the libraries some cells import."""
    modules = {*_ALWAYS}.union(*map(_imported, codes)) - sys.stdlib_module_names
    packages = _packages()
    return {
        "python": platform.python_version(),
        "taskweaver": __version__,
        **dict(packages[module] for module in sorted(modules & packages.keys())),
    }


def _packages() -> dict[str, tuple[str, str]]:
    """Return name and version of each module's package.

    Of several packages, which share a namespace, the first is taken.
    """
    found: dict[str, tuple[str, str]] = {}
    for package in distributions():
        # A folder that an installer left behind has no name, or raises where the package
        # importlib_metadata replaces the standard library's.
        with suppress(FileNotFoundError):
            if name := package.metadata["Name"]:
                for module in _modules(package):
                    found.setdefault(module, (name, package.version))
    return found


def _modules(package: Distribution) -> set[str]:
    """Return the top-level names of a package's files, its modules among them."""
    declared = package.read_text("top_level.txt")
    if declared:
        return set(declared.split())
    paths = [line.partition(",")[0] for line in (package.read_text("RECORD") or "").splitlines()]
    return {path.partition("/" if "/" in path else ".")[0] for path in paths}


def _imported(code: str) -> set[str]:
    """Return the top-level modules a cell imports, or uses by their usual short names."""
    usual = {
        module.partition(".")[0]
        for alias, module in USUAL_NAMES.items()
        if re.search(rf"\b{alias}\.", code)
    }
    try:
        nodes = list(ast.walk(parse(code)))
    except (SyntaxError, ValueError, RecursionError):  # a cell of the shell, or magics
        return usual
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return usual | {name.partition(".")[0] for name in names}


def changes(recorded: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return the programs that have another version now, a phrase each."""
    return [
        f"{name} {old} then, {now[name]} now"
        for name, old in recorded.items()
        if now.get(name, old) != old
    ]
