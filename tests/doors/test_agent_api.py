"""The agent API over a real server: sessions, messages, branches, files, memory, users."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from random import Random
from threading import Event
from typing import Any

import httpx2
import pytest
from agents import API, SteeredModel, ask, events_of, new_session
from patience import PATIENCE_S
from served import Served, problem
from sizes import examples

from taskweaver.server.accounts import Quota
from taskweaver.server.agents import following
from taskweaver.session.storage import event_log


@pytest.fixture(scope="module")
def session(client: httpx2.Client) -> str:
    return new_session(client, "shared")


def test_a_session_is_made_listed_renamed_found_and_deleted(client: httpx2.Client) -> None:
    session = new_session(client)
    session_id = session.rpartition("/")[2]
    listed = client.get(f"{API}/sessions").json()["sessions"]
    assert [(item["rounds"], item["state"]) for item in listed if item["session_id"] == session_id]
    assert ask(client, session, "say: the zebra crossing")["answer"] == "heard the zebra crossing"
    assert client.patch(session, json={"title": "Animals"}).json()["title"] == "Animals"
    found = client.get(f"{API}/find", params={"q": "zebra"}).json()["passages"]
    (one,) = [item for item in found if item["session_id"] == session_id]
    assert (one["title"], one["branch_title"], one["number"]) == ("Animals", "main", 1)
    assert client.delete(session).status_code == 204
    problem(client.get(session), 404, "not-found")
    problem(client.delete(session), 404, "not-found")
    listed = client.get(f"{API}/sessions").json()["sessions"]
    assert session_id not in {item["session_id"] for item in listed}


def test_an_answer_streams_with_numbers_and_is_resumed_by_the_last_one(
    client: httpx2.Client, session: str
) -> None:
    sent = client.post(f"{session}/messages", json={"text": "say: streamed"})
    assert sent.status_code == 202
    message, after = sent.json()["message"], sent.json()["after"]
    events = f"{session}/messages/{message['message_id']}/events"
    with client.stream("GET", events, params={"after": str(after)}) as response:
        whole = list(events_of(response))
    kinds = [kind for _, kind, _ in whole]
    assert (kinds[0], kinds[-2], kinds[-1]) == ("round_start", "round_end", "message")
    assert "post_message_update" in kinds
    assert whole[-1][2]["answer"] == "heard streamed"
    numbers = [int(number) for number, _, _ in whole[:-1]]
    assert numbers == sorted(set(numbers))
    for cut in (0, len(numbers) // 2, len(numbers) - 1):
        headers = {"Last-Event-ID": str(numbers[cut])}
        with client.stream("GET", events, headers=headers) as response:
            assert list(events_of(response)) == whole[cut + 1 :]


def test_numbers_of_events_that_make_no_sense_are_refused(
    client: httpx2.Client, session: str
) -> None:
    ask(client, session, "say: something")
    last = client.get(session).json()["last_event"]
    for address, before in ((f"{session}/events", ""), (f"{API}/events", "changes:")):
        for text in ("x", "-1", "9" * 40):
            headers = {"Last-Event-ID": before + text}
            problem(client.get(address, headers=headers), 400, "event-id")
        future = {"Last-Event-ID": f"{before}{last + 1_000_000}"}
        problem(client.get(address, headers=future), 409, "conflict")


def test_a_message_that_is_sent_again_is_answered_once(client: httpx2.Client, session: str) -> None:
    rounds = len(client.get(f"{session}/rounds").json()["rounds"])
    body = {"text": "say: once", "message_id": "m-once"}
    first = ask(client, session, **body)
    again = client.post(f"{session}/messages", json=body).json()["message"]
    assert (again["state"], again["answer"]) == ("finished", first["answer"])
    assert len(client.get(f"{session}/rounds").json()["rounds"]) == rounds + 1
    other = {"text": "say: twice", "message_id": "m-once"}
    problem(client.post(f"{session}/messages", json=other), 409, "conflict")


def test_messages_of_a_branch_wait_and_can_be_withdrawn(
    client: httpx2.Client, model: SteeredModel
) -> None:
    session = new_session(client)
    texts = ("say: wait queue", "say: second", "say: third")
    sent = [client.post(f"{session}/messages", json={"text": text}).json() for text in texts]
    ids = [one["message"]["message_id"] for one in sent]
    model.await_question("wait queue")
    states = [item["state"] for item in client.get(f"{session}/messages").json()["messages"]]
    assert states == ["running", "queued", "queued"]
    assert client.get(session).json()["branches"][0]["state"] == "running"
    assert client.delete(f"{session}/messages/{ids[1]}").json()["state"] == "withdrawn"
    problem(client.delete(f"{session}/messages/{ids[0]}"), 409, "conflict")
    problem(client.delete(f"{session}/messages/none"), 404, "not-found")
    problem(client.post(f"{session}/branches", json={"name": "early"}), 409, "session-busy")
    problem(client.post(f"{session}/release"), 409, "session-busy")
    for _ in range(16):
        client.post(f"{session}/messages", json={"text": "say: more"})
    too_many = client.post(f"{session}/messages", json={"text": "say: too many"})
    assert problem(too_many, 429, "queue-full")
    assert too_many.headers["retry-after"]
    model.let_go("wait queue")
    with client.stream("GET", f"{session}/messages/{ids[2]}/events") as response:
        *_, (_, _, ended) = events_of(response)
    assert (ended["state"], ended["answer"]) == ("finished", "heard third")
    states = [item["state"] for item in client.get(f"{session}/messages").json()["messages"]]
    assert states[:3] == ["finished", "withdrawn", "finished"]
    assert client.delete(session).status_code == 204


def test_branches_answer_side_by_side_and_a_stop_ends_one(
    client: httpx2.Client, model: SteeredModel
) -> None:
    session = new_session(client)
    ask(client, session, "say: root")
    made = client.post(f"{session}/branches", json={"name": "b", "at_round": 1})
    assert made.json() == {"name": "b", "why_restored": ""}
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, client, session, "say: wait stop", branch="b")
        model.await_question("wait stop")
        here = ask(client, session, "say: here")
        branches = client.get(session).json()["branches"]
        stopped = client.post(f"{session}/stop", json={"branch": "b"})
        model.let_go("wait stop")
        ended = waiting.result(PATIENCE_S)
    assert here["answer"] == "heard here"
    assert {item["name"]: item["state"] for item in branches} == {"main": "idle", "b": "running"}
    assert stopped.json() == {"was_running": True}
    assert (ended["state"], ended["answer"]) == ("stopped", "interrupted")
    assert client.post(f"{session}/stop", json={}).json() == {"was_running": False}
    problem(client.post(f"{session}/stop", json={"branch": "x"}), 404, "unknown-session-branch")
    body = {"text": "hi", "branch": "x"}
    problem(client.post(f"{session}/messages", json=body), 404, "unknown-session-branch")


def test_one_stream_has_the_events_of_several_sessions_and_of_the_list(
    client: httpx2.Client,
) -> None:
    first, second = new_session(client), new_session(client)
    ids = [address.rpartition("/")[2] for address in (first, second)]

    def watch(seen: str, count: int = 0) -> list[tuple[str, str, dict[str, Any]]]:
        found = []
        params = {"sessions": ",".join(ids)}
        headers = {"Last-Event-ID": seen} if seen else {}
        with client.stream("GET", f"{API}/events", params=params, headers=headers) as stream:
            for event in events_of(stream):
                found.append(event)
                if not seen and len(found) == 1:
                    ask(client, first, "say: a")
                    ask(client, second, "say: b")
                    client.patch(second, json={"title": "renamed"})
                if len(found) == count or (not count and event[1] == "session_renamed"):
                    return found
        return found

    events = watch("")
    assert events[0][1] == "position"
    answered = {data["session_id"] for _, kind, data in events if kind == "round_end"}
    assert answered == set(ids)
    states = [kind for _, kind, _ in events if kind.startswith("message_")]
    assert states.count("message_finished") == 2
    middle = len(events) // 2
    again = watch(events[middle][0], count=len(events) - middle)
    kept = [(kind, data["number"]) for _, kind, data in events[middle + 1 :]]
    seen_again = [(kind, data["number"]) for _, kind, data in again[1:]]
    assert sorted(seen_again) == sorted(kept)


def test_files_go_up_and_down_and_links_are_good_once(client: httpx2.Client) -> None:
    session = new_session(client)
    octets = {"Content-Type": "application/octet-stream"}
    put = client.put(f"{session}/files/data/t.csv", content=b"a,b\n1,2\n", headers=octets)
    assert put.json()["size"] == 8
    assert client.get(f"{session}/files/data/t.csv").content == b"a,b\n1,2\n"
    part = client.get(f"{session}/files/data/t.csv", headers={"Range": "bytes=4-6"})
    assert (part.status_code, part.content) == (206, b"1,2")
    files = client.get(f"{session}/files").json()["files"]
    assert [item["path"] for item in files] == ["data/t.csv"]
    for path in ("../../agent.sqlite", "%2e%2e/%2e%2e/agent.sqlite", "/etc/passwd", "data"):
        problem(client.get(f"{session}/files/{path}"), 404, "not-found")
    url = client.post(f"{session}/links/data/t.csv", json={}).json()["url"]
    bare = httpx2.Client(base_url=client.base_url, timeout=PATIENCE_S)
    opened = bare.get(url)
    assert opened.content == b"a,b\n1,2\n"
    assert opened.headers["content-disposition"].startswith("attachment")
    problem(bare.get(url), 404, "not-found")
    problem(bare.get(f"{session}/files/data/t.csv"), 401, "token-missing")
    problem(client.post(f"{session}/links/data/none", json={}), 404, "not-found")
    wanted = {"purpose": "frame"}
    problem(client.post(f"{session}/links/data/t.csv", json=wanted), 422, "no-frame")
    page = b"<script>1</script>"
    client.put(f"{session}/files/plot.html", content=page, headers=octets)
    url = client.post(f"{session}/links/plot.html", json=wanted).json()["url"]
    frame = bare.get(url)
    bare.close()
    assert "sandbox allow-scripts;" in frame.headers["content-security-policy"]
    assert frame.content.startswith(b"<script>delete self.RTCPeerConnection")
    assert frame.content.endswith(page)
    assert client.delete(f"{session}/files/data").status_code == 204


def test_facts_are_kept_found_changed_and_forgotten(client: httpx2.Client) -> None:
    session = new_session(client)
    kept = client.post(f"{session}/memory", json={"text": "revenue is net of tax"})
    assert kept.status_code == 201
    facts = client.get(f"{session}/memory", params={"q": "revenue"}).json()["facts"]
    assert [item["text"] for item in facts] == ["revenue is net of tax"]
    one = f"{session}/memory/{facts[0]['fact_id']}"
    assert client.put(one, json={"text": "revenue is gross"}).status_code == 200
    shown = client.get(f"{session}/memory").json()["facts"]
    (current,) = (item["fact_id"] for item in shown if item["text"] == "revenue is gross")
    assert client.delete(f"{session}/memory/{current}").status_code == 200
    problem(client.delete(f"{session}/memory/{current}"), 404, "not-found")
    problem(client.post(f"{session}/memory/{current}"), 404, "not-found")
    problem(client.post(f"{session}/memory", json={"text": "x" * 2000}), 422, "invalid-body")


def test_quotas_are_spent_and_refused(server: Served) -> None:
    token = server.accounts.add("carl", quota=Quota(tokens=1))
    carl = server.client(token.text)
    session = new_session(carl)
    ended = ask(carl, session, "say: one")
    assert ended["tokens"] > 0
    usage = carl.get(f"{API}/usage").json()
    assert (usage["spent_tokens"], usage["quota_tokens"]) == (ended["tokens"], 1)
    refused = carl.post(f"{session}/messages", json={"text": "say: two"})
    assert "tokens" in problem(refused, 429, "quota")["detail"]
    none = server.client(server.accounts.add("dora", quota=Quota(cost=0.0)).text)
    refused = none.post(f"{new_session(none)}/messages", json={"text": "say: one"})
    problem(refused, 429, "quota")
    full = server.client(server.accounts.add("emil", quota=Quota(disk_mb=0)).text)
    problem(full.post(f"{API}/sessions", json={}), 429, "quota")


def test_kernels_of_idle_sessions_end_for_others(server: Served) -> None:
    fred = server.client(server.accounts.add("fred", quota=Quota(kernels=1)).text)
    sessions = [new_session(fred) for _ in range(2)]
    for number, session in enumerate(sessions):
        ask(fred, session, f"x = {number}", kind="code")
    kernels = [fred.get(session).json()["branches"][0]["kernel"] for session in sessions]
    assert (kernels[0], kernels[1] in {"ready", "busy"}) == ("not started", True)
    assert "\n0\n" in ask(fred, sessions[0], "x", kind="code")["answer"]
    fred.post(f"{sessions[0]}/branches", json={"name": "b"})
    for name in ("b", "main", "b"):
        assert "\n0\n" in ask(fred, sessions[0], "x", kind="code", branch=name)["answer"]
    none = server.client(server.accounts.add("gina", quota=Quota(kernels=0)).text)
    refused = none.post(f"{new_session(none)}/messages", json={"text": "1", "kind": "code"})
    assert "kernels" in problem(refused, 429, "quota")["detail"]


def test_malformed_requests_are_refused(client: httpx2.Client, session: str) -> None:
    messages = f"{session}/messages"
    problem(client.post(messages, json={"text": "   "}), 422, "invalid-body")
    problem(client.post(messages, json={"text": "x", "message_id": "../x"}), 422, "invalid-id")
    problem(client.get(f"{API}/sessions/..%2f..%2fx"), 404, "not-found")
    problem(client.get(f"{API}/sessions/none"), 404, "not-found")
    problem(client.get(f"{API}/find"), 422, "invalid-query")
    problem(client.get(f"{session}/differences"), 422, "invalid-query")
    problem(client.get(f"{session}/branches/main/rounds?first=x"), 422, "invalid-query")
    problem(client.post(f"{session}/confirmations/none", json={"answer": "yes"}), 404, "not-found")
    problem(client.post(f"{session}/branches", json={"name": "a/b"}), 409, "session-error")


def test_a_stream_ends_when_its_session_is_deleted_or_its_reader_is_too_slow(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_session(client)
    ask(client, session, "say: one")
    with client.stream("GET", f"{session}/events") as response:
        events = events_of(response)
        assert next(events)[1] == "round_start"
        assert client.delete(session).status_code == 204
        assert [kind for _, kind, _ in events][-1] == "round_end"
    session = new_session(client)
    monkeypatch.setattr(event_log, "_MOST_KEPT", 20)
    monkeypatch.setattr(event_log, "_FORGOTTEN", 10)
    ask(client, session, "say: one")
    ask(client, session, "say: two")
    ask(client, session, "say: three")
    gone = client.get(f"{session}/events", headers={"Last-Event-ID": "1"})
    assert "no longer kept" in problem(gone, 410, "events-gone")["detail"]


def test_a_connection_that_is_torn_at_random_loses_no_event_and_doubles_none(
    client: httpx2.Client,
) -> None:
    session = new_session(client)
    random, seen, is_enough = Random(1), [0], Event()

    def read(count: int) -> None:
        """Read some events after the last one, then tear the connection."""
        headers = {"Last-Event-ID": str(seen[-1])}
        with client.stream("GET", f"{session}/events", headers=headers) as response:
            seen.extend(int(number) for number, _, _ in islice(events_of(response), count))

    def ask_on() -> None:
        while not is_enough.is_set():
            ask(client, session, "say: more")

    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask_on)
        try:
            for _ in range(examples(60)):
                read(random.randrange(1, 9))
        finally:
            is_enough.set()
        asking.result(PATIENCE_S)
    read(client.get(session).json()["last_event"] - seen[-1])
    assert seen == list(range(seen[-1] + 1))


def test_artifacts_that_are_pictures_have_their_size(client: httpx2.Client) -> None:
    session = new_session(client)
    code = "from PIL import Image\nImage.new('RGB', (300, 200)).save('drawn.jpg')"
    ask(client, session, f"{code}\nopen('notes.txt', 'w').write('x')", kind="code")
    found = client.get(f"{session}/artifacts").json()["artifacts"]
    sizes = {item["path"]: (item["width"], item["height"]) for item in found}
    assert sizes == {"drawn.jpg": (300, 200), "notes.txt": (None, None)}


def test_a_cell_that_prints_on_another_branch_starves_no_stream(
    client: httpx2.Client, model: SteeredModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_session(client)
    client.post(f"{session}/branches", json={"name": "b"}).raise_for_status()
    code = "import time\nwhile True: print('on', flush=True); time.sleep(0.01)"
    cell = {"text": code, "kind": "code", "branch": "b", "stream": True}
    with client.stream("POST", f"{session}/messages", json=cell) as printing:
        next(one for one in events_of(printing) if one[1] == "post_execution_output")
        monkeypatch.setattr(following, "_KEEP_ALIVE_S", 0.1)
        body = {"text": "say: wait print", "stream": True}
        with client.stream("POST", f"{session}/messages", json=body) as answer:
            model.await_question("wait print")
            lines = answer.iter_lines()
            assert next(line for line in lines if line.startswith(":")) == ": keepalive"
            model.let_go("wait print")
            assert any("heard wait print" in line for line in lines)
        client.post(f"{session}/stop", json={"branch": "b"}).raise_for_status()
