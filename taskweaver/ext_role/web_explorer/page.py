"""A web page as a reader works a page: open, look, click, type, select, scroll, go back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.ext_role.web_explorer.browser import (
    DeadlineExceeded,
    DevTools,
    ExplorationInterrupted,
    PageError,
    ProtocolError,
)
from taskweaver.ext_role.web_explorer.tabs import Addresses, Tab, Tabs

TEXT_CHARS = 8000
ELEMENT_COUNT = 80
_CALL_S = 10.0
_START_S = 0.2
_NEWS_S = 0.05
_MOMENT_MS, _CHANGING_MS = 250, 2000
_LOOKS = 5
_WORLD = "explorer"
_KEEP = "globalThis[Symbol.for('explorer')] ??= "  # no name an element of the page can take
_CHANGED = "the page changed meanwhile; look at it again and use the new numbers."
_DEAD = "the page crashed or does not answer; open another page."
_ENTER = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}


@dataclass(frozen=True, slots=True)
class Element:
    """An interactive element of a page: link, button, select, ``input text`` and the like.

    The value is empty for an element without one; `target` is the address a link leads to.
    """

    kind: str
    label: str
    value: str
    target: str
    is_disabled: bool
    options: tuple[str, ...]

    def to_text(self) -> str:
        """Return the element as one line."""
        facts = [f'{self.kind} "{self.label}"']
        facts += [f"holds: {self.value}"] if self.value else []
        facts += [f"leads to: {self.target}"] if self.target else []
        facts += [f"options: {'; '.join(self.options)}"] if self.options else []
        facts += ["disabled"] if self.is_disabled else []
        return ", ".join(facts)


@dataclass(frozen=True, slots=True)
class Observation:
    """Content of a page at one moment: text and elements from the top of the window on.

    `is_cut` says whether there is more text, `screens_above` and `screens_below` how many windows
    of page there are; `notes` are the events since the last observation.
    """

    title: str
    url: str
    text: str
    is_cut: bool
    elements: tuple[Element, ...]
    elements_left_out: int
    screens_above: float
    screens_below: float
    notes: tuple[str, ...]

    def to_text(self) -> str:
        """Return the observation for a model to read."""
        lines = [f"Title: {self.title}", f"Address: {self.url}", "", "Text:", self.text or "(none)"]
        if self.is_cut:
            lines.append("(the text goes on; scroll down to see more)")
        place = f"{self.screens_above:.1f} windows above, {self.screens_below:.1f} below"
        lines += [f"(there are {place})", "", "Elements:"]
        lines += [f"[{n}] {item.to_text()}" for n, item in enumerate(self.elements, 1)]
        if not self.elements:
            lines.append("(none)")
        if self.elements_left_out:
            lines.append(f"(and {self.elements_left_out} more further down; scroll to see them)")
        return "\n".join(lines)


_SCRIPT = Path(__file__).with_name("page.js")


class BrowserPage:
    """A browser with the page shown. Not for use by two threads at once."""

    def __init__(
        self, program: Path, *, timeout_s: float = 30.0, allowed_hosts: Sequence[str] = ()
    ) -> None:
        """Start a browser without an open page.

        Pages of `allowed_hosts` may be opened, without any those of all; `timeout_s` is the longest
        wait for a page.

        Raises:
            BrowserError: If it cannot be started.
        """
        self._timeout_s = timeout_s
        self._addresses = Addresses(allowed_hosts)
        self._script = _SCRIPT.read_text("utf-8")
        self._seen: tuple[str, str] | None = None
        self.devtools = DevTools(program, lambda event: self._tabs.handle(event))
        self._tabs = Tabs(self._addresses, self.devtools.send)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        only_pages = [{"type": "page"}, {"exclude": True}]
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        documents = [{"urlPattern": "*", "resourceType": "Document"}]
        downloads = {"behavior": "deny", "eventsEnabled": True}
        self._call("Target.setAutoAttach", {**attach, "filter": only_pages}, self._timeout_s)
        self._call("Fetch.enable", {"patterns": documents})
        self._call("Browser.setDownloadBehavior", downloads)

    def open(self, address: str) -> None:
        """Open a page and wait until the page is loaded.

        Raises:
            PageError: If it may not or cannot be opened.
            BrowserError: If the browser has ended.
        """
        url = self._addresses.checked(address)
        tab = self._fresh_tab()
        try:
            with self._stopped_if_interrupted():
                reply = self._call("Page.navigate", {"url": url}, self._timeout_s, tab)
        except DeadlineExceeded:
            self._stop(tab)
            problem = f"{url} did not answer within {self._timeout_s:g} s."
            raise PageError(problem) from None
        except ProtocolError as error:
            raise PageError(f"{url} cannot be opened: {error.problem}.") from error
        failure = reply.get("errorText")
        if failure:
            tab.is_loading = False
            notes = " ".join(self._tabs.take_notes())
            raise PageError(f"{url} cannot be opened: {failure}. {notes}".rstrip())
        self._settle()

    def observe(self) -> Observation | None:
        """Return the page's content, or None without an open page.

        Raises:
            PageError: If it does not answer.
            BrowserError: If the browser has ended.
        """
        for _ in range(_LOOKS):
            if self.devtools.wait(self._is_loading, within_s=_NEWS_S):
                self._settle()
            if self._tabs.current is None:
                return None
            try:
                seen = self._in_page("observe", TEXT_CHARS, ELEMENT_COUNT)
            except _Navigated:
                continue
            return self._observation(seen)
        raise PageError("the page goes from one address to the next without end; open another.")

    def click(self, number: int) -> None:
        """Click an element of the last observation. Raises as `type`."""
        place = self._work("point", number)
        mouse = {"x": place["x"], "y": place["y"], "button": "left", "clickCount": 1}
        self._input("Input.dispatchMouseEvent", {**mouse, "type": "mouseMoved", "button": "none"})
        self._input("Input.dispatchMouseEvent", {**mouse, "type": "mousePressed"})
        self._input("Input.dispatchMouseEvent", {**mouse, "type": "mouseReleased"})
        self._settle()

    def type(self, number: int, text: str, *, submit: bool = False) -> None:
        """Replace the value of an element of the last observation, and with `submit` press Enter.

        Raises:
            PageError: If it is not there any more, or does not take text.
            BrowserError: If the browser has ended.
        """
        if not self._work("ready", number, text)["is_done"]:
            if text:
                self._input("Input.insertText", {"text": text})
            else:
                self._press({"key": "Delete", "code": "Delete", "windowsVirtualKeyCode": 46})
        if submit:
            self._press(_ENTER)
        self._settle()

    def select(self, number: int, value: str) -> None:
        """Select an option, by label or value. Raises as `type`."""
        self._work("select", number, value)
        self._settle()

    def scroll(self, direction: str) -> None:
        """Scroll by most of a window, ``down`` or ``up``.

        Raises:
            PageError: If the page ends there.
            BrowserError: If the browser has ended.
        """
        self._work("scroll", -1 if direction == "up" else 1)
        self._settle()

    def back(self) -> None:
        """Go to the page before, or close a tab the page opened.

        Raises:
            PageError: If there is none.
            BrowserError: If the browser has ended.
        """
        tab = self._living_tab()
        history = self._call("Page.getNavigationHistory", {}, tab=tab)
        before = history["entries"][: history["currentIndex"]]
        if before and before[-1]["url"] != "about:blank":
            entry = {"entryId": before[-1]["id"]}
            self._call("Page.navigateToHistoryEntry", entry, tab=tab)
        elif self._tabs.count > 1:
            self._tabs.forget(tab)
        else:
            raise PageError("there is no page to go back to.")
        self._settle()

    def close(self) -> None:
        """End the browser. Safe to call again."""
        self.devtools.close()

    def _fresh_tab(self) -> Tab:
        """Return a tab that answers."""
        tab = self._tabs.current
        if tab is not None and tab.is_dead:
            self._tabs.forget(tab)
            tab = self._tabs.current
        if tab is None:
            self._call("Target.createTarget", {"url": "about:blank"}, self._timeout_s)
            self.devtools.wait(lambda: self._tabs.current is not None, within_s=_CALL_S)
            return self._living_tab()
        return self._fresh_tab() if tab.is_dead else tab

    def _living_tab(self) -> Tab:
        tab = self._tabs.current
        if tab is None:
            raise PageError("no page is open; open one.")
        if tab.is_dead:
            raise PageError(_DEAD)
        return tab

    def _settle(self) -> None:
        """Wait until the page is loaded and has come to rest, or for as long as allowed."""
        with self._stopped_if_interrupted():
            self._come_to_rest()

    def _come_to_rest(self) -> None:
        wait = self.devtools.wait
        wait(self._is_loading, within_s=_START_S)
        for _ in range(_LOOKS):
            if not wait(lambda: not self._is_loading(), within_s=self._timeout_s):
                self._stop(self._living_tab())
                waited = f"{self._timeout_s:g} s"
                self._tabs.note(f"The page was still loading after {waited}; it was stopped.")
            tab_now = self._tabs.current
            if tab_now is None or tab_now.is_dead:
                return
            try:
                self._in_page("quiet", _MOMENT_MS, _CHANGING_MS)
            except _Navigated:
                continue
            if not self._is_loading():
                return

    @contextmanager
    def _stopped_if_interrupted(self) -> Iterator[None]:
        """Give up loading with the wait, or the next look would wait for the same page."""
        try:
            yield
        except ExplorationInterrupted:
            if self._tabs.current is not None:
                self._stop(self._tabs.current)
            raise

    def _stop(self, tab: Tab) -> None:
        self.devtools.send("Page.stopLoading", session=tab.session)
        tab.is_loading = False

    def _is_loading(self) -> bool:
        tab = self._tabs.current
        return tab is not None and tab.is_loading

    def _work(self, function: str, *arguments: int | str) -> dict[str, Any]:
        """Run a function of the page's script on the elements of the last observation."""
        tab = self._living_tab()
        if self._seen is None or self._seen[0] != tab.session:
            raise PageError(_CHANGED)
        try:
            found = self._run(tab, self._seen[1], function, arguments)
        except _Navigated:
            raise PageError(_CHANGED) from None
        problem = found.get("problem")
        if problem:
            raise PageError(f"{problem}.")
        return found

    def _in_page(self, function: str, *arguments: int | str) -> dict[str, Any]:
        """Run a function of the script in the document that is shown now.

        Raises:
            _Navigated: If another document comes meanwhile.
        """
        tab = self._living_tab()
        try:
            world = {"frameId": tab.target, "worldName": _WORLD}
            context = self._call("Page.createIsolatedWorld", world, tab=tab)["executionContextId"]
            place = {"expression": _KEEP + self._script, "contextId": context}
            made = self._call("Runtime.evaluate", place, tab=tab)
        except ProtocolError as error:
            raise _Navigated from error
        tools = made["result"].get("objectId", "")
        found = self._run(tab, tools, function, arguments)
        self._seen = (tab.session, tools)
        return found

    def _run(
        self, tab: Tab, tools: str, function: str, arguments: Sequence[int | str]
    ) -> dict[str, Any]:
        call = {
            "objectId": tools,
            "functionDeclaration": f"function (...given) {{ return this.{function}(...given); }}",
            "arguments": [{"value": argument} for argument in arguments],
            "returnByValue": True,
            "awaitPromise": True,
        }
        try:
            reply = self._call("Runtime.callFunctionOn", call, self._timeout_s, tab)
        except ProtocolError as error:
            raise _Navigated from error
        if "exceptionDetails" in reply:
            text = json.dumps(reply["exceptionDetails"].get("exception", {}))[:300]
            raise PageError(f"the page cannot be read: {text}")
        found = reply["result"].get("value")
        if not isinstance(found, dict):
            raise PageError("the page cannot be read: its scripts keep it from being looked at.")
        return found

    def _input(self, method: str, params: Mapping[str, Any]) -> None:
        try:
            self._call(method, params, tab=self._living_tab())
        except ProtocolError as error:
            raise PageError(f"{error.problem}; {_CHANGED}") from error

    def _press(self, key: Mapping[str, Any]) -> None:
        self._input("Input.dispatchKeyEvent", {**key, "type": "keyDown"})
        up = {name: value for name, value in key.items() if name != "text"}
        self._input("Input.dispatchKeyEvent", {**up, "type": "keyUp"})

    def _call(
        self,
        method: str,
        params: Mapping[str, Any],
        within_s: float = _CALL_S,
        tab: Tab | None = None,
    ) -> dict[str, Any]:
        """Call a method. A page that crashes or does not answer is given up."""
        session = tab.session if tab is not None else ""

        def is_lost() -> bool:
            return tab is not None and (tab.is_dead or not self._tabs.has(tab))

        try:
            within_s = min(within_s, self._timeout_s)
            return self.devtools.call(
                method, params, session=session, within_s=within_s, is_lost=is_lost
            )
        except DeadlineExceeded as error:
            if tab is None or method == "Page.navigate":
                raise
            tab.is_dead = True
            raise PageError(f"{error.problem}: {_DEAD}") from error

    def _observation(self, seen: Mapping[str, Any]) -> Observation:
        elements = tuple(
            Element(**{**item, "options": tuple(item["options"])}) for item in seen["elements"]
        )
        notes = tuple(self._tabs.take_notes())
        return Observation(**{**seen, "elements": elements, "notes": notes})


class _Navigated(Exception):
    """The document a call was meant for is not shown any more."""
