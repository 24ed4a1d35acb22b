"""Routes of the page's files, and conversations as files. The rest is the agent API's."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from taskweaver.page.assets import PageFile, page_files
from taskweaver.page.one_file import conversation_page
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Call, Door, missing, operation, optional_number
from taskweaver.utils.file_system.safe_fs import Folder

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:;"
    " connect-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types 'none'"
)
_FOR_GOOD = "public, max-age=31536000, immutable"


class PageDoor(Door):
    """The page's files, and conversations as pages."""

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
        problems=(404,),
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
        "/agent/v1/sessions/{session_id}/branches/{branch}/page",
        "The conversation of a branch as one page that needs no server",
        query={"until": "Number of the last round; all if it is left out"},
        answer_type="text/html",
    )
    async def _conversation(self, call: Call) -> Response:
        own = await self._sessions.of(call.user)
        conversation = await own.conversation(call.path("session_id"))
        branch, until = conversation.branch(call.path("branch")), optional_number(call, "until")

        def write() -> str:
            rounds = branch.rounds()[:until]
            with Folder.at(branch.execution_cwd) as folder:
                return conversation_page(rounds, folder, title, branch.name)

        sessions = await own.index.calls.in_thread(own.index.sessions)
        titles = {item.session: item.title for item in sessions}
        title = titles.get(conversation.session.session_id) or "TaskWeaver session"
        content = await asyncio.to_thread(write)
        headers = {"Content-Disposition": 'attachment; filename="session.html"'}
        return Response(content, headers=headers, media_type="text/html")


def _response(call: Call, file: PageFile, headers: dict[str, str]) -> Response:
    tag = f'"{file.digest}"'
    headers = headers | {"ETag": tag, "Vary": "Accept-Encoding"}
    if call.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    content = file.content
    if "gzip" in call.request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = file.packed, "gzip"
    return Response(content, headers=headers, media_type=file.media_type)
