"""Errors of a browser and its pages."""

from __future__ import annotations

from taskweaver.role.errors import RoleError

INSTALL = (
    "install Chromium (Debian: `apt-get install chromium`) or Google Chrome, or set"
    " `web_explorer.browser_path` to the program of one"
)


class WebExplorerError(RoleError):
    """A problem of the WebExplorer.

    Attributes:
        problem: The problem, as the end of a sentence, or for a model to read.
    """

    def __init__(self, problem: str) -> None:
        super().__init__("web_explorer", problem)
        self.args = (problem,)


class BrowserError(WebExplorerError):
    """The browser cannot be used any more; another one may."""


class NoBrowser(BrowserError):
    """There is no browser here that can be used."""


class ExplorationInterrupted(BrowserError):
    """The exploration was interrupted."""

    def __init__(self) -> None:
        super().__init__("interrupted")
        self.args = ()


class DeadlineExceeded(BrowserError):
    """The browser lives, but did not answer a call in time."""


class ProtocolError(BrowserError):
    """The browser refused a call."""


class PageError(WebExplorerError):
    """An action could not be done on the page; the browser can continue.

    Its problem has the remedy.
    """
