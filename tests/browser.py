"""A tab of a real Chromium for tests: what a page shows, asks for and complains of."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sizes import is_long

from taskweaver.ext_role.web_explorer.browser import DevTools, DevToolsEvent, ProtocolError

WITHIN_S = 60.0
MOST_PAGES = 10
COMPLAINTS = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
COMPLAINTS |= {"Page.javascriptDialogOpening"}


class Tab:
    """A page in a browser.

    Attributes:
        requests: Addresses it asked for.
        complaints: What it wrote to its console, exceptions and refusals among it.
        noted: Numbers of both when its newest document took the place of the one before.
    """

    def __init__(self, tools: DevTools, session: str) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.noted = (0, 0)
        self._tools, self._session = tools, session

    def heard(self, event: DevToolsEvent) -> None:
        if event.session != self._session:
            return
        if event.method == "Network.requestWillBeSent":
            self.requests.append(event.params["request"]["url"])
        if event.method in COMPLAINTS:
            self.complaints.append(str(event.params))
        if event.method == "Page.frameNavigated" and "parentId" not in event.params["frame"]:
            self.noted = (len(self.requests), len(self.complaints))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._tools.call(method, params, session=self._session, within_s=WITHIN_S)

    def value(self, expression: str) -> Any:
        """Return what an expression in the page gives; asked again of a page that took its place.

        A navigation ends the answer that is awaited, also one that was about to come.
        """
        for _ in range(MOST_PAGES):
            try:
                done = self.call(
                    "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
                )
            except ProtocolError as error:
                if not re.search("navigated|context was destroyed|find context", str(error)):
                    raise
            else:
                assert "exceptionDetails" not in done, done
                return done["result"].get("value")
        pytest.fail(f"{MOST_PAGES} pages took each other's place")

    def load(self, page: Path, place: str = "") -> None:
        """Open a page at a place in it, and wait until it is loaded with what it asks for."""
        self._begin(page, place)
        self.value(
            "new Promise((done) => { const look = () => document.readyState == 'complete'"
            " && location.href != 'about:blank' ? done(true) : setTimeout(look, 5); look(); })"
        )

    def _begin(self, page: Path, place: str = "") -> None:
        self.call("Page.navigate", url="about:blank")
        self.requests.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=f"{page.as_uri()}{place}")

    def open(self, page: Path) -> None:
        self._begin(page)
        assert self.value(
            "new Promise((done) => { const look = () =>"
            " document.body?.dataset.ready ? done(true) : setTimeout(look, 5); look(); })"
        )

    def text(self, selector: str = "main") -> str:
        return str(self.value(f"document.querySelector('{selector}').innerText"))

    def view(self, width: int, mode: str = "light", height: int = 900) -> None:
        """Set the size of the window, and `light` or `dark` colours, for pages opened next.

        Nothing turns while it works: each frame of that would be drawn without a graphics card.
        """
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        wanted = {"prefers-color-scheme": mode, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wanted.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def extent(self) -> tuple[int, int, int]:
        """Return the document's width, how far it is scrolled to the right, and downwards."""
        width, x, y = self.value(
            "[document.documentElement.scrollWidth, window.scrollX, window.scrollY]"
        )
        return width, x, y

    def contrast(self, selector: str) -> float:
        """Return the contrast of an element's text and the body's ground, as WCAG measures it."""
        colours = self.value(
            f"[getComputedStyle(document.querySelector('{selector}')).color,"
            " getComputedStyle(document.body).backgroundColor]"
        )
        return contrast(*([int(part) for part in re.findall(r"\d+", one)[:3]] for one in colours))

    def press(self, key: str) -> None:
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[key]
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def click(self, node_id: str) -> None:
        x, y = self.value(
            "(() => { const box = [...document.querySelectorAll('svg .node')]"
            f".find((mark) => mark.ariaLabel.startsWith('{node_id} '))"
            ".querySelector('.shape').getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


BROWSERS: set[int] = set()
"""Process ids of the browsers of tabs: they start and end processes for pages as they like."""


@contextmanager
def chromium_tab() -> Iterator[Tab]:
    """Open a tab in a browser of its own; skip the test where none is installed."""
    tabs: list[Tab] = []

    def heard(event: DevToolsEvent) -> None:
        for tab in tabs:
            tab.heard(event)

    with closing(DevTools(find_quick_browser(), heard)) as tools:
        BROWSERS.add(tools.process.pid)
        target = tools.call("Target.createTarget", {"url": "about:blank"}, within_s=WITHIN_S)
        wanted = {"targetId": target["targetId"], "flatten": True}
        found = tools.call("Target.attachToTarget", wanted, within_s=WITHIN_S)
        tabs.append(Tab(tools, found["sessionId"]))
        for domain in ("Page", "Runtime", "Log", "Network"):
            tabs[0].call(f"{domain}.enable")
        yield tabs[0]


def contrast(one: Iterable[int], other: Iterable[int]) -> float:
    """Return the contrast of two colours, each red, green and blue up to 255, by WCAG."""
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Iterable[int]) -> float:
    parts = [part / 255 for part in colour]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def find_quick_browser() -> Path:
    """Return the headless shell if it is installed; at full size, or without it, Chromium.

    It shows the same with a fifth to a half less processor time.
    """
    return find_chromium(*(() if is_long() else ("chromium-headless-shell",)))


def find_chromium(*first: str) -> Path:
    """Return the first browser that is installed: of the names in `first`, then of the usual ones.

    Skips the test where there is none.
    """
    names = (*first, "chromium", "google-chrome", "chromium-browser")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and os.environ.get("BROWSER_REQUIRED"):
        pytest.fail("no Chromium here: apt-get install chromium")
    if found is None:
        pytest.skip("no Chromium here")
    return Path(found)
