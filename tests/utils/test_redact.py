"""Secrets are masked, and the rest is left as it is."""

from __future__ import annotations

import pytest

from taskweaver.utils.redact import MASK, Redactor, redact, redact_data, register_secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LLM_API_KEY=abcd1234efgh rest", f"LLM_API_KEY={MASK} rest"),
        ('{"llm.api_key": "hush hush", "a": 1}', f'{{"llm.api_key": "{MASK}", "a": 1}}'),
        (r"{\"api_key\": \"hushhush\"}", rf"{{\"api_key\": \"{MASK}\"}}"),
        ("{'x-api-key': 'abcdef'}", f"{{'x-api-key': '{MASK}'}}"),
        ("Authorization: Bearer abcdefghijklmnop", f"Authorization: Bearer {MASK}"),
        ("password: hunter22 and more", f"password: {MASK} and more"),
        ("DB_PASSWORD=swordfish", f"DB_PASSWORD={MASK}"),
        ("password = 'swordfish'", f"password = '{MASK}'"),
        ("got sk-proj-abcdefghijklmnopqrstuvwxyz", f"got {MASK}"),
        ("AKIAIOSFODNN7EXAMPLE1 is one", f"{MASK} is one"),
        ("https://me:pw1@host/x", f"https://me:{MASK}@host/x"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abcdefghijk", MASK),
    ],
)
def test_secrets_of_the_usual_shapes_are_masked(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=1024, total_token: 1234567",
        "api_key=None token: null",
        "the password is fine",
        "a task-aaaaaaaaaaaaaaaaaaaaaaaa",
        "secret=$FROM_ELSEWHERE",
        "monkey: banana-republic",
        "http://localhost:8080/v1",
        "Mean of Count per Region: North 3.5",
        "token = word.lower()",
        "last_token = token",
        "tokens = split(token=self.token, secret=load())",
        "token = tokens[0]",
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_a_registered_value_is_masked_wherever_it_stands() -> None:
    redactor = Redactor(["plain-words", "plain-words-longer"])
    assert redactor.redact("x plain-words-longer, plain-words") == f"x {MASK}, {MASK}"
    redactor.add("tiny")
    assert redactor.redact("a tiny thing") == "a tiny thing"


def test_the_shared_redactor_learns_values() -> None:
    register_secret("correct horse battery")
    assert redact("it is correct horse battery!") == f"it is {MASK}!"


def test_what_only_stands_for_a_key_is_not_masked_everywhere() -> None:
    redactor = Redactor(["ollama", "none", "not-needed"])
    assert redactor.redact("ollama runs, not-needed") == "ollama runs, not-needed"


def test_data_keeps_its_form_and_loses_its_secrets() -> None:
    shared = {"api_key": "hush-hush", "max_tokens": 12, "password": 12345678, "key": "Region"}
    data = {"one": shared, "two": [shared, "LLM_API_KEY=abcd1234"], "three": None}
    masked = redact_data(data)
    assert masked["one"] == {**shared, "api_key": MASK}
    assert masked["one"] is masked["two"][0]
    assert masked["two"][1] == f"LLM_API_KEY={MASK}"


@pytest.mark.parametrize(
    "piece", ["a", "api_", "password=", 'secret="', "://:", 'password="\\', "eyJ", "sk-", "a.b_"]
)
def test_hostile_text_comes_back(piece: str) -> None:
    text = piece * 100_000
    assert len(redact(text)) <= len(text)
