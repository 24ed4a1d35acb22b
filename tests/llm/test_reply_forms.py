"""The form of replies that is in force for a model."""

from __future__ import annotations

import pytest
from test_llm_api import api_at

from taskweaver.llm.providers.abilities import first_form


@pytest.mark.parametrize(
    ("model", "is_local", "form"),
    [
        ("gpt-5.6", False, "tools"),
        ("qwen2.5-coder:7b", True, "fences"),
        ("qwen3:4b", True, "tools"),
        ("gpt-oss:20b", True, "tools"),
        ("gemma3:27b", True, "fences"),
        ("phi4:14b", True, "fences"),
        ("llama-3.3-70b-versatile", False, "tools"),
        ("llama3.1:8b", True, "fences"),
        ("deepseek-r1:14b", True, "fences"),
        ("mystery-7b", True, "fences"),
        ("mystery-7b", False, "tools"),
    ],
)
def test_a_model_begins_with_the_form_it_keeps_best(model: str, is_local: bool, form: str) -> None:
    assert first_form(model, is_local=is_local) == form


def test_26_tools_that_are_ignored_twice_are_given_up_for_fences() -> None:
    api = api_at("http://127.0.0.1:9/v1")

    api.note_ignored_tools()
    assert api.form() == "tools"

    api.note_ignored_tools()
    assert api.form() == "fences"


@pytest.mark.parametrize("form", ["tools", "json", "fences"])
def test_the_configured_form_is_in_force(form: str) -> None:
    api = api_at("http://127.0.0.1:9/v1", **{"form": form})

    assert api.form() == form
