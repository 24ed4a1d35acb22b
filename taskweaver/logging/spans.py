"""Names and attributes of spans, from OpenTelemetry's conventions for generative AI.

The conventions are those of the repository ``open-telemetry/semantic-conventions-genai`` in
autumn 2026; attributes that they do not have begin with ``taskweaver.``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Value = str | bool | int | float | Sequence[str]
Kind = Literal["internal", "client"]

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
TOOL = "gen_ai.tool.name"
TOKEN_TYPE = "gen_ai.token.type"
WORKFLOW = "gen_ai.workflow.name"
ERROR = "error.type"

ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"

CLIENT_DURATION = "gen_ai.client.operation.duration"
FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
TOKENS = "gen_ai.client.token.usage"
TOOL_DURATION = "gen_ai.execute_tool.duration"
AGENT_DURATION = "gen_ai.invoke_agent.duration"
WORKFLOW_DURATION = "gen_ai.workflow.duration"

_DOUBLING_S = tuple(0.01 * 2**n for n in range(14))


@dataclass(frozen=True, slots=True)
class Histogram:
    """A metric.

    Attributes:
        unit: Its unit, in UCUM.
        about: The quantity it measures.
        bounds: Upper bounds of its buckets.
        keys: Attributes of a span that its points carry.
    """

    unit: str
    about: str
    bounds: tuple[float, ...]
    keys: frozenset[str]


_CLIENT_KEYS = frozenset(
    {OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL, "server.address", "server.port"}
)
HISTOGRAMS: dict[str, Histogram] = {
    CLIENT_DURATION: Histogram(
        "s", "Duration of a model call.", _DOUBLING_S, _CLIENT_KEYS | {ERROR}
    ),
    FIRST_CHUNK: Histogram("s", "Time until a model's reply begins.", _DOUBLING_S, _CLIENT_KEYS),
    TOKENS: Histogram(
        "{token}",
        "Tokens read and written by a model.",
        tuple(4.0**n for n in range(14)),
        _CLIENT_KEYS | {TOKEN_TYPE},
    ),
    TOOL_DURATION: Histogram(
        "s", "Duration of a cell, a plugin or a tool.", _DOUBLING_S, frozenset({TOOL, AGENT, ERROR})
    ),
    AGENT_DURATION: Histogram(
        "s",
        "Duration of a role's reply.",
        tuple(0.1 * 2**n for n in range(13)),
        frozenset({AGENT, ERROR}),
    ),
    WORKFLOW_DURATION: Histogram(
        "s",
        "Duration of a round or of the work on a node.",
        (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200),
        frozenset({WORKFLOW, ERROR}),
    ),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that a span stands for.

    Attributes:
        attributes: Facts known at its beginning.
        kind: ``client`` for a call of another process.
        metric: Histogram of its duration; empty for none.
        links: Contexts of spans that it follows from.
        is_root: Whether it begins a trace of its own.
    """

    name: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    kind: Kind = "internal"
    metric: str = ""
    links: Sequence[Any] = ()
    is_root: bool = False


class Span:
    """An operation under way. This one records nothing.

    Attributes:
        context: Reference for links of other spans; None when nothing is recorded.
    """

    context: Any = None

    def set(self, key: str, value: Value) -> None:
        """Set an attribute."""

    def content(self, key: str, make: Callable[[], str]) -> None:
        """Set an attribute to the prompt, reply or code of `make`, if contents are recorded."""

    def measure(self, histogram: str, value: float, extra: Mapping[str, Value]) -> None:
        """Add a point to a histogram, with the fitting attributes of the span."""

    def child(self, operation: Operation, began_s: float, duration_s: float, error: str) -> None:
        """Record an operation that is over and began some seconds after this span.

        `error` is the type of the error it ended with; empty for none.
        """

    def fail(self, error: str, message: str = "") -> None:
        """Note that the operation failed. `error` is one of few types.

        The message, for a person, is recorded where contents are.
        """

    def end(self) -> None:
        """End the operation."""


def workflow(
    name: str, attributes: Mapping[str, Value], *, links: Sequence[Any] = (), is_root: bool = False
) -> Operation:
    """Return the operation of a round, or of the work on a node of a search."""
    known: dict[str, Value] = {OPERATION: "invoke_workflow", WORKFLOW: name}
    return Operation(
        f"invoke_workflow {name}",
        known | dict(attributes),
        metric=WORKFLOW_DURATION,
        links=links,
        is_root=is_root,
    )


def agent(name: str) -> Operation:
    """Return the operation of a role's reply."""
    known: dict[str, Value] = {OPERATION: "invoke_agent", AGENT: name}
    return Operation(f"invoke_agent {name}", known, metric=AGENT_DURATION)


def model_call(operation: str, model: str, attributes: Mapping[str, Value]) -> Operation:
    """Return the operation of a model call. `operation` is ``chat`` or ``embeddings``."""
    known: dict[str, Value] = {OPERATION: operation, REQUEST_MODEL: model}
    return Operation(
        f"{operation} {model}", known | dict(attributes), kind="client", metric=CLIENT_DURATION
    )


def tool(name: str, kind: str, attributes: Mapping[str, Value] | None = None) -> Operation:
    """Return the operation of a cell (``python``) or of a plugin. `kind` is the tool's type."""
    known: dict[str, Value] = {OPERATION: "execute_tool", TOOL: name, "gen_ai.tool.type": kind}
    return Operation(f"execute_tool {name}", known | dict(attributes or {}), metric=TOOL_DURATION)


def mcp_call(name: str, attributes: Mapping[str, Value]) -> Operation:
    """Return the operation of a call of an MCP server's tool."""
    known: dict[str, Value] = {
        OPERATION: "execute_tool",
        TOOL: name,
        "gen_ai.tool.type": "extension",
        "mcp.method.name": "tools/call",
    }
    return Operation(
        f"tools/call {name}", known | dict(attributes), kind="client", metric=TOOL_DURATION
    )
