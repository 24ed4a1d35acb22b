"""Arbitrary requests: always an outcome, and no word of a condition is left unread."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from reading_worlds import ALL, FLIGHTS, ODD, outcome_of, replies, world
from sizes import examples, some

from taskweaver.analyst.readings import NeedsLook, NotUnderstood, Unclear, Understood

_WORDS = st.sampled_from(
    "mean total of the dep_delay distance carrier Delta United JFK not or and except without per "
    "by which highest second top 5 2023 20% in since between before more less than over last "
    "months share difference plot bar how many flights rows is are ( ) + / , ? ' \" count topic "
    "age é 売上".split()
)
_CRITICAL = ("not", "except", "without", "neither", "before", "since", "over", "42", "17%", "or")
_SETTINGS = settings(max_examples=examples(len(some(range(60), 25))))


@_SETTINGS
@given(st.text(max_size=80))
def test_any_text_has_an_outcome(text: str) -> None:
    outcome = outcome_of(text, *ALL)
    assert isinstance(outcome, Understood | Unclear | NotUnderstood | NeedsLook)


@_SETTINGS
@given(st.lists(_WORDS, max_size=14).map(" ".join), st.lists(_WORDS, max_size=5).map(" ".join))
def test_any_words_have_an_outcome_also_as_a_second_request(first: str, second: str) -> None:
    for outcome in replies(world(FLIGHTS, ODD), first, second):
        assert isinstance(outcome, Understood | Unclear | NotUnderstood | NeedsLook)


@_SETTINGS
@given(
    st.sampled_from(["mean dep_delay per carrier", "how many flights are there", "max distance"]),
    st.sampled_from(_CRITICAL),
    st.integers(0, 6),
)
def test_a_loose_word_of_a_condition_is_never_left_unused(text: str, word: str, at: int) -> None:
    words = text.split()
    words.insert(min(at, len(words)), word)
    outcome = outcome_of(" ".join(words), FLIGHTS)
    if isinstance(outcome, Understood):
        assert word not in outcome.unused
        assert outcome.reading != getattr(outcome_of(text, FLIGHTS), "reading", None)
