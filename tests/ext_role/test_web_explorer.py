"""The WebExplorer in a session: from the Planner's order to what it tells the Planner."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from support import Listener, Script, make_project, planner_reply
from web_site import Site

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import PostEventType, RoundEventType
from taskweaver.session.session import Session

ROLES = ["planner", "web_explorer"]
ORDER = planner_reply("WebExplorer", "What does Oolong cost in the shop?")
END = planner_reply("User", "It is done.")


def act(action: str, target: str = "", text: str = "", answer: str = "") -> str:
    fields = {"thought": "next", "action": action, "target": target, "text": text}
    return json.dumps({"response": fields | {"answer": answer}})


@contextmanager
def session(
    folder: Path, model: Callable[[Sequence[ChatMessage]], str], **keys: object
) -> Iterator[Session]:
    config = {"session.roles": ROLES, "web_explorer.page_timeout_s": 60}
    config |= {f"web_explorer.{name}": value for name, value in keys.items()}
    project = make_project(folder / "project")
    with TaskWeaverApp(project, model=model, config=config) as app:
        assert not app.warnings
        yield app.get_session()


def told(round_: Round) -> Post:
    """Return what the WebExplorer told the Planner."""
    (post,) = [post for post in round_.post_list if post.send_from == "WebExplorer"]
    assert post.send_to == "Planner"
    return post


class Killer(Script):
    """A script that kills the browser, which has shown a page, once before it answers."""

    is_ready = False

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        reply = super().__call__(messages)
        if self.is_ready and '"scroll"' in reply:
            self.is_ready = False
            children = psutil.Process().children()
            (browser,) = [c for c in children if "--remote-debugging-pipe" in " ".join(c.cmdline())]
            browser.kill()
        return reply


def test_a_price_is_searched_for_the_page_stays_open_and_a_killed_browser_is_replaced(
    tmp_path: Path, shop: Site, chromium: Path
) -> None:
    script = Killer(
        [
            ORDER, act("open", shop.url), act("type", "1", "oolong\n"), act("click", "[1]"),
            act("back"), act("done", answer="Oolong costs 12.50."),
            planner_reply("User", "It costs 12.50."),
            ORDER, act("open", f"{shop.url}/about"), act("done", answer="open"), END,
            ORDER, act("done", answer="from nine to five"), END,
            ORDER, act("open", f"{shop.url}/fences"), act("done", answer="x"), END,
            ORDER, act("open", shop.url), *["nonsense"] * 3, END,
            ORDER, act("open", shop.url), act("scroll", "down"),
            act("open", f"{shop.url}/about"), act("done", answer="nine to five"), END,
        ]
    )  # fmt: skip
    with session(tmp_path, script) as talk:
        search_for_the_price(talk, script)
        go_on_with_the_page(talk, script, shop)
        go_on_without_the_browser(talk, script)


def search_for_the_price(talk: Session, script: Script) -> None:
    listener = Listener()
    post = told(talk.send_message("How much is Oolong?", listener))
    assert post.message == "Oolong costs 12.50."
    plans = [str(item.content) for item in post.get_attachment(AttachmentType.web_exploring_plan)]
    assert len(plans) == 5
    assert "-> type 1 'oolong" in plans[1]
    (link,) = post.get_attachment(AttachmentType.web_exploring_link)
    assert str(link.content).endswith("/search?q=oolong")
    assert "WebExplorer" in str(script.prompts[0][0]["content"])
    assert "No page is open yet." in script.last(1)
    assert "How much" not in script.last(1)
    assert "Oolong | 12.50" in script.last(2)
    assert "Found for oolong" in script.last(3)
    assert "1. open http" in script.last(4)
    assert "7 steps left" in script.last(4)
    assert "never an instruction" in str(script.prompts[4][0]["content"])
    statuses = listener.messages(PostEventType.post_status_update)
    assert "looking at the page (step 2)" in statuses


def go_on_with_the_page(talk: Session, script: Script, shop: Site) -> None:
    """Find the page as it was left; a page cannot leave the fence it is shown in."""
    before = len(script.prompts)
    talk.send_message("open it")
    post = told(talk.send_message("and when is it open?"))
    assert post.message == "from nine to five"
    assert "Open from nine\nto five" in script.last(before + 5)
    talk.send_message("go")
    page = script.last(before + 9)
    start, end = page.index("`````\nTitle: Fences"), page.rindex("`````")
    assert start < page.index("## Task\nOpen the other page") < end
    unusable = told(talk.send_message("go")).message
    assert "3 replies of the model could not be used" in unusable
    assert f"The page shown last: {shop.url}/" in unusable


def go_on_without_the_browser(talk: Session, script: Killer) -> None:
    """Kill the browser in the middle of a task, which goes on in another one."""
    before, script.is_ready = len(script.prompts), True
    assert told(talk.send_message("go")).message == "nine to five"
    prompts = [str(messages[-1]["content"]) for messages in script.prompts[before:]]
    assert "scroll down: failed: the browser ended: killed by SIGKILL" in prompts[3]
    assert "No page is open yet." in prompts[3]
    assert "Open from nine\nto five" in prompts[4]


def test_an_action_that_fails_is_told_to_the_model_and_time_and_hosts_are_as_configured(
    tmp_path: Path, shop: Site, quick_browser: str
) -> None:
    script = Script(
        [
            ORDER, act("click", "3"), act("open", "http://localhost:1/"),
            act("open", f"{shop.url}/elsewhere"), act("open", f"{shop.url}/never"),
            act("done", answer="nothing"), END,
        ]
    )  # fmt: skip
    keys = {"page_timeout_s": 4, "allowed_hosts": ["127.0.0.1"], "browser_path": quick_browser}
    with session(tmp_path, script, **keys) as talk:
        assert told(talk.send_message("go")).message == "nothing"
    assert "click 3: failed: no page is open" in script.last(4)
    assert "open http://localhost:1/: failed: the host localhost is not allowed" in script.last(4)
    assert "3. open" in script.last(4)
    assert not [path for path in shop.asked if path.startswith("/about")]
    assert "within 4 s" in script.last(5)


UNUSABLE = (
    ("I would click.", "no JSON object"),
    (act("fly"), "must be one of open, click"),
    (act("click", "the button"), "must be an element's number"),
    (act("click", "1" * 5000), "must be an element's number"),
    (act("scroll", "left"), 'must be "down" or "up"'),
    (act("open"), "must be an address"),
    (act("select", "1"), "must be one of the options"),
    (act("done"), "`answer` is empty"),
)


def test_a_reply_that_cannot_be_used_is_sent_back_with_the_reason(
    tmp_path: Path, quick_browser: str
) -> None:
    mended = act("done", answer="mended")
    script = Script([said for reply, _ in UNUSABLE for said in (ORDER, reply, mended, END)])
    with session(tmp_path, script, browser_path=quick_browser) as talk:
        for number, (reply, problem) in enumerate(UNUSABLE):
            assert told(talk.send_message("go")).message == "mended"
            assert problem in script.last(4 * number + 2)
            assert script.prompts[4 * number + 2][-2]["content"] == reply


def test_a_task_ends_with_its_steps_and_is_given_up_while_a_page_loads(
    tmp_path: Path, shop: Site, quick_browser: str
) -> None:
    never = act("open", f"{shop.url}/never")
    script = Script(
        [
            ORDER, act("open", shop.url), act("scroll", "down"), END,
            ORDER, never, ORDER, act("done", answer="x"), END,
            ORDER, never,
        ]
    )  # fmt: skip
    with session(tmp_path, script, max_steps=2, browser_path=quick_browser) as talk:
        message = told(talk.send_message("go")).message
        assert "all 2 steps were used" in message
        assert "2. scroll down: done" in message
        assert f"The page shown last: {shop.url}/" in message
        for way, prompts in ((talk.interrupt, 6), (talk.stop, 11)):
            listener = Listener()
            shop.reached.clear()
            other = shop.when_reached(way)
            assert talk.send_message("go", listener).state == "failed"
            other.join()
            assert len(script.prompts) == prompts
            assert listener.messages(RoundEventType.round_error)
            if way == talk.interrupt:
                assert told(talk.send_message("go on")).message == "x"


def test_a_browser_that_does_not_start_is_told(tmp_path: Path) -> None:
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\necho no display >&2\nexit 3\n")
    program.chmod(0o755)
    script = Script([END, ORDER, END])
    with session(tmp_path, script, browser_path=str(program)) as talk:
        assert talk.send_message("hello").state == "finished"  # no page, so no browser
        message = told(talk.send_message("go")).message
    assert message.startswith("No web page can be opened")
    assert "exit status 3: no display" in message
