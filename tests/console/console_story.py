"""A round told as events, as a session tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.event_emitter import (
    EventScope,
    PostEventType,
    RoundEventType,
    TaskWeaverEvent,
)

PLAN = "1. load sales.csv and show its columns\n2. mean of Count per month, and a plot"
CODE = "import pandas as pd\n\ndf = pd.read_csv('sales.csv')\ndf.groupby('month').Count.mean()"
REPORT = """### Execution
The code ran to its end.

### Result
```
month
1    12.5
2    13.1
Name: Count, dtype: float64
```

### Output
```
loading 2400 rows
```

### Artifacts
- chart: mean_per_month.png
"""
ANSWER = """The mean of **Count** per month:

| month | mean |
| --- | --- |
| 1 | 12.5 |
| 2 | 13.1 |"""


def post(t: PostEventType, msg: str = "", **extra: Any) -> TaskWeaverEvent:
    return TaskWeaverEvent(EventScope.post, t, "round-1", "post-1", msg, extra)


def round_(t: RoundEventType, msg: str = "") -> TaskWeaverEvent:
    return TaskWeaverEvent(EventScope.round, t, "round-1", None, msg)


def attachment(kind: str, text: str, *, step: int = 0) -> Iterator[TaskWeaverEvent]:
    """Tell an attachment, in pieces of `step` characters, or at once."""
    size = step or max(len(text), 1)
    pieces = [text[at : at + size] for at in range(0, len(text), size)] or [""]
    for number, piece in enumerate(pieces, 1):
        facts = {"type": AttachmentType(kind), "extra": None, "id": f"atta-{kind}"}
        is_end = number == len(pieces)
        yield post(PostEventType.post_attachment_update, piece, **facts, is_end=is_end)


def message(text: str, *, step: int = 7) -> Iterator[TaskWeaverEvent]:
    for at in range(0, len(text), step):
        is_end = at + step >= len(text)
        yield post(PostEventType.post_message_update, text[at : at + step], is_end=is_end)


def printed(*texts: str, stream: str = "stdout") -> Iterator[TaskWeaverEvent]:
    for text in texts:
        yield post(PostEventType.post_execution_output, text, stream=stream, text=text)


def order(
    to: str, text: str, plan: str = PLAN, stop: str = "InProcess"
) -> Iterator[TaskWeaverEvent]:
    """The Planner's post."""
    yield post(PostEventType.post_start, role="Planner")
    yield post(PostEventType.post_status_update, "thinking")
    yield from attachment("plan_reasoning", "The user wants a mean per month.", step=5)
    yield from attachment("plan", plan, step=9)
    yield from attachment("current_plan_step", "1. load sales.csv")
    yield from attachment("stop", stop)
    yield post(PostEventType.post_send_to_update, role=to)
    yield from message(text)
    yield post(PostEventType.post_end)


def run(*outputs: str, code: str = CODE, report: str = REPORT) -> Iterator[TaskWeaverEvent]:
    """The CodeInterpreter's post with a cell that works."""
    yield post(PostEventType.post_start, role="CodeInterpreter")
    yield post(PostEventType.post_status_update, "writing code")
    yield from attachment("thought", "I load the file and group by month.", step=6)
    yield from attachment("reply_type", "python")
    yield from attachment("reply_content", code, step=8)
    yield post(PostEventType.post_status_update, "running code")
    yield from printed(*outputs)
    yield from attachment("execution_status", "SUCCESS")
    yield from attachment("execution_result", report)
    yield from attachment("session_variables", '[["df", "DataFrame"]]')
    yield from attachment("artifact_paths", "mean_per_month.png")
    yield from message(f"## Code\n```python\n{code}\n```\n\n{report}")
    yield post(PostEventType.post_send_to_update, role="Planner")
    yield post(PostEventType.post_end)


def answered_round() -> Iterator[TaskWeaverEvent]:
    yield round_(RoundEventType.round_start, "the mean of Count per month, and plot it")
    yield from order("CodeInterpreter", "Load sales.csv, group Count by month, plot the means.")
    yield from run("loading ", "2400 rows\n")
    yield from order("User", ANSWER, stop="Completed")
    yield round_(RoundEventType.round_end)
