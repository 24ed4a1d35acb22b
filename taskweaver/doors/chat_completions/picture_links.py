"""Addresses of an answer's pictures, signed: a chat front end shows them without a token."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from functools import partial
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response

from taskweaver.face.figures import is_picture
from taskweaver.server.accounts import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import ServerError
from taskweaver.server.gate import LOCAL_USER
from taskweaver.server.guard import PICTURES
from taskweaver.server.operations import BYTES_TYPE, ApiOperation, Call, missing
from taskweaver.server.transfer import download, explained
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.files import PRIVATE, write_bytes

_KEY_FILE, _KEY_BYTES = "picture_key", 32
_MOST_PICTURES = 20
_NOT_IN_NAMES = re.compile(r"[^\w .,-]")


class PictureLinks:
    """Addresses of pictures of answers.

    An address is good for as long as the session is there, also after a restart: front ends keep
    it in their chats. It has no secret of the user, and leads to this one picture.

    Attributes:
        sessions: The sessions that the answers are of.
        operation: The operation that sends a picture.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        """Read the key of the signatures; make one if there is none.

        Raises:
            ServerError: If it cannot be read or written.
        """
        self.sessions = sessions
        self._key = _key_in(sessions.folder)
        self.operation = ApiOperation(
            "GET",
            f"{PICTURES}{{signature}}/{{user}}/{{session_id}}/{{branch}}/{{path:path}}",
            self._send,
            "A picture, by the address that an answer has of it",
            answer_type=BYTES_TYPE,
            problems=(404, 409, 416),
            is_public=True,
        )

    def with_pictures(
        self, call: Call, conversation: UserConversation, message: IndexedMessage
    ) -> str:
        """Return the answer to a message, with the pictures of its round as Markdown; blocks."""
        rounds = conversation.branch(message.branch).rounds()
        round_ = next((one for one in rounds if one.id == message.round_id), None)
        names = list(filter(is_picture, round_.artifacts)) if round_ is not None else []
        place = (call.user.name, message.session, message.branch)
        shown = [
            f"![{_NOT_IN_NAMES.sub('_', name)}]({call.base_url}{self._path(*place, name)})"
            for name in names[:_MOST_PICTURES]
        ]
        return "\n\n".join([message.answer, *shown])

    def _path(self, *parts: str) -> str:
        named = "/".join(quote(part, safe="/") for part in parts)
        return f"{PICTURES}{self._signature(*parts)}/{named}"

    def _signature(self, *parts: str) -> str:
        # No part but the last, the path of the file, has a slash.
        return hmac.new(self._key, "/".join(parts).encode(), hashlib.sha256).hexdigest()

    async def _send(self, call: Call) -> Response:
        name, session_id, branch, path = map(call.path, ("user", "session_id", "branch", "path"))
        given = call.path("signature").encode()
        wanted = self._signature(name, session_id, branch, path).encode()
        is_signed = hmac.compare_digest(given, wanted)
        accounts = self.sessions.accounts
        find = partial(self._user, name)
        user = await accounts.calls.statements(find) if is_signed else None
        if user is None:
            raise missing("Picture", "of this address")
        conversation = await self.sessions.of(user).conversation(session_id)
        asked = call.request.headers.get("range", "")
        folder = conversation.branch(branch).execution_cwd
        with explained(path), Folder.at(folder) as place:
            response = await asyncio.to_thread(partial(download, place, path, asked))
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response

    def _user(self, name: str) -> User | None:
        """Return a user who still has an account, or the person who started the server."""
        if name == LOCAL_USER:
            return User(LOCAL_USER, "admin")
        return next((user for user in self.sessions.accounts.users() if user.name == name), None)


def _key_in(folder: Path) -> bytes:
    path = folder / _KEY_FILE
    try:
        if not path.exists():
            write_bytes(path, secrets.token_bytes(_KEY_BYTES), mode=PRIVATE)
        key = path.read_bytes()
    except OSError as error:
        raise ServerError(f"The key of pictures' addresses cannot be used: {error}.") from error
    if len(key) != _KEY_BYTES:
        hint = "Remove the file; pictures of earlier chats are not shown then."
        raise ServerError(f"The key of pictures' addresses in {path} is damaged.", hint)
    return key
