"""Frame as a reader of a file gave it, and the choice of one of the file's parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from taskweaver.tables.deciding import is_of_texts
from taskweaver.tables.errors import MissingTableError
from taskweaver.tables.evidence.codes import MISSING, are_codes, are_levels, kept_words
from taskweaver.tables.plans.plan import Exact, ReadPlan, Step, Tidy, ToType
from taskweaver.tables.plans.steps import Frame, carry_out, read_source

_EXACT = 2**53
_LARGEST = 2**1023


@dataclass(slots=True)
class Raw:
    """Frame as a reader gave it.

    Attributes:
        frame: The frame, with the plan's steps carried out.
        form: Words on the form of the file: ``comma``, ``UTF-8``.
        notes: Sentences on other decisions.
        unclear: Phrases on decisions without evidence.
        lost: Phrases on rows that are no records.
        texts: Columns of numerals that stay text.
        decimal: Decimal separator of the file; empty for unknown.
        first: First rows as they are written, for a file of separated text.
    """

    plan: ReadPlan
    frame: Frame
    form: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    decimal: str = ""
    first: tuple[tuple[str, ...], ...] = ()

    def note_others(self, kind: str, names: Sequence[str], chosen: str) -> None:
        """Note the other sheets or tables of the file, of many the first."""
        others = [repr(name) for name in names if name != chosen]
        if others:
            shown = ", ".join(others[:6]) + (" ..." if len(others) > 6 else "")
            self.notes.append(f"Other {kind}s: {shown}.")


def exact(plan: ReadPlan, frame: Frame, *, shape: str = "") -> Raw:
    """Return a frame as it is, or read anew where integers of it may have passed through floats.

    `shape` is the shape of JSON data then, if it is another one.
    """
    if not any(holds_doubtful(frame.iloc[:, at]) for at in range(frame.shape[1])):
        return Raw(plan, frame)
    plan = (plan.with_options(shape=shape) if shape else plan).with_options(exact=True)
    return typed(plan, carry_out(read_source(plan), plan.steps))


def typed(plan: ReadPlan, frame: Frame) -> Raw:
    """Return a frame of objects with the types of their values, which keep integers exact."""
    kinds = {name: kind for name in frame.columns if (kind := _exact_type(frame[name]))}
    steps: list[Step] = [ToType(str(name), kind) for name, kind in kinds.items()]
    steps.append(Tidy("infer"))
    plan = replace(plan, steps=(*plan.steps, *steps))
    texts = [str(name) for name, kind in kinds.items() if kind == "string"]
    return Raw(plan, carry_out(frame, tuple(steps)), texts=texts)


def holds_doubtful(series: Any) -> bool:
    """Return whether floats may have been integers: whole beside missing values, or too large."""
    if series.dtype != float:
        return False
    present = series.dropna()
    is_whole = len(present) < len(series) and bool((present % 1 == 0).all())
    return bool(len(present)) and (is_whole or holds_large(series))


def holds_large(series: Any) -> bool:
    """Return whether floats are larger than the integers that each have their own float."""
    return bool((series.abs() >= _EXACT).any())


def texts_of(plan: ReadPlan, places: Sequence[int] | None, **more: Any) -> Frame:
    """Return columns of a source as the texts of the file, by their places, or all."""
    options = {k: v for k, v in plan.options.items() if k not in {"dtype", "date_format"}}
    chosen = {} if places is None else {"usecols": list(places)}
    return read_source(replace(plan, options=options), dtype=str, **chosen, **more)


def with_kept_words(plan: ReadPlan, frame: Frame) -> tuple[ReadPlan, list[str]]:
    """Return a plan that keeps words like the code NA, which readers take for missing, and notes.

    The frame is as its reader gave it, before the steps of the plan.
    """
    lacking = {at: series for at, (_, series) in enumerate(frame.items()) if series.isna().any()}
    texts = {at: s.dropna().unique() for at, s in lacking.items() if is_of_texts(s)}
    codes = [at for at, found in texts.items() if are_codes(found)]
    levels = [at for at, found in texts.items() if are_levels(found)]
    if not codes and not levels:
        return plan, []
    whole = texts_of(plan, None, keep_default_na=False)
    words = {at: set(whole.iloc[:, at][series.isna()].unique()) for at, series in lacking.items()}
    kept = kept_words(codes, levels, words)
    if not kept:
        return plan, []
    notes = [
        f"`{frame.columns[at]}` holds the code {word}; it is not taken as missing."
        for word in kept
        for at in texts
        if word in words[at]
    ]
    missing = sorted(MISSING - {*kept})
    return plan.with_options(keep_default_na=False, na_values=missing), notes


def _exact_type(series: Any) -> Exact | None:
    """Return the type that keeps the integers of a column of objects; None where inference does."""
    present = series.dropna()
    kinds = set(map(type, present))
    if kinds == {int, float}:
        large = [value for value in present if type(value) is int and abs(value) > _EXACT]
        return "string" if any(abs(v) > _LARGEST or int(float(v)) != v for v in large) else None
    if kinds != {int} or len(present) == len(series):
        return None
    low, high = min(present), max(present)
    if low >= -(2**63) and high < 2**63:
        return "Int64"
    return "UInt64" if low >= 0 and high < 2**64 else None


def part_named(wanted: str | int, names: Sequence[str], kind: str, file: str) -> str:
    """Return the sheet or table of a number (from 0) or a name, which may be in another case.

    Raises:
        MissingTableError: If there is none.
    """
    if isinstance(wanted, int):
        if not -len(names) <= wanted < len(names):
            count = len(names)
            raise MissingTableError(f"{file} has {count} {kind}s; there is no number {wanted}.")
        return names[wanted]
    folded = str(wanted).strip().casefold()
    alike = [name for name in names if name == wanted]
    alike += [name for name in names if name.strip().casefold() == folded]
    if not alike:
        shown = ", ".join(map(repr, names[:10]))
        raise MissingTableError(f"{file} has no {kind} {wanted!r}; there are {shown}.")
    return alike[0]
