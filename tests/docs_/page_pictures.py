"""Pictures of the page for the documentation: each part in both themes, at 1280 and 400 px.

``python tests/docs_/page_pictures.py docs/images/page [PROJECT]`` plays a session on the sample
data with the built-in analyst, and a search of the shipped idea, in a project folder that is made
unless there is one. It writes ``PART-WIDTH-THEME.webp``, takes some minutes, and needs Chromium.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/doors", "tests/doors/page")]

from agents import ask, new_session  # noqa: E402
from page_tab import PageTab, page_tab  # noqa: E402

from taskweaver.memory.branched.store import BranchedMemory  # noqa: E402

PROGRAM = [sys.executable, "-m", "taskweaver", "--trust", "-p"]
HEIGHT = 760
THEMES = ("light", "dark")
QUIET = (
    "!document.querySelector('.loading, .coming, .paper-bar')"
    " && [...document.images].every((one) => one.complete)"
)
"""Nothing that is shown waits for the server."""
LOOP = "import time\nfor step in range(6000):\n    print('step', step)\n    time.sleep(0.5)"
CHART = (
    "# Amount per region and month\nimport pandas as pd\nimport matplotlib.pyplot as plt\n"
    "orders = pd.read_csv('orders.csv', parse_dates=['date'])\n"
    "monthly = orders.groupby([orders['date'].dt.to_period('M').astype(str), 'region'])"
    "['amount'].sum().unstack()\n"
    "monthly.plot(figsize=(8, 3.6), xlabel='month', ylabel='amount', title='Amount per region')\n"
    "plt.show()"
)


def have_project(folder: Path) -> None:
    """Have a project with the sample data and a search."""
    if not (folder / "taskweaver_config.json").exists():
        subprocess.run([sys.executable, "-m", "taskweaver", "init", str(folder)], check=True)
    if not (folder / "experiments" / "tabular").exists():
        idea = ROOT / "project" / "ideas" / "tabular.md"
        wanted = ["search", str(idea), "--name", "tabular", "--steps", "24", "--plain"]
        subprocess.run([*PROGRAM, str(folder), *wanted], check=True)


@contextmanager
def serving(project: Path) -> Iterator[str]:
    """Serve the page of a project as a user does; give the address with the token."""
    wanted = ["web", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        [*PROGRAM, str(project), *wanted], stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            found = (re.search(r"http://\S+#token=\S+", line) for line in program.stdout)
            yield next(one[0] for one in found if one)
        finally:
            program.terminate()


def fill(client: httpx2.Client, project: Path) -> str:
    """Have sessions as a person leaves them; return the address of the one that is shown."""
    ask(client, new_session(client, "Stock check"), "how many orders are there per product?")
    ask(client, new_session(client, "Returns"), "total amount per region")
    session = new_session(client, "Sales of the year")
    ask(client, session, "total amount per region in orders.csv")
    ask(client, session, CHART, kind="code")
    ask(client, session, "top 5 days by total amount")
    for name, at in (("by-product", 1), ("price-effect", 2), ("long-run", 2)):
        client.post(f"{session}/branches", json={"name": name, "at_round": at})
    ask(client, session, "mean amount per product", branch="by-product")
    ask(client, session, "and per month", branch="by-product")
    wrong = "orders['price'] = orders['amount'] / orders['cost']"
    ask(client, session, wrong, kind="code", branch="price-effect")
    client.patch(f"{session}/branches/price-effect", json={"title": "price-per-unit"})
    client.post(f"{session}/memory", json={"text": "Amounts are in euros, without tax."})
    folder = project / "workspace" / "sessions" / session.rpartition("/")[2]
    with BranchedMemory(folder / "memory.sqlite") as memory:
        memory["main"].core.set("goal", "compare the regions")
        memory["by-product"].core.set("goal", "find the best product")
        memory["by-product"].core.set("currency", "EUR")
    return session


class Pictures:
    """Pictures of the page, in a folder."""

    def __init__(self, page: PageTab, folder: Path) -> None:
        self._page = page
        self._folder = folder

    def take(
        self,
        part: str,
        show: Callable[[int], None] = lambda _: None,
        widths: Sequence[int] = (1280, 400),
    ) -> None:
        """Take a part in both themes and some widths; `show(width)` brings it into view."""
        for width in widths:
            for theme in THEMES:
                self._view(width, theme)
                show(width)
                self._page.value(
                    "document.activeElement.matches('textarea') || document.activeElement.blur()"
                )
                self._page.until(QUIET)
                self._page.value("new Promise((done) => setTimeout(done, 400))")  # folds move
                shot = self._page.tab.call("Page.captureScreenshot", format="png")
                picture = Image.open(io.BytesIO(b64decode(shot["data"]))).convert("RGB")
                file = self._folder / f"{part}-{width}-{theme}.webp"
                picture.save(file, lossless=True, quality=100, method=6)

    def _view(self, width: int, theme: str) -> None:
        self._page.tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": theme}
        self._page.tab.call("Emulation.setEmulatedMedia", features=[scheme])


def on_phone(page: PageTab, selector: str, text: str) -> Callable[[int], None]:
    """Return a function that presses a part of the page where it is as narrow as on a phone."""
    return lambda width: page.press_on(selector, text) if width < 760 else None


def pane(page: PageTab, wanted: str) -> Callable[[int], None]:
    """Return a function that shows a pane on a phone."""
    return on_phone(page, ".phone-bar button", wanted)


def go(page: PageTab, session: str, place: str) -> None:
    """Go to a moment of a session, in a wide window."""
    page.tab.view(1280)
    page.value(f"location.hash = '#/s/{session.rpartition('/')[2]}/{place}'")
    page.shows("", ".composer, .moment-bar")


def press(page: PageTab, key: str) -> None:
    """Press a key outside of fields, in a wide window."""
    page.tab.view(1280)
    page.value("document.activeElement.blur()")
    page.key(key)


def take_session(page: PageTab, pictures: Pictures, session: str) -> None:
    """Take the conversation and the tree of a session."""
    go(page, session, "main")
    page.finished(3)
    pictures.take("session", pane(page, "Chat"))
    pictures.take("tree", pane(page, "Tree"), [400])
    go(page, session, "main/2")
    page.shows("as it was", ".moment-bar")
    page.until("document.querySelector('.conversation .paper img')?.complete")
    pictures.take("moment", pane(page, "Chat"))
    press(page, "f")
    page.shows("variable", ".carried-list")
    pictures.take("fork", pane(page, "Data"))
    press(page, "Escape")
    press(page, "m")
    page.shows("Map", ".map")
    pictures.take("map", pane(page, "Chat"))
    press(page, "m")
    go(page, session, "price-effect")
    page.shows("KeyError", ".conversation")
    pictures.take("failed", pane(page, "Chat"))
    go(page, session, "long-run")
    page.ask(f"/run\n{LOOP}")
    page.shows("step 3", ".output.live")
    pictures.take("running", pane(page, "Chat"))


def take_data(page: PageTab, pictures: Pictures, session: str) -> None:
    """Take the tabs of the inspector, and a table."""
    go(page, session, "main")
    page.finished(3)
    for tab in ("Figures", "Memory", "Why", "Files", "Data"):
        page.tab.view(1280)
        page.press_on(".data-pane .tab", tab)
        on_a_phone = pane(page, "Memory" if tab == "Memory" else "Data")
        pictures.take(tab.lower(), on_a_phone, [400] if tab == "Data" else [1280, 400])
    page.tab.view(1280)
    page.press_on(".variable", "orders")
    page.button("Show the table")
    page.shows("400 rows", "dialog")
    pictures.take("table")
    page.tab.view(1280)
    page.press_on("dialog button", "Close")
    page.hides("dialog")


def take_comparison(page: PageTab, pictures: Pictures, session: str) -> None:
    """Take a comparison with a merge that has a conflict."""
    page.tab.view(1280)
    page.value(f"location.hash = '#/c/{session.rpartition('/')[2]}/main/by-product'")
    page.button("Merge...")
    page.shows("goal", ".conflict legend")
    pictures.take("compare", on_phone(page, ".compare-tabs .tab", "by-product"))

    def show_merge(width: int) -> None:
        on_phone(page, ".compare-tabs .tab", "Differences")(width)
        page.value("document.querySelector('.merge').scrollIntoView({block: 'end'})")

    pictures.take("merge", show_merge)


def take_elsewhere(page: PageTab, pictures: Pictures) -> None:
    """Take the list, the searches and the dialogs of the project."""
    page.tab.view(1280)
    page.value("location.hash = '#/'")
    page.shows("running", ".session-list")
    pictures.take("sessions")
    for command, part in (("Settings", "settings"), ("Help", "help")):
        page.tab.view(1280)
        page.look_for(command)
        page.key("Enter")
        page.until("document.querySelector('dialog:not(.palette)')")
        pictures.take(part)
        page.key("Escape")
        page.hides("dialog")
    page.value("location.hash = '#/searches/tabular'")
    page.until("document.querySelector('.search-tree .node')")
    page.press_on(".search-tree .node", "best")
    pictures.take("search")


def take_question(page: PageTab, pictures: Pictures, folder: Path) -> None:
    """Take code that waits for a person, in a project that asks."""
    subprocess.run([sys.executable, "-m", "taskweaver", "init", str(folder)], check=True)
    file = folder / "taskweaver_config.json"
    file.write_text(
        file.read_text().replace("{", '{"code_interpreter.require_confirmation": true,', 1)
    )
    with serving(folder) as address:
        page.tab.view(1280)
        page.open(address)
        page.until("document.querySelector('.composer textarea')")
        page.ask("total amount per region in orders.csv")
        page.shows("Run this code?", ".ask-card")
        pictures.take("asks", pane(page, "Chat"))
        page.tab.view(1280)
        page.press_on(".ask-card button", "Deny")
        page.finished(1)
        page.leave()


def main(target: Path, project: Path) -> None:
    """Write the pictures."""
    target.mkdir(parents=True, exist_ok=True)
    have_project(project)
    with page_tab() as page, tempfile.TemporaryDirectory() as other:
        pictures = Pictures(page, target)
        with serving(project) as address:
            url, token = address.split("/#token=")
            with httpx2.Client(base_url=url, headers={"X-API-Key": token}, timeout=300) as client:
                session = fill(client, project)
                page.tab.view(1280)
                page.open(address)
                take_session(page, pictures, session)
                take_data(page, pictures, session)
                take_comparison(page, pictures, session)
                take_elsewhere(page, pictures)
                client.post(f"{session}/stop", json={"branch": "long-run"})
                page.leave()
        take_question(page, pictures, Path(other) / "asking")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(sys.argv[1]), Path(made) / "sales")
