"""What can go wrong in front of a browser."""

from __future__ import annotations

from taskweaver.role.errors import RoleError

_ROLE = "web_explorer"
INSTALL = (
    "install Chromium (Debian: `apt-get install chromium`) or Google Chrome, or set"
    " `web_explorer.browser_path` to the program of one"
)


class BrowserError(RoleError):
    """The browser cannot be used any more; another one may.

    Attributes:
        problem: What happened, as the end of a sentence.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(_ROLE, problem)
        self.args = (problem,)


class NoBrowser(BrowserError):
    """There is no browser here that can be used."""


class ExplorationInterrupted(BrowserError):
    """Somebody gave up what the browser was doing."""

    def __init__(self) -> None:
        super().__init__("interrupted")
        self.args = ()


class DeadlineExceeded(BrowserError):
    """The browser lives, but did not answer a call in time."""


class ProtocolError(BrowserError):
    """The browser refused a call."""


class PageError(RoleError):
    """An action could not be done on the page; the browser can go on.

    Attributes:
        problem: What happened and what to do instead, for a model to read.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(_ROLE, problem)
        self.args = (problem,)
