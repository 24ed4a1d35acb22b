"""Signed addresses of an answer's files, which a chat front end shows without a token."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response

from taskweaver.errors import TaskWeaverError
from taskweaver.face.answer import is_picture
from taskweaver.server.accounts import LOCAL_USER
from taskweaver.server.admission import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import ServerError
from taskweaver.server.guard import PICTURES
from taskweaver.server.operations import BYTES_TYPE, Call, missing, operation
from taskweaver.server.transfer import explained, sent
from taskweaver.session.storage.store import working_folder
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.system.installation import KEY_BYTES, kept_key

_KEY_FILE = ".picture_key"
"""Name of the file of the key among the users' folders; no user can have it."""
_LINK = re.compile(r"!?\[[^\[\]]*\]\(([^()\s]*)\)")
_NOT_IN_NAMES = re.compile(r"[^\w .,-]")


class PictureLinks:
    """Addresses of pictures of answers.

    An address is good for as long as session and account are there, also after a restart: front
    ends keep it in their chats. It has no secret of the user, and leads to the picture of this name
    alone. An account that is added again under the same name is another.

    Attributes:
        sessions: The sessions that the answers are of.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        """Read the key of the signatures, or make a key.

        Raises:
            ServerError: If it cannot be read or written.
        """
        self.sessions = sessions
        self._key = _key_in(sessions.folder)

    async def answer(self, call: Call, message: IndexedMessage) -> str:
        """Return the answer to a message, with the files of the round as Markdown.

        It is without them where the session cannot be opened, as when another program has it open.
        """
        try:
            conversation = await (await self.sessions.of(call.user)).conversation(message.session)
            return await asyncio.to_thread(self._with_pictures, call, conversation, message)
        except TaskWeaverError:
            return message.answer

    def _with_pictures(
        self, call: Call, conversation: UserConversation, message: IndexedMessage
    ) -> str:
        rounds = conversation.branch(message.branch).rounds()
        names = [name for one in rounds if one.id == message.round_id for name in one.artifacts]
        place = (call.user, message.session, message.branch)
        shown = [
            f"{'!' * is_picture(name)}[{_NOT_IN_NAMES.sub('_', name)}]"
            f"({call.base_url}{self._path(*place, name)})"
            for name in dict.fromkeys(names)
        ]
        return "\n\n".join([message.answer, *shown])

    def _path(self, user: User, *parts: str) -> str:
        named = "/".join(quote(part, safe="/") for part in (user.name, *parts))
        return f"{PICTURES}{self._signature(user, *parts)}/{named}"

    def _signature(self, user: User, *parts: str) -> str:
        # No part but the last, the path of the file, has a slash.
        since = "" if user.name == LOCAL_USER else user.created_at.isoformat()
        signed = "/".join((user.name, since, *parts))
        return hmac.new(self._key, signed.encode(), hashlib.sha256).hexdigest()

    @operation(
        "GET",
        f"{PICTURES}{{signature}}/{{user}}/{{session_id}}/{{branch}}/{{path:path}}",
        "A picture, by the address that an answer has of it",
        answer_type=BYTES_TYPE,
        is_public=True,
    )
    async def _send(self, call: Call) -> Response:
        name, session_id, branch, path = map(call.path, ("user", "session_id", "branch", "path"))
        user, given = await self._account(name), call.path("signature").encode()
        wanted = self._signature(user or User(name), session_id, branch, path).encode()
        if not hmac.compare_digest(given, wanted) or user is None:
            raise missing("Picture", "of this address")
        # The session stays as it is: without a token nobody opens one.
        manager = (await self.sessions.of(user)).manager
        folder = working_folder(manager.folder_of(session_id), branch)
        with explained(path), Folder.at(folder) as place:
            response = await sent(call, place, path)
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response

    async def _account(self, name: str) -> User | None:
        if name == LOCAL_USER:
            return User(name)
        accounts = self.sessions.accounts
        return await accounts.calls.in_thread(accounts.user, name)


def without_pictures(text: str) -> str:
    """Return a text without the pictures that `PictureLinks` put there."""
    return _LINK.sub(lambda link: "" if PICTURES in link[1] else link[0], text)


def _key_in(folder: Path) -> bytes:
    path = folder / _KEY_FILE
    try:
        key = kept_key(path)
    except OSError as error:
        raise ServerError(f"The key of pictures' addresses cannot be used: {error}.") from error
    if len(key) != KEY_BYTES:
        hint = "Remove the file; pictures of earlier chats are not shown then."
        raise ServerError(f"The key of pictures' addresses in {path} is damaged.", hint)
    return key
