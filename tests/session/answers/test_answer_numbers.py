"""Figures of an answer are found however they are written, and a wrong digit is seen."""

# ruff: noqa: RUF001

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.session.answers.check import verify
from taskweaver.session.answers.claims import MAX_CHARS, claims_in
from taskweaver.session.answers.outcomes import SupportingText


def unsupported(answer: str, *outcomes: str) -> list[str]:
    sources = [
        SupportingText("post", number, "Result", text) for number, text in enumerate(outcomes, 1)
    ]
    return list(verify(answer, sources).unsupported_numbers)


SUPPORTED = [
    ("The mean is 57.1.", "57.13"), ("The mean is about 57.", "57.13"),
    ("The share is 57.1 %.", "0.5713"), ("The share is 57.1%.", "share    57.13"),
    ("57 percent of them", "0.571"), ("a share of 0.571", "57.13%"),
    ("about 1.2 million people", "1234567"),
    ("1.2M people, 1.23 Mio., 1,235 thousand, 1.235k k", "1234567 and 1.2349 and 1235.1"),
    ("$1.23 million in revenue", "1234567.8"), ("€1.234.567,89 in total", "1234567.89"),
    ("1 234 567 rows, 1'234'567 rows, 1\u202f234\u202f567 rows, 1_234_567 rows", "1234567"),
    ("12,34,567 rupees", "1234567"), ("3.2e-08, 3.2×10^-8, 3.2 x 10⁻⁸", "3.2e-08"),
    ("It fell by 5.2 %.", "change   -0.052"),
    ("It changed by −5.2 %, that is -5.2%.", "change   -0.052"), ("It rose by +5.2%.", "0.0521"),
    ("between 9,000 and 10,500", "8947.12\n10504.72"),
    ("from about 9,000 to 10,500 a month", "8947.12\n10504.72"), ("more than 1,200 orders", "1234"),
    ("nearly 1,300 and under 1,300", "1280"), ("1.5 MiB, or 1.57 MB", "1572864"),
    ("The range is 12–15 and 12-15.", "12\n15"),
    ("| Region | Share (%) |\n|---|---|\n| North | 57.1 |", "North 0.5713"),
    ("| Region | Revenue ($M) |\n|---|---:|\n| North | 42.6 |", "North 42588060.0"),
    ("All amounts are in thousands: North 42,588.1", "42588060.0"),
    ("The table has 3,000 rows and 18 columns.", "DataFrame 3000x18: Date"),
    ('**57.1**, `57.1`, (57.1), "57.1", 57.1°C, 57.1x, 57.1', "57.13"),
    ("12,15 and [12, 15], (12,15)", "12\n15"), ("2024 orders came in", "2024 x"),
    ("the first value is .05", "0.05"), ("0.3 s", "0.30000000000000004"),
    ("平均值为57.13，共有3,000行，占比12.5%，1.2万人，2024年12月15日", "57.13\n3000\n0.125\n12034"),
    ("2-3.5x and 12-15", "3.5\n12\n15\n2"), ("rund 9.000 und über 10.400", "8947.12\n10477.5"),
    ("57.1 - 63.2, 57.1 ± 2.3, 57.1 +/- 2.3\n- 57.1", "57.13\n63.2\n2.31"),
    ("10-15 % and 10 to 15%", "0.1\n0.15"), ("over 50% and over 50 of them", "0.57\n51"),
    ("nearly 60%", "0.57"), ("$1.2M-$1.5M", "1200100\n1499000"),
    ('`mean = 57.1` and ```json\n{"mean": 57.1}\n```', "57.13"),
    ("id 12345678901234567890", "12345678901234567890"),
    ("```\nNorth 57.13\n```", "North    57.13"),
    ("| GDP (bn USD) | Debt (USD, m) |\n|---|---|\n| 27,361 | 12.5 |", "27360935000000 12500012"),
    ("1,5 Millionen, 1,5 milliards d'euros", "1500000 1500000000"),
    ("All numbers in percent: 57.1", "0.571"), ("a share of 57.1\\%", "0.571"),
    ("_57.1_ and __57.1__", "57.13"), ("It fell from 57 to 1.", "57 1"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "outcome"), SUPPORTED)
def test_a_number_of_an_outcome_is_found(answer: str, outcome: str) -> None:
    assert claims_in(answer)
    assert unsupported(answer, outcome) == []


UNSUPPORTED = [
    ("The mean is 57.2.", "57.13", ["57.2"]), ("The share is 58 %.", "0.5713", ["58 %"]),
    ("about 1.3 million", "1234567", ["1.3 million"]), ("It has 3,001 rows.", "3000", ["3,001"]),
    ("It has 4711 rows.", "3000", ["4711"]), ("It has 3,000 rows.", "2956", ["3,000"]),
    ("$42,588.07", "42588.06", ["$42,588.07"]), ("It changed by −5.2 %.", "0.052", ["−5.2 %"]),
    ("42588.0612", "42588.06", ["42588.0612"]), ("more than 1,300 orders", "1234", ["1,300"]),
    ("5 million people", "5", ["5 million"]), ("1,234 orders", "1 234", ["1,234"]),
    ("12345678901234567891", "12345678901234567890", ["12345678901234567891"]),
    ("```\nNorth 57.14\n```", "North    57.13", ["57.14"]), ("the answer is 7", "9", ["7"]),
    ("57.1 and again 57.1, then 99.5", "12", ["57.1", "99.5"]), ("It was `99.5`", "12", ["99.5"]),
    ("It was `mean = 99.5`", "12", ["99.5"]), ('```json\n{"mean": 99.5}\n```', "12", ["99.5"]),
    ("about 50%", "0.57", ["50%"]), ("57.1 - 99.5", "57.1", ["99.5"]),
    ("平均值为57.23。", "57.13", ["57.23"]), ("57.1-99.5", "57.1", ["99.5"]),
    ("awesome 3000 and 12 of 1950 customers", "2956 12", ["3000", "1950"]),
    ("57.1±99.5, ×99.6", "57.1", ["99.5", "99.6"]),
    ("1.5e999 and 1.5e300 and 2e-999 and about 0e999", "1e999 0", ["1.5e300"]),
    ("2024 orders came in", "12", ["2024"]),
    ("In North the total is 5,713 in 2023, up 12%.", "57.13 0.12", ["5,713"]),
    ("the last 57.1, next 57.1% and Figure 57.1%", "12", ["57.1", "57.1%"]),
    ("_4711_ and __4712__", "12", ["4711", "4712"]),
    ("p = 0.05 and p = 0.01", "0.31", ["0.05", "0.01"]),
    ("Mar 57% and below 0.3", "12", ["57%", "0.3"]),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "outcome", "expected"), UNSUPPORTED)
def test_a_number_of_no_outcome_is_named(answer: str, outcome: str, expected: list[str]) -> None:
    assert unsupported(answer, outcome) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "On 2024-09-07 at 12:30, on 7 September 2024, on June 5, 2024, 07/09/2024 and 31.12.2024",
        "In 2024 and 2025, since 2019, Q2 2024, FY24, the 1990s, between 2019 and 2021, (2023)",
        "1. first\n2. second\n10) tenth\n- 3. third\n\n## 3.1 Method\n### 4. Results",
        "See step 12, section 3.2, Table 14, Figure 2, option 15, #4711, the 21st and the 95th",
        "`df.head(20)` and `f(x, 4711)`\n```python\nx = 4711\n```\n~~~sql\nLIMIT 4711\n~~~",
        "The chart is in mean_2024_17.png, data/17/x.csv, plot17.svg, https://x.org/4711?a=17",
        "x17, col_17, v17.3, Python 3.11, pandas 2.1.3, 192.168.17.1, H2O, 3D, deadbeef17",
        "the top 20, the first 15 rows, a 12-month mean, a 95% confidence interval",
        "p < 0.05, p<0.001, 100 % of them, 3 groups, 5 products, two of 7 regions",
        "| # | Region |\n|---|---|\n| 11 | North |\n| 12 | South |",
        "an 80/20 split, COVID-19, pre-2020, GPT-4, R^2, 3/4 of them, 24/7",
        "Session 20260102-101500-1a2b3c4d and <b>bold</b>",
        "The order ORD-2024-00123 at 10.0.0.17:8080 (UTC+2) in ISO 8601 [2], [12].",
        "per 1,000 inhabitants, per 100,000, 4 out of 5, 9/10, 3 to 1, over 12 months of 24 hours",
        "a 30 day window, the past 90 days, an 80% / 20% split",
        "Q3'24, FY2023/24, 03/2022, summer of '69, May '24",
        "am 12. März, vom 01.01. bis 31.12., im 3. Quartal, le 12 août, au 1er trimestre",
        "not significant at the 5% level, below the 0.05 threshold, alpha of 0.05, 95% confident",
        "4_843\u00a08240 orders",
    ],
)
def test_digits_that_are_no_figures_are_left_alone(answer: str) -> None:
    assert [claim.text for claim in claims_in(answer)] == []


def grouped(value: float, places: int, mark: str, point: str = ".") -> str:
    """Write a number above 0 with a mark between thousands."""
    return f"{value:,.{places}f}".translate({ord(","): mark, ord("."): point})


STYLES = {
    "plain": lambda value, places: f"{value:.{places}f}",
    "thousands": lambda value, places: f"{value:,.{places}f}",
    "points": lambda value, places: grouped(value, places, ".", ","),
    "spaces": lambda value, places: grouped(value, places, " "),
    "thin": lambda value, places: grouped(value, places, "\u202f"),
    "apostrophes": lambda value, places: grouped(value, places, "'"),
    "scientific": lambda value, places: f"{value:.{places + 1}e}",
    "percent": lambda value, places: f"{value * 100:.{places + 1}f} %",
    "millions": lambda value, places: f"{value / 1e6:.{places + 2}f} million",
    "short": lambda value, places: f"{value / 1e3:.{places + 1}f}k",
    "euro": lambda value, places: f"€{value:,.{places}f}",
    "dollar": lambda value, places: f"${value:,.{places}f}",
    "span": lambda value, places: f"`{value:.{places}f}`",
    "bold": lambda value, places: f"**{value:,.{places}f}**",
}
FRAMES = ["The mean is {}.", "{}", "It was {}, as expected.", "| mean | {} |", "({})", "- mean: {}"]
VALUES = st.floats(11, 9e8).map(lambda value: round(value, 6))


@settings(max_examples=examples(20))
@given(VALUES, st.integers(1, 4), st.sampled_from(sorted(STYLES)), st.sampled_from(FRAMES))
def test_a_value_is_found_in_every_style(value: float, places: int, style: str, frame: str) -> None:
    shown = STYLES[style](value, places)
    answer = frame.replace("{}", shown)
    assert claims_in(answer), answer
    assert unsupported(answer, f"a  {value!r}\nb  -1") == [], answer


@settings(max_examples=examples(20))
@given(VALUES, st.integers(1, 4), st.sampled_from(sorted(STYLES)), st.data())
def test_a_changed_digit_is_seen(
    value: float, places: int, style: str, data: st.DataObject
) -> None:
    shown = STYLES[style](value, places)
    digits_end = shown.find("e") if style == "scientific" else len(shown)
    places_of_digits = [at for at, char in enumerate(shown[:digits_end]) if char.isdigit()]
    at = data.draw(st.sampled_from(places_of_digits))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != shown[at]]))
    changed = f"{shown[:at]}{digit}{shown[at + 1 :]}"
    # The last digit may have been rounded from a tie, which both neighbours show.
    assume(at != places_of_digits[-1] or abs(int(digit) - int(shown[at])) > 1)
    assume(changed[places_of_digits[0]] != "0" and len(places_of_digits) <= 14)
    assert unsupported(f"The mean is {changed}.", f"mean  {value!r}") != [], changed


@settings(max_examples=examples(20))
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_checked(answer: str, outcome: str) -> None:
    unsupported(answer, outcome)


@pytest.mark.parametrize(
    "piece",
    ["1,", "1 234 ", "1.", "a_", "/a", "`", "```\n", "|", "( ", "$", "#1 ", "<a ", "999,999,999,",
     "2024-", "about ", "Q1 ",
     *(pytest.param(piece, marks=pytest.mark.long) for piece in ("1-", "1e", "a-", "p < 0.0"))],
)  # fmt: skip
def test_hostile_text_is_read_in_linear_time(piece: str) -> None:
    """Quadratic work on this much text would run into the time limit of a test."""
    claims_in(piece * (MAX_CHARS // len(piece)))


def conversations() -> list[str]:
    text = (Path(__file__).parent / "conversations.md").read_text("utf-8")
    return [part.partition("````")[0] for part in text.split("````text\n")[1:]]


@pytest.mark.parametrize("conversation", conversations())
def test_real_answers_give_no_alarm(conversation: str) -> None:
    """The last unindented part of each transcript is its answer, what is indented its outcomes."""
    steps = conversation.splitlines()
    last = max(at for at, line in enumerate(steps) if line.startswith(("  ", "file: ")))
    answer = "\n".join(steps[last + 1 :]).rpartition("\n(")[0]
    outcomes = "\n".join(steps[: last + 1])
    assert claims_in(answer)
    assert unsupported(answer, outcomes) == []
    spoiled = answer.replace("3", "5").replace("7", "8").replace("4", "9")
    assert unsupported(spoiled, outcomes) != []
