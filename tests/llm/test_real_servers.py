"""Questions to a real small model: behind llama.cpp's server, and a proxy of three protocols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from services import llama_server, needs_services, proxy

from taskweaver import TaskWeaverApp

pytestmark = [pytest.mark.long, needs_services]

ROUTES: dict[str, dict[str, Any]] = {
    "llama.cpp, tools": {"llm.api_type": "llamacpp", "llm.form": "tools"},
    "llama.cpp, JSON": {"llm.api_type": "llamacpp", "llm.form": "json"},
    "llama.cpp, fences": {"llm.api_type": "llamacpp", "llm.form": "fences"},
    "proxy, chat completions": {"llm.api_type": "openai", "llm.dialect": "chat"},
    "proxy, Responses": {"llm.api_type": "openai", "llm.dialect": "responses"},
    "proxy, messages": {"llm.api_type": "anthropic"},
}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with llama_server() as llama, proxy(llama, tmp_path_factory.mktemp("proxy")) as before:
        yield {"llama.cpp": llama, "proxy": before}


@pytest.mark.parametrize("route", ROUTES)
def test_a_question_to_a_small_model(route: str, addresses: dict[str, str], tmp_path: Path) -> None:
    address = addresses[route.partition(",")[0]]
    base = address if route == "proxy, messages" else f"{address}/v1"
    settings = {
        "llm.api_base": base, "llm.api_key": "none", "llm.model": "small", "llm.max_tokens": 80,
        "llm.temperature": 0.0,
    }  # fmt: skip
    (tmp_path / "taskweaver_config.json").write_text("{}")
    with TaskWeaverApp(str(tmp_path), config=settings | ROUTES[route]) as app:
        session = app.get_session()
        rounds = [session.send_message(text) for text in ("What is 2 + 2?", "And of 3 + 3?")]
    # A model of this size may keep no form: then the round says so, and the next one is played.
    for played in rounds:
        assert played.state == "finished" or "reply" in played.reason, played.reason
    assert session.usage.calls >= 2
    assert session.usage.prompt_tokens > 500
    assert not session.usage.is_estimated
