"""Spans of whole conversations and searches, counted against what happened in them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import DONE, Call, event, serving
from rounds import add_plugin
from search_lab import Climber, lab, search
from support import Script, code_reply, make_project, planner_reply
from traces import Recorded

from taskweaver.app.app import TaskWeaverApp
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.utils.redact import MASK

pytestmark = pytest.mark.usefixtures("no_states")

ON: dict[str, Any] = {"tracing.enabled": True}
SERVER = str(Path(__file__).parents[1] / "mcp_" / "hostile_server.py")
DOUBLE = '''
def double(x: int) -> int:
    """Double a number."""
    if x < 0:
        raise ValueError("never below zero")
    return 2 * x
'''
USAGE = {
    "prompt_tokens": 11, "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2},
}  # fmt: skip


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(monkeypatch)


def project(folder: Path, **config: Any) -> Path:
    made = make_project(folder / "p", ON | config, has_table=False)
    add_plugin(made, "double", DOUBLE)
    return made


def converse(made: Path, replies: list[str], **config: Any) -> None:
    with TaskWeaverApp(made, model=Script(replies), config=config) as app:
        assert app.warnings == []
        app.get_session().send_message("what is twice four?")


def attributes(recorded: Recorded, name: str) -> dict[str, Any]:
    return dict(recorded.named(name).attributes or {})


def test_a_round_is_a_tree_of_roles_calls_cells_plugins_and_tools(
    tmp_path: Path, recorded: Recorded
) -> None:
    pytest.importorskip("mcp")
    replies = [
        planner_reply("CodeInterpreter", "do it"),
        code_reply("double(-1)"),
        code_reply("double(double(1)), ex_act(x=3)"),
        planner_reply("User", "4"),
    ]
    servers = {"ex": {"command": sys.executable, "args": [SERVER, "plain"], "confirm": "never"}}
    converse(project(tmp_path), replies, **{"mcp.servers": servers})
    chat, planner = "chat function/Script", "invoke_agent Planner"
    coder = "invoke_agent CodeInterpreter"
    round_, cell, plugin = "invoke_workflow round", "execute_tool python", "execute_tool double"
    mine = [pair for pair in recorded.tree() if not pair[0].startswith("MCP send")]
    turn = [(chat, coder), (cell, coder), (coder, round_)]
    planners = [(planner, round_), (chat, planner)] * 2
    calls = [(plugin, cell)] * 3 + [("tools/call act", cell)]
    assert sorted(mine) == sorted([(round_, ""), *planners, *turn * 2, *calls])
    workflow = attributes(recorded, round_)
    assert workflow["gen_ai.operation.name"] == "invoke_workflow"
    assert workflow["taskweaver.branch"] == "main"
    mine_spans = [span for span in recorded.spans if not span.name.startswith("MCP send")]
    conversations = {
        span.attributes["gen_ai.conversation.id"] for span in mine_spans if span.name != plugin
    }
    assert conversations == {workflow["gen_ai.conversation.id"]}
    failed, worked = [span for span in recorded.spans if span.name == cell]
    assert failed.attributes["error.type"] == "ValueError"
    assert failed.status.status_code.name == "ERROR"
    assert "error.type" not in worked.attributes
    assert worked.attributes["gen_ai.tool.type"] == "extension"
    plugins = [span for span in recorded.spans if span.name == plugin]
    assert [span.attributes.get("error.type") for span in plugins] == ["ValueError", None, None]
    for span in plugins[1:]:
        assert worked.start_time <= span.start_time <= span.end_time <= worked.end_time
    tool = attributes(recorded, "tools/call act")
    assert tool["mcp.method.name"] == "tools/call"
    assert tool["gen_ai.operation.name"] == "execute_tool"
    assert (tool["gen_ai.tool.name"], tool["network.transport"]) == ("act", "pipe")
    assert {name: sum(count for _, count, _ in points) for name, points in
            recorded.metrics().items()} == {
        "gen_ai.client.operation.duration": 4,
        "gen_ai.client.operation.time_to_first_chunk": 4,
        "gen_ai.invoke_agent.duration": 4,
        "gen_ai.execute_tool.duration": 6,
        "gen_ai.workflow.duration": 1,
    }  # a model in this process reports no tokens  # fmt: skip


def test_a_model_call_says_who_answered_and_what_it_took(
    tmp_path: Path, recorded: Recorded
) -> None:
    def play(call: Call) -> None:
        text = planner_reply("User", "eight")
        usage = b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"
        call.stream([event(text, model="m-2026"), event(finish="stop"), usage, DONE])

    with serving(play) as endpoint:
        keys = {"llm.api_base": endpoint.url, "llm.model": "m", "llm.api_key": "k"}
        with TaskWeaverApp(project(tmp_path, **keys)) as app:
            assert app.get_session().send_message("hi").state == "finished"
    found = attributes(recorded, "chat m")
    assert recorded.named("chat m").kind.name == "CLIENT"
    wanted = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
        "gen_ai.agent.name": "Planner", "gen_ai.request.model": "m",
        "gen_ai.request.stream": True, "gen_ai.output.type": "text",
        "gen_ai.response.model": "m-2026", "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 8, "gen_ai.usage.reasoning.output_tokens": 2,
        "server.address": "127.0.0.1",
    }  # fmt: skip
    assert {name: found.get(name) for name in wanted} == wanted
    assert found["server.port"] == int(endpoint.url.rpartition(":")[2].partition("/")[0])
    tokens = recorded.metrics()["gen_ai.client.token.usage"]
    assert {a["gen_ai.token.type"]: total for a, _, total in tokens} == {"input": 11, "output": 3}


REPLIES = [
    planner_reply("CodeInterpreter", "confidential plan"),
    code_reply("print('confidential result api_key=abcdefgh1234')\nx = {}\nx['confidential']"),
    code_reply("1"),
    planner_reply("User", "confidential answer"),
]


@pytest.mark.parametrize("is_asked", [False, True])
def test_contents_are_recorded_when_asked_for_and_masked(
    tmp_path: Path, recorded: Recorded, is_asked: bool
) -> None:
    converse(project(tmp_path), REPLIES, **{"tracing.contents": is_asked})
    text = recorded.all_text()
    assert ("twice four" in text) is is_asked
    assert ("confidential" in text) is is_asked
    assert "abcdefgh1234" not in text
    if not is_asked:
        return
    assert MASK in text
    call = next(span for span in recorded.spans if span.name.startswith("chat"))
    (first, *_) = json.loads(call.attributes["gen_ai.input.messages"])
    assert first["role"] == "system"
    (reply,) = json.loads(call.attributes["gen_ai.output.messages"])
    assert reply["finish_reason"] == "stop"
    assert "confidential plan" in reply["parts"][0]["content"]
    cell = next(span for span in recorded.spans if span.name == "execute_tool python")
    assert "x['confidential']" in json.loads(cell.attributes["gen_ai.tool.call.arguments"])["code"]
    assert "confidential result" in cell.attributes["gen_ai.tool.call.result"]
    round_ = attributes(recorded, "invoke_workflow round")
    assert "confidential answer" in round_["gen_ai.output.messages"]


def test_the_work_on_each_node_is_a_trace_linked_to_its_parents(
    tmp_path: Path, recorded: Recorded
) -> None:
    made = search(
        lab(tmp_path, **ON), Climber(), stage1_nodes=1, stage2_nodes=1, stage3_nodes=1,
        stage4_nodes=1, workers=2,
    )  # fmt: skip
    nodes = [span for span in recorded.spans if span.name == "invoke_workflow search_node"]
    by_id = {span.attributes["taskweaver.search.node"]: span for span in nodes}
    journal = made.state.journal.nodes
    assert sorted(by_id) == sorted(node.id for node in journal)
    assert len({span.context.trace_id for span in nodes}) == len(journal)
    for node in journal:
        span = by_id[node.id]
        assert span.parent is None
        assert span.attributes["taskweaver.search.status"] == node.status.value
        linked = [link.context.span_id for link in span.links]
        assert linked == ([by_id[node.parent].context.span_id] if node.parent else [])
    replies = [span for span in recorded.spans if span.name.startswith("invoke_agent")]
    own = {span.context.span_id: Counter[str]() for span in nodes}
    for span in replies:
        own[span.parent.span_id][span.name] += 1
    assert all(
        count == {"invoke_agent Planner": 2, "invoke_agent CodeInterpreter": 1}
        for count in own.values()
    )
    calls = [span for span in recorded.spans if span.name.startswith("chat")]
    of_nodes = [span for span in calls if span.parent is not None]
    assert len(of_nodes) >= sum(node.kind is not NodeKind.SEED for node in journal)
    traces = {span.context.trace_id for span in nodes}
    assert {span.context.trace_id for span in of_nodes} <= traces
