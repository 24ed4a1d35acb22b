"""Units that follow or precede a number, and the factors between the forms of one quantity."""

from __future__ import annotations

import re

PERCENT = 0.01
LETTER = r"[A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u052f]"
"""A letter that makes a digit beside it part of a name; scripts without blanks have none."""

_WORDS_OF: dict[tuple[float, ...], str] = {
    (PERCENT,): "% percent pct prozent pp pps",
    (1e-3,): "‰",
    (1e-4,): "bps",
    (1e3,): "k thousand thousands tausend tsd",
    (1e4,): "万",
    (1e5,): "lakh",
    (1e6,): "m mn mio mm million millions millionen millones milioni",
    (1e7,): "crore",
    (1e8,): "亿",
    (1e9,): "b bn mrd billion billions milliard milliards milliarde milliarden miliardi",
    (1e12,): "t tn trillion trillions",
    (1e3, 1024.0): "kb",
    (1e6, 1024.0**2): "mb",
    (1e9, 1024.0**3): "gb",
    (1e12, 1024.0**4): "tb",
    (1024.0,): "kib",
    (1024.0**2,): "mib",
    (1024.0**3,): "gib",
    (1024.0**4,): "tib",
}
"""Spellings of scaling units, by the factors that each can stand for."""
_SCALES = {word: factors for factors, words in _WORDS_OF.items() for word in words.split()} | {
    **dict.fromkeys(("per cent", "percentage point", "percentage points"), (PERCENT,)),
    "basis points": (1e-4,),
}
_MEASURES = (
    "s|sec|secs|ms|µs|μs|us|ns|min|mins|h|hr|hrs|d|kg|g|mg|t|km|cm|m|mm|nm|l|ml|hz|khz|mhz|ghz"  # noqa: RUF001
    "|w|kw|mw|gw|kwh|mwh|v|mph|°|°c|°f|c|f|x|×|pt|pts|px|σ"  # noqa: RUF001
)
_WORDS = "|".join(sorted(map(re.escape, _SCALES), key=len, reverse=True))
SUFFIX = re.compile(
    rf"(?P<gap>[ \u00a0\u202f\u2009]?)"
    rf"(?P<unit>{_WORDS}|{_MEASURES}|[€£¥₹]|usd|eur|gbp)(?!{LETTER}|\d)",
    re.IGNORECASE,
)
"""A unit after a number, with the space between."""
_CONVERTED = {
    "count": {"": 1, "thousand": 1e3, "million": 1e6, "billion": 1e9},
    "length": {"mm": 1e-3, "cm": 1e-2, "m": 1, "km": 1e3},
    "mass": {"mg": 1e-6, "g": 1e-3, "kg": 1, "t": 1e3},
    "time": {"ms": 1e-3, "s": 1, "min": 60, "h": 3600, "day": 86400},
    "volume": {"ml": 1e-3, "l": 1},
}
_FACTORS = {
    unit: (kind, size) for kind, units in _CONVERTED.items() for unit, size in units.items()
}
_SPELLED = {
    "hour": "h", "hr": "h", "minute": "min", "second": "s", "sec": "s", "k": "thousand",
    "mn": "million", "mio": "million", "bn": "billion", "tsd": "thousand",
}  # fmt: skip
_MENTIONED = re.compile(
    rf"(?<![a-z])(?P<word>{'|'.join(filter(None, [*_SPELLED, *_FACTORS]))})s?(?![a-z])",
    re.IGNORECASE,
)
_SINGLE = re.compile(r"(?:[_(\[]|\d ?)\Z")
_AMBIGUOUS = frozenset({"m", "mm", "t", "b", "k", "tb"})
_CURRENCY = r"\s*(?:(?:[$€£¥₹]|usd|eur|gbp|chf|jpy|inr),?)?\s*"
_IN_SCALE = re.compile(
    r"\b(?:in|in units of) (?P<word>thousand|million|billion|percent|%)s?(?!\w)"
    rf"|\(\s*{_CURRENCY}(?P<short>%|k|m|mn|mio|mrd|bn|thousands?|millions?|billions?|percent)\.?"
    rf"{_CURRENCY}\s*\)",
    re.IGNORECASE,
)
_SHARE = re.compile(r"%|\bpercent|\bpct\b", re.IGNORECASE)


def scales(unit: str) -> tuple[float, ...]:
    """Return the factors a unit stands for; empty for a unit that scales nothing."""
    return _SCALES.get(unit.lower().strip(), ())


def is_ambiguous(unit: str) -> bool:
    """Return whether a unit may as well be a measure that scales nothing (metres, tonnes)."""
    return unit.lower() in _AMBIGUOUS


def scale_of_remark(text: str) -> tuple[float, ...]:
    """Return the factors that a remark ("in thousands") announces for all numbers of a text."""
    match = _IN_SCALE.search(text)
    return scales(match["word"] or match["short"]) if match is not None else ()


def scale_of_heading(text: str) -> tuple[float, ...]:
    """Return the factors a table's heading announces for the numbers below it."""
    found = scale_of_remark(text)
    return found or ((PERCENT,) if _SHARE.search(text) else ())


def mentioned_units(text: str) -> frozenset[str]:
    """Return the units that a text names; a single letter counts in brackets or behind a digit."""
    found = _MENTIONED.finditer(text)
    return frozenset(
        _spelled(match["word"])
        for match in found
        if len(match["word"]) > 1 or _SINGLE.search(text, max(match.start() - 2, 0), match.start())
    )


def is_convertible(unit: str) -> bool:
    """Return whether a unit has others of its kind."""
    return bool(unit) and _spelled(unit) in _FACTORS


def conversions(unit: str, known: frozenset[str]) -> list[float]:
    """Return the factors from a unit to other `known` ones of the same kind."""
    kind, size = _FACTORS.get(_spelled(unit), ("", 1))
    others = [_FACTORS[other] for other in known if other != _spelled(unit)]
    return [size / other for other_kind, other in others if other_kind == kind]


def _spelled(unit: str) -> str:
    name = unit.lower()
    name = name if name in _FACTORS else name.removesuffix("s")
    return _SPELLED.get(name, name)
