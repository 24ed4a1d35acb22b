"""Effort of reasoning: configured or asked for, and refused."""

from __future__ import annotations

from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from scripted_server import RUN

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage

HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]
USUAL = {"llm.model": "m1", "llm.api_key": "k1", "llm.max_retries": 0}


class Picky:
    """An endpoint that takes some efforts; `words` is its refusal of others."""

    def __init__(self, words: str, *taken: str | None, param: str = "") -> None:
        self.words, self.taken, self.param = words, taken, param

    def __call__(self, call: Call) -> None:
        """Answer a request."""
        effort = call.body.get("reasoning_effort")
        if effort in self.taken:
            call.stream(good("yes"))
        else:
            more = {"param": self.param} if self.param else {}
            call.refuse(400, self.words.replace("EFFORT", str(effort)), **more)


def efforts(play: Any, keys: dict[str, Any], *hows: dict[str, Any]) -> list[str | None]:
    """Ask as configured, once for each of `hows`; return the efforts of the requests."""
    with serving(play) as endpoint:
        source = AppConfigSource(None, USUAL | {"llm.api_base": endpoint.url} | keys)
        with ModelServices(source) as services:
            api = LLMApi(services)
            for how in hows or ({},):
                list(api.stream_chunks(HELLO, **how))
        calls = [call for call in endpoint.calls if call.path.endswith("/chat/completions")]
        return [call.body.get("reasoning_effort") for call in calls]


def answer(call: Call) -> None:
    call.stream(good("yes"))


def test_nothing_is_sent_unless_it_is_wanted() -> None:
    assert efforts(answer, {}) == [None]
    assert efforts(answer, {"llm.reasoning_effort": "none"}) == ["none"]


def test_a_request_goes_before_the_configuration() -> None:
    asked = {"reasoning_effort": "high"}
    assert efforts(answer, {"llm.reasoning_effort": "low"}, {}, asked) == ["low", "high"]


def test_an_alias_has_its_own() -> None:
    own = {"deep": {"llm.reasoning_effort": "xhigh"}, "plain": {"llm.reasoning_effort": "auto"}}
    keys = {"llm.reasoning_effort": "low", "ext_llms.llm_configs": own}

    seen = efforts(answer, keys, {}, {"llm_alias": "deep"}, {"llm_alias": "plain"})

    assert seen == ["low", "xhigh", None]


def test_an_unknown_word_is_refused_at_start() -> None:
    with pytest.raises(ConfigError, match="reasoning_effort"):
        efforts(answer, {"llm.reasoning_effort": "huge"})


OPENAI = (
    "Unsupported value: 'reasoning_effort' does not support 'EFFORT' with this model."
    " Supported values are: 'low', 'medium', and 'high'."
)


@pytest.mark.parametrize(("wanted", "sent"), [("xhigh", "high"), ("minimal", "low")])
def test_a_refused_effort_becomes_the_nearest_and_that_is_remembered(
    wanted: str, sent: str
) -> None:
    play = Picky(OPENAI, "low", "medium", "high", param="reasoning_effort")

    assert efforts(play, {"llm.reasoning_effort": wanted}, {}, {}) == [wanted, sent, sent]


@pytest.mark.parametrize(
    "words",
    [
        "Unrecognized request argument supplied: reasoning_effort",
        "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
        '"m1" does not support thinking',
        "invalid reasoning value: 'EFFORT'",
        "`reasoning_effort` must be one of `none` or `default`",
    ],
)
def test_a_refused_parameter_is_left_out(words: str) -> None:
    play = Picky(words, None)

    assert efforts(play, {"llm.reasoning_effort": "high"}, {}, {}) == ["high", None, None]


def test_without_reasoning_is_no_substitute() -> None:
    words = """invalid think value: "EFFORT" (must be "high", "medium", "low", "none")"""

    seen = efforts(Picky(words, None, "low"), {"llm.reasoning_effort": "xhigh"})

    assert seen == ["xhigh", "high", "medium", "low"]


def test_another_refusal_leaves_the_effort() -> None:
    play = Picky("The `reasoning_content` in the thinking mode must be passed back to the API")

    with pytest.raises(ModelError, match="passed back"):
        efforts(play, {"llm.reasoning_effort": "high"})


def test_34_tools_are_asked_for_without_reasoning_and_the_rest_with_it() -> None:
    words = "Function tools with reasoning_effort are not supported for m1 in /v1/chat/completions."

    def play(call: Call) -> None:
        if call.path.endswith("/responses"):
            call.answer(404, "no such page")
        elif "tools" in call.body and call.body.get("reasoning_effort") != "none":
            call.refuse(400, words)
        else:
            call.stream(good("yes"))

    keys = {"llm.reasoning_effort": "high", "llm.form": "tools"}
    seen = efforts(play, keys, {"tools": [RUN]}, {}, {"tools": [RUN]})

    assert seen == ["high", "high", "none", "high", "none"]  # Responses were tried in between
