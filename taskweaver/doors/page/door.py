"""Routes of the page's files, and conversations as files. The rest is the agent API's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.responses import Response

from taskweaver.page.assets import PageFile, page_files
from taskweaver.page.one_file import conversation_page
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import invalid_query
from taskweaver.server.operations import Call, Door, missing, operation, optional_number
from taskweaver.session.export import export
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.text import title_line

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:;"
    " connect-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types 'none'"
)
_BRANCH = "/agent/v1/sessions/{session_id}/branches/{branch}"
_UNTIL = {"until": "Number of the last round; all if it is left out"}
_SUFFIXES = {"notebook": ".ipynb", "script": ".py"}
_FOR_GOOD = "public, max-age=31536000, immutable"


class PageDoor(Door):
    """The page's files, and conversations as pages, notebooks and scripts."""

    def __init__(self, sessions: AgentSessions) -> None:
        """Offer the page; conversations are those of the caller in `sessions`."""
        self._sessions = sessions
        self._files = page_files()

    @operation("GET", "/", "The page for browsers", answer_type="text/html", is_public=True)
    async def _start(self, call: Call) -> Response:
        headers = {"Content-Security-Policy": _POLICY, "Cross-Origin-Opener-Policy": "same-origin"}
        return _response(call, self._files.start, headers | {"Cache-Control": "no-cache"})

    @operation(
        "GET",
        "/page/{version}/{path:path}",
        "A file of the page",
        answer_type="text/javascript",
        is_public=True,
    )
    async def _file(self, call: Call) -> Response:
        path = call.path("path")
        found = self._files.files.get(path)
        if found is None or call.path("version") != self._files.version:
            raise missing("File", path[:128])
        return _response(call, found, {"Cache-Control": _FOR_GOOD})

    @operation(
        "GET",
        f"{_BRANCH}/page",
        "The conversation of a branch as one page that needs no server",
        query=_UNTIL,
        answer_type="text/html",
    )
    async def _conversation(self, call: Call) -> Response:
        return await self._written(call, ".html", "text/html")

    @operation(
        "GET",
        f"{_BRANCH}/export",
        "The conversation of a branch as a notebook or a script",
        query=_UNTIL | {"kind": "notebook or script"},
        answer_type="application/octet-stream",
    )
    async def _export(self, call: Call) -> Response:
        suffix = _SUFFIXES.get(call.query("kind", "notebook"))
        if suffix is None:
            raise invalid_query("kind must be notebook or script.")
        return await self._written(call, suffix, "application/octet-stream")

    async def _written(self, call: Call, suffix: str, media_type: str) -> Response:
        """Return the rounds of a branch as a file."""
        own = await self._sessions.of(call.user)
        conversation = await own.conversation(call.path("session_id"))
        branch, until = conversation.branch(call.path("branch")), optional_number(call, "until")
        indexed = await own.index.calls.in_thread(own.index.sessions)
        titles = {item.session: item.title for item in indexed}
        listed = {item.name: item.title for item in conversation.session.branches()}
        named = titles.get(conversation.session.session_id)

        def write() -> str:
            rounds = branch.rounds()[:until]
            first = title_line(rounds[0].question) if rounds else ""
            title = named or first or "TaskWeaver session"
            cwd = branch.execution_cwd
            if suffix == ".html":
                with Folder.at(cwd) as folder:
                    return conversation_page(rounds, folder, title, listed[branch.name])
            with TemporaryDirectory(prefix="tw-export-") as place:
                target = Path(place) / f"session{suffix}"
                export(rounds, target, title=title, folder=cwd)
                return target.read_text("utf-8")

        content = await asyncio.to_thread(write)
        headers = {"Content-Disposition": f'attachment; filename="session{suffix}"'}
        return Response(content, headers=headers, media_type=media_type)


def _response(call: Call, file: PageFile, headers: dict[str, str]) -> Response:
    tag = f'"{file.digest}"'
    headers = headers | {"ETag": tag, "Vary": "Accept-Encoding"}
    if call.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    content = file.content
    if "gzip" in call.request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = file.packed, "gzip"
    return Response(content, headers=headers, media_type=file.media_type)
