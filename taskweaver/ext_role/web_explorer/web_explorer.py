"""The WebExplorer: looks at a page, asks for one action, does the action, until the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from injector import inject

from taskweaver.ext_role.task import TaskRole
from taskweaver.ext_role.web_explorer.browser import (
    BrowserError,
    ExplorationInterrupted,
    NoBrowser,
    PageError,
    find_browser,
)
from taskweaver.ext_role.web_explorer.page import BrowserPage, Observation
from taskweaver.llm.api import LLMApi
from taskweaver.llm.parsing.json_text import ParsedReply, parse_reply
from taskweaver.llm.types import ChatMessage, format_chat_message
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.asking import Again, ask
from taskweaver.role.prompt import load_prompt, reply_schema
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.role import RoleConfig
from taskweaver.utils.markup.quoting import quoted_section
from taskweaver.utils.system.cancel import CancelToken
from taskweaver.utils.text import fenced, fill, shorten

_KINDS = ("open", "click", "type", "select", "scroll", "back", "done")
_NUMBERED = frozenset(("click", "type", "select"))
_WORD_CHARS = 200
_MOST_DIGITS = 6
_MOST_REPLIES = 3
"""Replies to a question that may be unusable."""

SCHEMA = reply_schema(
    {"thought": {}, "action": {"enum": list(_KINDS)}, "target": {}, "text": {}, "answer": {}}
)
"""JSON schema of a reply."""

_TEXTS = ("instruction", "task", "no_page", "unreadable_page", "revise", "unfinished")


@dataclass(frozen=True, slots=True)
class BrowserAction:
    """One action, with the model's reason. `answer` is the final answer to the task.

    The target is an address, the number of an element, or a direction; the text is typed, or the
    option to select.
    """

    thought: str
    kind: str
    target: str
    text: str
    answer: str

    @property
    def words(self) -> str:
        """The action in words."""
        text = repr(shorten(self.text, _WORD_CHARS)) if self.kind in {"type", "select"} else ""
        target = self.target if self.kind not in {"back", "done"} else ""
        return " ".join(filter(None, (self.kind, shorten(target, _WORD_CHARS), text)))

    def do(self, page: BrowserPage) -> None:
        """Do the action.

        Raises:
            PageError: If the page does not let it.
            BrowserError: If the browser has ended.
        """
        match self.kind:
            case "open":
                page.open(self.target)
            case "click":
                page.click(int(self.target))
            case "type":
                words = self.text.rstrip("\n")
                page.type(int(self.target), words, submit=self.text.endswith("\n"))
            case "select":
                page.select(int(self.target), self.text)
            case "scroll":
                page.scroll(self.target)
            case "back":
                page.back()


def read_action(reply: ParsedReply) -> BrowserAction:
    """Return the action of a reply.

    Raises:
        ValueError: If it has none that can be done.
    """
    if reply.problem:
        raise ValueError(reply.problem)
    fields = reply.fields
    kind = fields.get("action", "").strip().lower()
    target = fields.get("target", "").strip()
    if kind in _NUMBERED:
        target = target.strip("[]# ")
    elif kind == "scroll":
        target = target.lower()
    text, answer = fields.get("text", ""), fields.get("answer", "")
    action = BrowserAction(fields.get("thought", ""), kind, target, text, answer)
    problem = _problem(action)
    if problem:
        raise ValueError(problem)
    return action


def _problem(action: BrowserAction) -> str:
    """Return the reason an action is impossible, or an empty text."""
    kind, target = action.kind, action.target
    is_number = target.isascii() and target.isdigit() and len(target) <= _MOST_DIGITS
    shown = repr(shorten(target, _WORD_CHARS))
    problems = (
        (kind not in _KINDS, f"`action` is {kind!r}, and must be one of {', '.join(_KINDS)}."),
        (
            kind in _NUMBERED and not is_number,
            f"`target` of {kind} is {shown}, and must be an element's number.",
        ),
        (
            kind == "select" and not action.text,
            "`text` of select is empty, and must be one of the options.",
        ),
        (
            kind == "scroll" and target not in {"down", "up"},
            f'`target` of scroll is {shown}, and must be "down" or "up".',
        ),
        (kind == "open" and not target, "`target` of open is empty, and must be an address."),
        (
            kind == "done" and not action.answer.strip(),
            "`answer` is empty: done tells what was found, or why it was not.",
        ),
    )
    return next((text for is_wrong, text in problems if is_wrong), "")


PROMPT_FILE = Path(__file__).with_name("web_explorer_prompt.yaml")


class WebExplorerConfig(RoleConfig):
    """Keys under ``web_explorer.``."""

    def _configure(self) -> None:
        self.browser_path = self._get_path("browser_path")
        self.max_steps = self._get_int("max_steps")
        self.page_timeout_s = self._get_float("page_timeout_s")
        self.allowed_hosts = self._get_list("allowed_hosts")


@dataclass(slots=True)
class _Exploration:
    """One task: the text, the actions done, and the end."""

    task: str
    proxy: PostEventProxy
    steps: list[str] = field(default_factory=list)
    url: str = ""

    def add(self, words: str, outcome: str) -> None:
        """Add a step."""
        self.steps.append(f"{len(self.steps) + 1}. {words}: {outcome}")

    @property
    def steps_text(self) -> str:
        """The steps, one a line."""
        return "\n".join(self.steps) or "(none)"


class WebExplorer(TaskRole):
    """Does tasks on web pages, in a browser that is kept until the session ends."""

    config: WebExplorerConfig

    @inject
    def __init__(
        self,
        config: WebExplorerConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.llm_api = llm_api
        self._prompt = load_prompt(PROMPT_FILE, _TEXTS)
        self._page: BrowserPage | None = None
        self._given_up = CancelToken()
        self._is_closed = False

    def answer(self, task: Post, proxy: PostEventProxy) -> str:
        """Do the newest task and report the findings.

        Raises:
            ModelError: If the model cannot be reached.
            ExplorationInterrupted: If the exploration is interrupted.
        """
        self._given_up = CancelToken()
        if self._page is not None:
            self._page.devtools.resume()
        exploration = _Exploration(task.message, proxy)
        try:
            message = self._explore(exploration)
        except NoBrowser as error:
            message = f"No web page can be opened: {error.problem}"
        if exploration.url:
            proxy.update_attachment(exploration.url, AttachmentType.web_exploring_link)
        return message

    def _explore(self, exploration: _Exploration) -> str:
        """Return the answer, or the progress without an answer."""
        most = self.config.max_steps
        for left in range(most, 0, -1):
            exploration.proxy.update_status(f"looking at the page (step {most - left + 1})")
            shown = self._look(exploration)
            messages = self._messages(exploration, shown, left)
            try:
                action = self._next_action(messages, exploration.proxy)
            except ValueError as error:
                reason = f"{_MOST_REPLIES} replies of the model could not be used: {error}"
                return self._unfinished(exploration, reason)
            plan = f"{most - left + 1}. {action.thought}\n-> {action.words}"
            exploration.proxy.update_attachment(plan, AttachmentType.web_exploring_plan)
            if action.kind == "done":
                return action.answer
            exploration.proxy.update_status(action.words)
            exploration.add(action.words, self._do(action))
        return self._unfinished(exploration, f"all {most} steps were used.")

    def _look(self, exploration: _Exploration) -> str:
        """Return the page in the form for the model."""
        try:
            seen = self._browser().observe()
        except PageError as error:
            return fill(self._prompt["unreadable_page"], PROBLEM=fenced(error.problem))
        except BrowserError as error:
            exploration.add("look at the page", self._lost(error))
            seen = None
        if seen is None:
            return self._prompt["no_page"]
        exploration.url = seen.url
        return _shown(seen)

    def _do(self, action: BrowserAction) -> str:
        """Do an action, and return the outcome."""
        try:
            action.do(self._browser())
        except PageError as error:
            return f"failed: {error.problem}"
        except BrowserError as error:
            return self._lost(error)
        return "done"

    def _lost(self, error: BrowserError) -> str:
        """Give the browser up. The next step gets another browser."""
        if isinstance(error, NoBrowser | ExplorationInterrupted) or self._is_closed:
            raise error
        self.logger.warning(f"the WebExplorer lost its browser: {error.problem}")
        self._close_page()
        return f"failed: {error.problem}. Another browser is started, with no page open."

    def _next_action(self, messages: list[ChatMessage], proxy: PostEventProxy) -> BrowserAction:
        """Ask for an action. The problem of a reply follows the reply as a message.

        Raises:
            ModelError: If the model cannot be reached.
            ExplorationInterrupted: If the task was given up.
            ValueError: If no reply can be used.
        """

        def send() -> ParsedReply:
            self.check()
            pieces = self.llm_api.chat_completion_stream(
                messages,
                llm_alias=self.config.llm_alias,
                json_schema=SCHEMA,
                on_status=proxy.update_status,
            )
            return parse_reply("".join(str(piece["content"]) for piece in pieces))

        def refuse(error: Exception, reply: ParsedReply, failed: int) -> Again:
            self.logger.warning(f"the WebExplorer's reply cannot be used: {error}")
            if failed >= _MOST_REPLIES:
                raise error
            revise = fill(self._prompt["revise"], PROBLEM=str(error))
            messages.append(format_chat_message("assistant", reply.raw))
            messages.append(format_chat_message("user", revise))
            return Again.AGAIN

        return ask(send, read_action, refuse)

    def _messages(self, exploration: _Exploration, shown: str, left: int) -> list[ChatMessage]:
        instruction = fill(self._prompt["instruction"], ROLE_NAME=self.alias)
        text = fill(
            self._prompt["task"],
            TASK=quoted_section(exploration.task),
            STEPS=fenced(exploration.steps_text),
            PAGE=shown,
            LEFT=str(left),
        )
        return [format_chat_message("system", instruction), format_chat_message("user", text)]

    def _unfinished(self, exploration: _Exploration, reason: str) -> str:
        url = exploration.url
        place = f"The page shown last: {url}" if url else "No page was opened."
        steps = exploration.steps_text
        text = fill(self._prompt["unfinished"], REASON=reason, STEPS=steps, PLACE=place)
        exploration.proxy.update_status("not finished")
        return text

    def _browser(self) -> BrowserPage:
        """Return the browser, a new browser if there was no browser."""
        self.check()
        if self._page is None:
            self._page = self._started()
            if self._is_closed:  # meanwhile, by a thread that saw no page to close
                self._close_page()
            self.check()
        return self._page

    def _started(self) -> BrowserPage:
        config = self.config
        program = find_browser(config.browser_path)
        hosts, timeout_s = config.allowed_hosts, config.page_timeout_s
        try:
            return BrowserPage(program, timeout_s=timeout_s, allowed_hosts=hosts)
        except BrowserError as error:
            raise NoBrowser(f"{program} cannot be used: {error.problem}") from error

    def check(self) -> None:
        """Check before a step.

        Raises:
            ExplorationInterrupted: If the task was given up, or the role was closed.
        """
        if self._is_closed or self._given_up.cancelled:
            raise ExplorationInterrupted

    def interrupt(self) -> None:
        """Interrupt the browser, from any thread."""
        self._given_up.cancel()
        page = self._page
        if page is not None:
            page.devtools.interrupt()

    def _close_page(self) -> None:
        page, self._page = self._page, None
        if page is not None:
            page.close()

    def close(self) -> None:
        """End the browser."""
        self._is_closed = True
        self._close_page()


def _shown(seen: Observation) -> str:
    notes = "\n".join(f"- {note}" for note in seen.notes)
    happened = f"Happened since the last look:\n{fenced(notes)}\n\n" if notes else ""
    return f"{happened}{fenced(seen.to_text())}"
