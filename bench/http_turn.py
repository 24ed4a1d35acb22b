"""One call over HTTP: a prompt of 125 KB, a streamed reply, a local server that answers at once.

Measured against the bare openai client that sends the same messages and reads the same stream,
alternating. The server is a process of its own, so its work is not counted.
"""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from openai import OpenAI

from bench.common import show, sized
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm import LLMApi, ModelServices

MESSAGES = sized(200, 4)
MESSAGE_CHARS = 625
DELTAS = sized(300, 5)
ROUNDS = sized(60, 2)
GOAL_RATIO = 1.15
ROOT = Path(__file__).parent.parent


def _event(**body: Any) -> bytes:
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **body}
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


def _answer() -> bytes:
    deltas = [
        _event(choices=[{"index": 0, "delta": {"content": " some words"}, "finish_reason": None}])
        for _ in range(DELTAS)
    ]
    end = _event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    usage = {"prompt_tokens": 31_000, "completion_tokens": 600, "total_tokens": 31_600}
    body = b"".join([*deltas, end, _event(choices=[], usage=usage), b"data: [DONE]\n\n"])
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def serve() -> None:
    """Answer every request on every connection with the same bytes; print the port first."""
    answer = _answer()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        buffers: dict[socket.socket, bytes] = {}
        while True:
            for ready in select.select([listener, *buffers], [], [])[0]:
                if ready is listener:
                    buffers[listener.accept()[0]] = b""
                else:
                    _serve_one(ready, buffers, answer)


def _serve_one(peer: socket.socket, buffers: dict[socket.socket, bytes], answer: bytes) -> None:
    data = peer.recv(1 << 20)
    if not data:
        del buffers[peer]
        return
    buffers[peer] += data
    head, _, body = buffers[peer].partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if length and len(body) >= int(length[1]):
        buffers[peer] = b""
        peer.sendall(answer)


def _prompt() -> list[Any]:
    text = ("The mean of `Count` per month in sales.csv is wanted. " * 20)[:MESSAGE_CHARS]
    roles = ["system", *["user", "assistant"] * MESSAGES]
    return [{"role": roles[at], "content": f"{at} {text}"} for at in range(MESSAGES)]


def _bare(client: OpenAI, prompt: list[Any]) -> str:
    stream = client.chat.completions.create(
        model="m", messages=prompt, stream=True, stream_options={"include_usage": True}
    )
    return "".join(c.choices[0].delta.content or "" for c in stream if c.choices)


def _cost(work: Callable[[], str]) -> tuple[float, float]:
    wall, cpu = perf_counter(), process_time()
    text = work()
    spent = (perf_counter() - wall) * 1000, (process_time() - cpu) * 1000
    if text != " some words" * DELTAS:
        raise AssertionError("the reply is not what the server sent")
    return spent


def run() -> dict[str, float]:
    """Return medians in milliseconds, and ratios of ours to the bare client."""
    command = [sys.executable, "-m", "bench.http_turn", "serve"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        bare, ours = _measure(url)
        server.terminate()
    figures: dict[str, float] = {}
    for at, what in enumerate(("wall", "cpu")):
        theirs = median(cost[at] for cost in bare)
        mine = median(cost[at] for cost in ours)
        figures |= {
            f"bare client, {what} ms": theirs,
            f"taskweaver, {what} ms": mine,
            f"ratio, {what}": mine / theirs,
        }
    return {**figures, "goal, ratio": GOAL_RATIO}


def _measure(url: str) -> tuple[list[Any], list[Any]]:
    config = {"llm.api_type": "openai", "llm.api_base": url, "llm.model": "m"}
    prompt = _prompt()
    bare: list[Any] = []
    ours: list[Any] = []
    with (
        OpenAI(base_url=url, api_key="none", max_retries=0) as client,
        ModelServices(AppConfigSource(config=config)) as services,
    ):
        api = LLMApi(services)
        for _ in range(ROUNDS):
            bare.append(_cost(lambda: _bare(client, prompt)))
            ours.append(_cost(lambda: str(api.chat_completion(prompt)["content"])))
    return bare, ours


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        show(run())
