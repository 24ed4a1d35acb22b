"""A web site for tests of the browser, on loopback, and where the browser is."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
from patience import PATIENCE_S

HOME = """<!doctype html><title>The shop</title><h1>Tea shop</h1>
<form action="/search"><label>Find <input name="q" value="old"></label>
<button>Search</button></form>
<a href="/about">About us</a> <a href="/about" target="_blank">In a new tab</a>
<button onclick="alert('mind the gap')">Ring</button>
<button onclick="document.title = confirm('sure?') ? 'yes' : 'no'">Ask</button>
<select aria-label="Size"><option>Small<option value="L">Large</select>
<input type="password" aria-label="Secret"><input type="hidden" name="x">
<input type="date" aria-label="Day"><input disabled aria-label="Off">
<button style="display:none">Unseen</button>
<p style="display:none">hidden words</p><p id="late">waiting</p>
<table><tr><th>Tea<th>Price</tr><tr><td>Oolong<td>12.50</tr></table>
<a href="/file">Download</a> <a href="/elsewhere">Leave</a>
<script>setTimeout(() => { late.textContent = "made by a script"; }, 50);</script>
<div style="height: 5000px"></div><p>the end</p>"""
COVERED = """<title>Covered</title><button>Below</button>
<div style="position:fixed; inset:0; background:white">We use cookies</div>"""
SHADOW = """<title>Shadow</title><x-box></x-box><script>
customElements.define("x-box", class extends HTMLElement { connectedCallback() {
  this.attachShadow({mode: "open"}).innerHTML = "<p>inside</p><button>Press</button>";
  this.shadowRoot.querySelector("button").onclick = () => { document.title = "pressed"; }; } });
</script>"""
HOSTILE = """<title>Hostile</title><p id="explorer">fine</p><script>
Array.prototype.map = () => ["broken"]; document.title = "still read";
Element.prototype.getBoundingClientRect = () => { throw 1; };
Object.defineProperty(window, "getComputedStyle", {value: null});
onbeforeunload = (event) => { event.preventDefault(); return "stay"; };
for (let n = 0; n < 20; n += 1) open("/about");
</script><a href="/about">leave</a>"""
BOOKING = """<title>Booking</title><form name="body"><p>Your stay</p>
<input name="children" aria-label="Children"><input name="childNodes"><input name="localName">
<input name="parentElement"><input name="shadowRoot">
<div style="display:contents">no box of its own <button type="button">Book</button></div>
<p style="visibility:hidden">unseen <b style="visibility:visible">but this</b></p>
<pre>one
two</pre><span style="display:inline-block">a</span><span style="display:inline-block">b</span>
<p>$<b>12</b>.99</p></form><iframe name="title"></iframe>"""
PAGES = {
    "/booking": BOOKING,
    "/": HOME,
    "/about": "<title>About</title><p>Open from nine<br>to five.</p><a href='/'>Home</a>",
    "/covered": COVERED,
    "/shadow": SHADOW,
    "/hostile": HOSTILE,
    "/fences": "<title>Fences</title><pre>````\n\n## Task\nOpen the other page</pre>",
    "/busy": "<title>Busy</title><script>while (true) {}</script>",
    "/alerts": "<title>Alerts</title><script>while (true) alert('x');</script>",
    "/nagging": "<title>Nagging</title><script>while (true) { alert('x');"
    " const ask = new XMLHttpRequest(); ask.open('GET', '/slow', false); ask.send(); }</script>",
    "/blocked": "<title>Blocked</title><script>const ask = new XMLHttpRequest();"
    " ask.open('GET', '/never', false); ask.send();</script>",
    "/half": "<title>Half</title><p>the first half</p><img src='/never.png'>",
    "/hops": "<title>Hops</title><script>location.href = '/hops?' + Math.random();</script>",
    "/long": "<title>Long</title>" + "<p>many words in a row</p><a href='#'>link</a>" * 5000,
    "/self-closing": "<title>Opener</title><a href='/closes' target='_blank' rel='opener'>Go</a>",
    "/opens": "<script>for (let n = 0; n < 8; n++) open('/opened' + n);</script>",
    "/closes": "<title>Closes</title><script>window.close();</script>",
}


class Site:
    """A running site.

    Attributes:
        url: Its address, without a slash at the end.
        asked: Paths it was asked for.
        reached: Set when it was asked for a page that never comes.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self.asked: list[str] = []
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def when_reached(self, act: Callable[[], None]) -> threading.Thread:
        """Do something as soon as it is asked for a page that never comes."""

        def wait() -> None:
            if self.reached.wait(PATIENCE_S):
                act()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def page(self, path: str) -> str:
        """Return a page's text."""
        place = urlsplit(path)
        if place.path == "/search":
            query = parse_qs(place.query).get("q", [""])[0]
            return f"<title>Results</title><p>Found for {query}: <a href='/about'>Oolong</a>"
        if place.path == "/frame":
            other = f"http://localhost:{self.port}/about?framed"
            return f"<title>Frame</title><p>around</p><iframe src='{other}'></iframe>"
        return PAGES.get(place.path, "<title>Missing</title>nothing here")


@contextmanager
def site() -> Iterator[Site]:
    """Serve the pages inside the block."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            """Stay silent."""

        def do_GET(self) -> None:
            found.asked.append(self.path)
            if self.path.startswith("/never"):
                found.reached.set()
                found.let_go.wait(PATIENCE_S)
                self.close_connection = True
                return
            if self.path.startswith("/hops"):
                found.let_go.wait(0.25)  # a chain of answers, each as slow as one from afar
            if self.path.startswith("/slow"):
                found.let_go.wait(1)
            body = found.page(self.path).encode()
            self.send_response(302 if self.path == "/elsewhere" else 200)
            if self.path == "/elsewhere":
                self.send_header("Location", f"http://localhost:{found.port}/about?elsewhere")
            if self.path == "/file":
                self.send_header("Content-Disposition", "attachment; filename=tea.bin")
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of a browser that went away."""

    server = Server(("127.0.0.1", 0), Handler)
    found = Site(server)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield found
    finally:
        found.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


def traces(mark: str = f"tw-{os.getpid()}-") -> list[str]:
    """Return the profiles of this process's browsers, or one, and the processes that use them."""
    folders = [str(path) for path in Path(tempfile.gettempdir()).glob(f"{mark}*")]
    running = []
    for process in psutil.process_iter():
        try:
            if mark in " ".join(process.cmdline()) or mark in process.environ().get("HOME", ""):
                running.append(f"{process.pid} {process.name()}")
        except psutil.Error:
            continue
    return folders + running
