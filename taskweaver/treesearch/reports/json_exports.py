"""Results of a run as data: its journal, summaries of its stages, its best node, its costs.

Everything is worked out from the journal and the facts, and may be written again at any time: a
reader sees the old files or the new ones, never a part.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Cost, Node, NodeKind
from taskweaver.treesearch.model.stages import STAGES
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.places import NodePlaces, remove
from taskweaver.treesearch.record.run_facts import RunFacts, StageFacts
from taskweaver.treesearch.reports.reproducing import (
    EVALUATOR,
    SHELL_SCRIPT,
    evaluator_of,
    reproduction,
)
from taskweaver.utils.file_system.safe_fs import Folder, copy_content
from taskweaver.utils.files import write_json, write_text
from taskweaver.utils.redact import redact_secrets_in

LARGEST_FILE_BYTES = 256 << 20
_NAMED = frozenset({NodeKind.HYPERPARAM, NodeKind.ABLATION})


def write_outputs(journal: Journal, run_dir: Path, facts: RunFacts) -> None:
    """Write ``journal.json``, ``stage_summaries/``, ``best/`` and ``costs.json``.

    Raises:
        OSError: If one of them cannot be written.
    """
    # Copies for readers; a run is resumed from its log, which is exact.
    write_json(run_dir / "journal.json", redact_secrets_in(journal.to_dict()))
    write_json(run_dir / "costs.json", costs(journal, facts.beside))
    for stage in known_stages(journal, facts):
        name = re.sub(r"[^\w-]+", "_", stage.name)[:60] or "stage"
        target = run_dir / "stage_summaries" / f"stage_{stage.number}_{name}.json"
        write_json(target, redact_secrets_in(stage_summary(journal, facts, stage)))
    write_best(journal, run_dir)


def known_stages(journal: Journal, facts: RunFacts) -> list[StageFacts]:
    """Return the stages of a run, those without facts among them, in order."""
    stages = {stage.number: stage for stage in facts.stages}
    names = {stage.number: stage.name for stage in STAGES}
    for node in journal.nodes:
        if node.stage not in stages:
            name = names.get(node.stage, "stage")
            stages[node.stage] = StageFacts(node.stage, name)
    return [stages[number] for number in sorted(stages)]


def stage_summary(journal: Journal, facts: RunFacts, stage: StageFacts) -> dict[str, Any]:
    """Return the outcome of a stage: counts, best, history, names tried, seeds."""
    nodes = journal.of_stage(stage.number)
    best = journal.best(nodes)
    base = journal[stage.base] if stage.base is not None and stage.base in journal else None
    statuses, kinds = run_statistics.count(nodes)
    tried = [node for node in nodes if node.kind in _NAMED]
    evaluated = [node for node in [*nodes, base] if node is not None]
    return {
        "stage": stage.number,
        "name": stage.name,
        "reason": stage.reason,
        "nodes": {"total": len(nodes), **statuses},
        "kinds": dict(kinds),
        "base": _reached(base),
        "best": _reached(best),
        "metric_history": [
            {"step": node.step, "node": node.id, "value": node.value, "best": reached}
            for node, reached in run_statistics.history(journal, nodes)
        ],
        "key_numbers": _key_numbers(journal, nodes, best, base),
        "tried": [
            {
                "name": effect.node.name,
                "kind": effect.node.kind,
                "node": effect.node.id,
                "status": effect.node.status,
                "value": effect.node.value,
                "base": effect.base.id if effect.base else None,
                "gain": effect.gain,
                "gain_error": effect.difference.error if effect.difference else None,
            }
            for effect in run_statistics.effects(journal, facts, tried)
        ],
        "seeds": {
            node.id: spread.to_dict()
            for node in evaluated
            if (spread := journal.repeated_samples(node.id)) is not None
        },
    }


def _reached(node: Node | None) -> dict[str, Any] | None:
    if node is None:
        return None
    metric = node.metric.to_dict() if node.metric else None
    return {
        "node": node.id,
        "value": node.value,
        "metric": metric,
        "plan": node.plan,
        "summary": dict(node.summary),
    }


def _key_numbers(
    journal: Journal, nodes: list[Node], best: Node | None, base: Node | None
) -> dict[str, Any]:
    failed = sum(node.has_failed for node in nodes)
    found = run_statistics.gain(journal, best, base)
    return {
        "best": best.value if best else None,
        "gain_over_base": found.gain if found else None,
        "gain_error": found.error if found else None,
        "failed_share": failed / len(nodes) if nodes else None,
        "run_seconds_of_best": best.exec_seconds if best else None,
        "seconds": sum(map(run_statistics.seconds, nodes)),
    }


def costs(journal: Journal, beside: Cost) -> dict[str, Any]:
    """Return the costs of model calls and runs, by stage and by kind; times in seconds.

    The consumption `beside` the nodes is in the total.
    """
    by_stage: dict[int, list[Node]] = {}
    for node in journal.nodes:
        by_stage.setdefault(node.stage, []).append(node)
    total = run_statistics.total_cost(journal.nodes) + beside
    return {
        "total": _account(journal.nodes) | asdict(total),
        "by_stage": {
            str(stage): {"total": _account(nodes), "by_kind": _by_kind(nodes)}
            for stage, nodes in sorted(by_stage.items())
        },
        "by_kind": _by_kind(journal.nodes),
        "beside_nodes": asdict(beside),
    }


def _by_kind(nodes: Iterable[Node]) -> dict[str, Any]:
    kinds: dict[NodeKind, list[Node]] = {}
    for node in nodes:
        kinds.setdefault(node.kind, []).append(node)
    return {kind.value: _account(kinds[kind]) for kind in NodeKind if kind in kinds}


def _account(nodes: list[Node]) -> dict[str, Any]:
    return {
        "nodes": len(nodes),
        **asdict(run_statistics.total_cost(nodes)),
        "seconds": sum(map(run_statistics.seconds, nodes)),
        "run_seconds": sum(node.exec_seconds for node in nodes),
    }


def write_best(journal: Journal, run_dir: Path) -> Path | None:
    """Write ``best/``: the best node's workspace, scripts that run it again, and ``node.json``.

    Links that lead out of the workspace, special files and files over `LARGEST_FILE_BYTES` are
    left out, and named in ``node.json``. Where the workspace is gone, the files are those that
    were proposed.

    Returns:
        The folder; None when no node measured anything.

    Raises:
        OSError: If it cannot be written; an older one is then left as it was.
    """
    node = journal.best()
    if node is None:
        return None
    target = run_dir / "best"
    draft = run_dir / f".best.{secrets.token_hex(6)}"
    workspace = NodePlaces(run_dir, node.id).workspace
    has_files = workspace.is_dir() and not workspace.is_symlink()
    try:
        left_out = _copy(workspace, draft / "workspace") if has_files else []
        if not has_files:
            _write_proposed(journal.files(node.id), draft / "workspace")
        evaluator = evaluator_of(run_dir)
        if evaluator is not None and evaluator.folder is not None:
            _copy(evaluator.folder, draft / EVALUATOR)
        for name, text in reproduction(journal, node, evaluator).items():
            write_text(draft / name, text)
        (draft / SHELL_SCRIPT).chmod(0o755)
        facts = {**node.to_dict(), "left_out": left_out}
        write_json(draft / "node.json", redact_secrets_in(facts))
        _replace(draft, target)
    finally:
        remove(draft)
    return target


def _copy(source: Path, target: Path) -> list[str]:
    """Copy a folder; return the paths that were left out."""
    left_out: list[str] = []
    target.mkdir(parents=True)
    with Folder.at(source) as workspace, Folder.at(target) as copy:
        for path, facts in workspace.walk():
            if not _copy_entry(workspace, copy, path, facts):
                left_out.append(path)
    return sorted(left_out)


def _copy_entry(workspace: Folder, copy: Folder, path: str, facts: os.stat_result) -> bool:
    """Copy a file, or a link to an entry inside; return whether it is wanted."""
    copy.make_folders(PurePosixPath(path).parent)
    if stat.S_ISLNK(facts.st_mode):
        target = workspace.link_target(path)
        if not _is_inside(workspace, os.path.normpath(PurePosixPath(path).parent / target)):
            return False
        copy.make_link(path, target)
        return True
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE_BYTES:
        return False
    with workspace.open_file(path) as old, copy.create_file(path) as new:
        copy_content(old, new)
        os.fchmod(new.fileno(), facts.st_mode & 0o755 | 0o600)
    return True


def _is_inside(workspace: Folder, path: str) -> bool:
    try:
        return path != "." and workspace.stat(path) is not None
    except OSError:  # it leads outside, or by a further link
        return False


def _write_proposed(files: Mapping[str, str], target: Path) -> None:
    target.mkdir(parents=True)
    home = target.resolve()
    for name, content in files.items():
        path = (home / name).resolve()
        if path.is_relative_to(home) and path != home:
            write_text(path, content)


def _replace(draft: Path, target: Path) -> None:
    """Replace a folder by another; the old one is removed afterwards."""
    if not target.exists():
        draft.replace(target)
        return
    old = target.with_name(f".old{draft.name}")
    target.replace(old)
    try:
        draft.replace(target)
    except BaseException:
        old.replace(target)
        raise
    remove(old)
