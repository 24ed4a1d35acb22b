"""The form of replies that is in force for a model."""

from __future__ import annotations

import pytest
from asking import api_at

from taskweaver.llm.providers.abilities import first_form

LOCAL = {
    "tools": "qwen3:4b gpt-oss:20b",
    "fences": "qwen2.5-coder:7b gemma3:27b phi4:14b llama3.1:8b deepseek-r1:14b mystery-7b",
}
REMOTE = "gpt-5.6 llama-3.3-70b-versatile mystery-7b"


def test_a_model_begins_with_the_form_it_keeps_best() -> None:
    for form, models in LOCAL.items():
        for model in models.split():
            assert first_form(model, is_local=True) == form, model
    for model in REMOTE.split():
        assert first_form(model, is_local=False) == "tools", model


def test_26_tools_that_are_ignored_twice_are_given_up_for_fences() -> None:
    with api_at("http://127.0.0.1:9/v1") as api:
        api.note_ignored_tools()
        assert api.form() == "tools"
        api.note_ignored_tools()
        assert api.form() == "fences"


@pytest.mark.parametrize("form", ["tools", "json", "fences"])
def test_the_configured_form_is_in_force(form: str) -> None:
    with api_at("http://127.0.0.1:9/v1", form=form) as api:
        assert api.form() == form
