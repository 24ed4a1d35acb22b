"""The page in a browser as a person uses it: clicks, keys, and waiting for what is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from browser import Tab, chromium_tab

_VIRTUAL = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "Tab": 9, "End": 35}
ALT, CTRL, SHIFT = 1, 2, 8
_WITHIN_MS, _PAUSE_MS = 45_000, 200
_MOST_CLICKS = 20


class PageTab:
    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self._opened = 0
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def value(self, expression: str) -> Any:
        return self.tab.value(expression)

    def open(self, address: str) -> None:
        """Open an address anew, and wait until the page is drawn.

        A query of its own makes it another page than the one before. It takes that page's place in
        the same process: one for an empty page between them would cost more than the page.
        """
        self._opened += 1
        place, mark, hash_ = address.partition("#")
        url = f"{place.partition('?')[0]}?{self._opened}"
        self.value("window.isLeft = true")
        assert "errorText" not in self.tab.call("Page.navigate", url=f"{url}{mark}{hash_}")
        self.until("!window.isLeft && document.body?.dataset.ready === 'yes'")
        requests, complaints = self.tab.noted
        self.tab.requests[:requests] = [url]  # without those of the page before
        del self.tab.complaints[:complaints]

    def reopen(self) -> None:
        """Open the page anew where it is; the next test may have it."""
        mark, address = self.value("[window.mark, location.href]")
        self.open(address)
        self.value(f"(window.mark = {json.dumps(mark)}, null)")

    def go(self, place: str) -> None:
        """Go to another place of the page, and wait for two frames after it."""
        self.value(
            "new Promise((done) => { addEventListener('hashchange', () => requestAnimationFrame("
            "() => requestAnimationFrame(done)), {once: true});"
            f" location.hash = {json.dumps(place)}; }})"
        )

    def leave(self) -> None:
        """Leave a page of a server for an empty one: its connections end.

        The empty page has the origin of the server, for which the browser keeps its process.
        """
        if self.value("location.protocol") == "http:":
            self.value("location.replace(URL.createObjectURL(new Blob([])))")
            self.until("location.protocol === 'blob:'")

    def until(self, condition: str) -> Any:
        """Wait until a condition holds in the page; return its value.

        The longer it takes, the less often it is looked at: to look may lay the page out.
        """
        found = self.value(
            f"new Promise((done) => {{ const until = Date.now() + {_WITHIN_MS}; let pause = 10;"
            f" const look = () => {{ let found = null; try {{ found = {condition}; }} catch {{}}"
            " if (found) return done(typeof found === 'object' ? true : found);"
            " if (Date.now() > until) return done(null);"
            f" pause = Math.min(pause * 1.5, {_PAUSE_MS}); setTimeout(look, pause); }}; look(); }})"
        )
        if not found:
            shown = self.value("document.getElementById('app').innerText")
            raise AssertionError(f"{condition} did not come; {self.tab.complaints[-3:]}\n{shown}")
        return found

    def shows(self, text: str, selector: str = "#app") -> None:
        self.until(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            f".some((one) => one.innerText.includes({json.dumps(text)}))"
        )

    def is_drawn(self) -> None:
        """Wait until the page is drawn with all that has happened."""
        self.value("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def hides(self, selector: str) -> None:
        """Wait until no element is visible; a dialog that closes takes keys until it is gone."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        self.until(f"!{found}.some((one) => one.matches('dialog') || one.checkVisibility())")

    def press_on(self, selector: str, text: str = "", modifiers: int = 0) -> None:
        """Click the first visible element that has a text, in its middle, as a mouse does.

        It may have moved by the time the mouse is there; then it is clicked where it is now.
        """
        for _ in range(_MOST_CLICKS):
            x, y = self._aim(selector, text)
            for kind in ("mousePressed", "mouseReleased"):
                self.tab.call(
                    "Input.dispatchMouseEvent",
                    type=kind, x=x, y=y, button="left", clickCount=1, modifiers=modifiers,
                )  # fmt: skip
            if self.value("window.isMissed") is not True:
                return
        raise AssertionError(f"{selector} {text} moved from each of {_MOST_CLICKS} clicks")

    def _aim(self, selector: str, text: str) -> tuple[float, float]:
        """Wait for an element, and return its middle; the page notes if the next click misses."""
        x, y = self.value(
            "new Promise((done) => { const look = () => {"
            f" const found = [...document.querySelectorAll({json.dumps(selector)})].find((one) =>"
            f" (one.offsetParent || one instanceof SVGElement)"
            f" && (one.innerText ?? one.textContent).includes({json.dumps(text)})"
            " && !one.disabled); if (!found) return setTimeout(look, 30);"
            " found.scrollIntoView({block: 'nearest'}); const box = found.getBoundingClientRect();"
            " window.isMissed = true; addEventListener('click', ({target}) => { window.isMissed ="
            " !found.contains(target); }, {capture: true, once: true});"
            " done([box.x + box.width / 2, box.y + box.height / 2]); }; look(); })"
        )
        return x, y

    def button(self, text: str) -> None:
        self.press_on("button, a, summary, [role=treeitem]", text)

    def key(self, key: str, modifiers: int = 0) -> None:
        text = {"text": key} if len(key) == 1 and not modifiers else {}
        if key == "Enter":
            text = {"text": "\r"}
        code = _VIRTUAL.get(key, ord(key.upper()) if len(key) == 1 else 0)
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.tab.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.tab.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def press(self, *keys: str) -> None:
        """Press keys outside of fields."""
        self.value("document.activeElement.blur()")
        for key in keys:
            self.key(key)

    def type(self, text: str, selector: str = "") -> None:
        if selector:
            self.press_on(selector)
        self.tab.call("Input.insertText", text=text)

    def look_for(self, command: str) -> None:
        """Type the name of a command into the palette, and wait until the list is drawn with it.

        The list has it once the server has said what it can do, and is longer before it is typed.
        """
        self.key("k", CTRL)
        self.until("document.activeElement.matches('.palette input')")
        self.type(command)
        first = "document.querySelector('.palette [role=option]')"
        self.until(f"{first}?.innerText.includes({json.dumps(command)})")

    def new_session(self) -> None:
        self.value(
            "(() => { const token = localStorage.getItem('taskweaver.token');"
            " const headers = {'Content-Type': 'application/json',"
            " ...(token ? {Authorization: `Bearer ${token}`} : {})};"
            " return fetch('agent/v1/sessions', {method: 'POST', headers, body: '{}'})"
            ".then((made) => made.json()).then(({session_id}) => {"
            " location.hash = `#/s/${session_id}/main`; }); })()"
        )
        self.until("document.querySelector('.panes .composer textarea')")

    def ask(self, text: str) -> None:
        self.type(text, ".composer textarea")
        self.key("Enter")

    def finished(self, number: int) -> None:
        self.until(f"document.querySelector('#round-{number}.over')")

    def address(self) -> str:
        """Return the part of the address behind the mark."""
        return str(self.value("location.hash"))


@contextmanager
def page_tab() -> Iterator[PageTab]:
    with chromium_tab() as tab:
        yield PageTab(tab)


def drop_file(page: PageTab, name: str, content: str, selector: str = ".composer") -> None:
    page.value(
        "(() => { const data = new DataTransfer();"
        f" data.items.add(new File([{json.dumps(content)}], {json.dumps(name)}));"
        f" document.querySelector({json.dumps(selector)}).dispatchEvent("
        "new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})); })()"
    )
