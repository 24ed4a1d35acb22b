"""The open tabs of a browser, and the handling of dialogs, downloads and new tabs.

Dialogs are dismissed, downloads denied, addresses that are not allowed refused (of pages and of
frames in them, redirects included), and new tabs followed. Each leaves a note for the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from taskweaver.ext_role.web_explorer.browser import DevToolsEvent, PageError
from taskweaver.utils.text import shorten

MAX_TABS = 5
_MAX_NOTES = 10
_NOTE_CHARS = 300


class Addresses:
    """The addresses a browser may open: web pages, of some hosts or of all."""

    def __init__(self, allowed_hosts: Sequence[str]) -> None:
        """Take names of hosts, each with all hosts below. No names allow every host."""
        self._hosts = [host.strip().lower().strip(".") for host in allowed_hosts]

    def problem(self, url: str) -> str:
        """Say why an address may not be opened, or nothing."""
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError as error:
            return f"{url[:200]!r} is no address: {error}"
        if parts.scheme not in {"http", "https"}:
            return f"only http and https addresses can be opened, not {url[:200]!r}"
        if not host or port == 0:
            return f"{url[:200]!r} names no host"
        is_known = any(host == name or host.endswith(f".{name}") for name in self._hosts)
        if self._hosts and not is_known:
            return (
                f"the host {host} is not allowed here (web_explorer.allowed_hosts:"
                f" {', '.join(self._hosts)})"
            )
        return ""

    def checked(self, text: str) -> str:
        """Return an address with a scheme, checked against the allowed hosts.

        Raises:
            PageError: If it may not be opened.
        """
        url = text.strip()
        if "://" not in url:
            url = f"https://{url}"
        problem = self.problem(url)
        if problem:
            raise PageError(f"{problem}.")
        return url


@dataclass(slots=True)
class Tab:
    """One tab, by the protocol session and the tab's id, which is the id of the main frame too.

    `is_dead` is a page that crashed or stopped answering.
    """

    session: str
    target: str
    is_loading: bool = False
    is_dead: bool = False


class Tabs:
    """The open tabs, of which the newest is the current tab."""

    def __init__(self, addresses: Addresses, send: Callable[..., None]) -> None:
        self._addresses = addresses
        self._send = send
        self._open: list[Tab] = []
        self._refused: dict[str, str] = {}  # targets of tabs that are closed at once, by session
        self._notes: deque[str] = deque(maxlen=_MAX_NOTES)
        self._handlers: dict[str, Callable[[DevToolsEvent], None]] = {
            "Target.attachedToTarget": self._attached,
            "Target.detachedFromTarget": self._detached,
            "Page.frameStartedLoading": self._loading,
            "Page.frameRequestedNavigation": self._loading,
            "Page.frameStoppedLoading": self._loaded,
            "Page.javascriptDialogOpening": self._dialog,
            "Inspector.targetCrashed": self._crashed,
            "Fetch.requestPaused": self._request,
            "Browser.downloadWillBegin": self._download,
        }

    @property
    def current(self) -> Tab | None:
        """The tab that is shown."""
        return self._open[-1] if self._open else None

    @property
    def count(self) -> int:
        """Number of open tabs."""
        return len(self._open)

    def has(self, tab: Tab) -> bool:
        """Return whether a tab is still open."""
        return tab in self._open

    def take_notes(self) -> list[str]:
        """Return the notes since the last call."""
        notes = list(self._notes)
        self._notes.clear()
        return notes

    def note(self, text: str) -> None:
        """Add a note."""
        self._notes.append(shorten(text, _NOTE_CHARS))

    def handle(self, event: DevToolsEvent) -> None:
        """Handle an event."""
        handler = self._handlers.get(event.method)
        if handler is not None:
            handler(event)

    def forget(self, tab: Tab) -> None:
        """Close a tab, in any state."""
        if tab in self._open:
            self._open.remove(tab)
            self._send("Target.closeTarget", {"targetId": tab.target})

    def _tab(self, event: DevToolsEvent) -> Tab | None:
        """Return the tab whose main frame an event is about."""
        frame = event.params.get("frameId", "")
        is_it = (tab for tab in self._open if tab.session == event.session and tab.target == frame)
        return next(is_it, None)

    def _attached(self, event: DevToolsEvent) -> None:
        session = str(event.params["sessionId"])
        target = str(event.params["targetInfo"]["targetId"])
        if len(self._open) >= MAX_TABS:
            # The headless shell hangs when a tab is closed before it has started, so it is started;
            # its requests fail.
            self._refused[session] = target
            self._send("Runtime.runIfWaitingForDebugger", session=session)
            self._send("Target.closeTarget", {"targetId": target})
            self.note(f"The page opened a further tab; it was closed, {MAX_TABS} are enough.")
            return
        if self._open:
            self.note("The page opened a new tab, which is shown now; go back to close it.")
        self._open.append(Tab(session, target))
        for method in ("Page.enable", "Inspector.enable", "Runtime.runIfWaitingForDebugger"):
            self._send(method, session=session)

    def _detached(self, event: DevToolsEvent) -> None:
        session = str(event.params.get("sessionId"))
        self._refused.pop(session, None)
        for tab in [tab for tab in self._open if tab.session == session]:
            if tab is self.current:
                self.note("The tab closed.")
            self._open.remove(tab)

    def _loading(self, event: DevToolsEvent) -> None:
        tab = self._tab(event)
        if tab is not None and event.params.get("disposition", "currentTab") == "currentTab":
            tab.is_loading = True

    def _loaded(self, event: DevToolsEvent) -> None:
        tab = self._tab(event)
        if tab is not None:
            tab.is_loading = False

    def _dialog(self, event: DevToolsEvent) -> None:
        kind = event.params.get("type", "alert")
        is_leaving = kind == "beforeunload"
        accept = {"accept": is_leaving}
        self._send("Page.handleJavaScriptDialog", accept, session=event.session)
        if not is_leaving:
            text = event.params.get("message", "")
            self.note(f"The page showed a dialog ({kind}), which was dismissed: {text!r}")

    def _crashed(self, event: DevToolsEvent) -> None:
        for tab in self._open:
            if tab.session == event.session:
                tab.is_dead, tab.is_loading = True, False
                self.note("The page crashed.")

    def _request(self, event: DevToolsEvent) -> None:
        id_, url = event.params["requestId"], str(event.params["request"]["url"])
        problem = self._addresses.problem(url)
        is_refused = event.params.get("frameId") in self._refused.values()
        if not problem and not is_refused:
            self._send("Fetch.continueRequest", {"requestId": id_})
            return
        self._send("Fetch.failRequest", {"requestId": id_, "errorReason": "BlockedByClient"})
        if any(tab.target == event.params.get("frameId") for tab in self._open):
            self.note(f"A page was not opened: {problem}.")

    def _download(self, event: DevToolsEvent) -> None:
        name = event.params.get("suggestedFilename", "")
        self.note(f"A download was denied: {name!r}")
