"""Numbers in text: where they stand, and the values their spelling can mean.

A spelling can have several readings: "1.234" is a decimal number or a grouped integer, "57.1 %" is
57.1 or 0.571. Each reading has a step, the value of its last shown digit, so that rounding can be
judged. Scanning is linear in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from taskweaver.session.answers.units import PERCENT, SUFFIX, is_ambiguous, scales

_GROUPS = "'’_\u00a0\u202f\u2009"  # noqa: RUF001 - the signs that group digits
_WITHOUT_SPACES = rf"\d+(?:[.,{_GROUPS}]\d+)*|(?<![\w.])\.\d+"
_TOKENS = {
    False: re.compile(_WITHOUT_SPACES),
    True: re.compile(rf"(?<![\d.,])\d{{1,3}}(?: \d{{3}})+(?:[.,]\d+)?(?!\d)|{_WITHOUT_SPACES}"),
}
"""Digits of a number, without and with plain spaces that group them."""
_EXPONENT = re.compile(
    r"[eE](?P<e>[+-]?\d{1,3})(?![A-Za-z0-9_])"
    r"|\s?[x×·*]\s?10(?:\^|\*\*)\(?(?P<ten>[-−+]?\d{1,3})\)?"  # noqa: RUF001
    r"|\s?[x×·*]\s?10(?P<high>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})"  # noqa: RUF001
)
_HIGH = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_SEPARATOR = re.compile(rf"[.,{_GROUPS} ]")
_SIGN = re.compile(r"(?:(?<=[\s(\[{|=:,;~≈<>\"'*])|\A)(?P<sign>[-−+])[$€£¥₹]?\Z")  # noqa: RUF001
_SIGN_INSIDE = re.compile(r"[$€£¥₹](?P<sign>[-−+])\Z")  # noqa: RUF001
_SIGN_CHARS = 4
_MOST_DIGITS = 40
_LEAST_RAW_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """A value a spelling can mean.

    Attributes:
        value: The value, without its sign.
        step: The value of the last digit shown.
    """

    value: float
    step: float


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Attributes:
        start: Offset of its first digit.
        end: Offset of its end, its unit included.
        digits_end: Offset of the end of its digits.
        sign: -1 or 1 as written, 0 where there is no sign.
        unit: Its unit as written; empty for none.
        readings: The values it can mean, the likeliest first.
        plain: Those of its digits alone.
        parts: Places of the numbers of which it may be a list, for example "1,2".
        is_integer: Whether it is spelled without separator, exponent and unit.
    """

    start: int
    end: int
    digits_end: int
    sign: int
    unit: str
    readings: tuple[Reading, ...]
    plain: tuple[Reading, ...]
    parts: tuple[tuple[int, int], ...] = ()
    is_integer: bool = False


def numbers_in(text: str, *, with_spaces: bool = True) -> Iterator[Number]:
    """Yield the numbers of a text, in order.

    Plain spaces may group digits `with_spaces`; in a printed table they separate columns.
    """
    at = 0
    while (match := _TOKENS[with_spaces].search(text, at)) is not None:
        number = _number(text, match)
        at = match.end() if number is None else max(number.end, match.end())
        if number is not None:
            yield number


def _number(text: str, match: re.Match[str]) -> Number | None:
    digits, start, end = match[0], match.start(), match.end()
    if len(digits) > _MOST_DIGITS:
        return None
    plain = _plain_readings(digits)
    power = _EXPONENT.match(text, end)
    if power is not None:
        end = power.end()
        plain = [_scaled(reading, float(f"1e{_power(power)}")) for reading in plain]
    plain = [reading for reading in plain if math.isfinite(reading.value)]
    unit, digits_end = "", end
    if suffix := SUFFIX.match(text, end):
        unit, end = suffix["unit"], suffix.end()
    found = tuple(r for r in _with_unit(plain, unit, digits) if math.isfinite(r.value))
    parts = _parts(digits, start)
    if not found and not parts:
        return None
    return Number(
        start=start,
        end=end,
        digits_end=digits_end,
        sign=_sign(text, start),
        unit=unit,
        readings=found,
        plain=tuple(plain) if found else (),
        parts=parts,
        is_integer=digits.isdigit() and power is None and not unit,
    )


def _power(match: re.Match[str]) -> int:
    text = match["e"] or match["ten"] or match["high"].translate(_HIGH)
    return int(text.replace("−", "-"))  # noqa: RUF001


def _sign(text: str, start: int) -> int:
    before = text[max(start - _SIGN_CHARS, 0) : start]
    match = _SIGN.search(before) or _SIGN_INSIDE.search(before)
    if match is None:
        return 0
    return 1 if match["sign"] == "+" else -1


def _scaled(reading: Reading, factor: float) -> Reading:
    return Reading(reading.value * factor, reading.step * factor)


def _with_unit(plain: list[Reading], unit: str, digits: str) -> list[Reading]:
    factors = scales(unit)
    if not factors:
        return plain
    scaled = [_scaled(reading, factor) for reading in plain for factor in factors]
    count = sum(char.isdigit() for char in digits.lstrip("0.,"))
    # "1.23 million" may stand in the outcome as 1.23; a bare digit proves nothing.
    is_shown_raw = factors[0] < 1 or is_ambiguous(unit) or "." in digits or "," in digits
    keep_raw = is_shown_raw or count >= _LEAST_RAW_DIGITS
    if factors[0] == PERCENT:
        return plain + scaled
    return scaled + (plain if keep_raw else [])


def _plain_readings(digits: str) -> list[Reading]:
    """Return the readings of digits with separators, without a unit."""
    separators = _SEPARATOR.findall(digits)
    if not separators:
        return [Reading(int(digits), 1)]
    kinds = list(dict.fromkeys(separators))
    if len(kinds) > 1:
        if len(kinds) > 2 or separators[-1] not in ".," or separators.count(separators[-1]) > 1:
            return []
        whole, fraction = _split_last(digits)
        return [_decimal(whole, fraction)] if _is_grouped(whole) else []
    mark = kinds[0]
    readings = []
    if mark in ".," and len(separators) == 1:
        whole, fraction = _split_last(digits)
        readings.append(_decimal(whole, fraction))
    if _is_grouped(digits):
        grouped = Reading(int(_SEPARATOR.sub("", digits)), 1)
        readings.insert(0 if mark != "." else len(readings), grouped)
    return readings


def _split_last(digits: str) -> tuple[str, str]:
    at = max(digits.rfind(char) for char in ".,")
    return digits[:at], digits[at + 1 :]


def _decimal(whole: str, fraction: str) -> Reading:
    number = f"{_SEPARATOR.sub('', whole) or '0'}.{fraction}"
    return Reading(float(number), 10.0 ** -len(fraction))


def _is_grouped(digits: str) -> bool:
    """Return whether separators stand where thousands are grouped, in the West or in India."""
    first, *rest = _SEPARATOR.split(digits)
    if not rest or not 1 <= len(first) <= 3 or first.startswith("0"):
        return False
    if all(len(group) == 3 for group in rest):
        return True
    return len(rest) > 1 and len(rest[-1]) == 3 and all(len(group) == 2 for group in rest[:-1])


def _parts(digits: str, start: int) -> tuple[tuple[int, int], ...]:
    """Return the places of the members of a text that may be a list of integers."""
    if set(_SEPARATOR.findall(digits)) != {","} or _is_grouped(digits):
        return ()
    found = re.finditer(r"\d+", digits)
    return tuple((start + match.start(), start + match.end()) for match in found)
