"""The gate of every operation: finds the user, counts requests, and records changes.

Requests of each token and failed tokens of each address have limits of rate.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.accounts import (
    LOCAL_USER,
    AccessToken,
    Accounts,
    AuditEntry,
    id_of,
    is_valid,
)
from taskweaver.server.admission import User
from taskweaver.server.errors import RequestRefused, ServerError
from taskweaver.server.operations import JSON_TYPE, ApiOperation, Call, read_body, require_admin

_MOST_KEYS = 4096
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.05, 2.0


@dataclass(slots=True)
class FallingCounts:
    """A falling number for each of at most `_MOST_KEYS` keys. The least recent are forgotten.

    As a rate of requests: `per_s` for long, `burst` at once.
    """

    per_s: float
    burst: int = 0
    clock: Callable[[], float] = time.monotonic
    _counts: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def now(self, key: str) -> float:
        """Return the number of a key."""
        value, at_s = self._counts.get(key, (0.0, 0.0))
        return max(0.0, value - (self.clock() - at_s) * self.per_s)

    def add_one(self, key: str) -> float:
        """Add one, and return the new number."""
        value = self.now(key) + 1
        self._counts[key] = value, self.clock()
        self._counts.move_to_end(key)
        while len(self._counts) > _MOST_KEYS:
            self._counts.popitem(last=False)
        return value

    def count(self, token_id: str) -> None:
        """Count a request of a token.

        Raises:
            RequestRefused: If there are too many; this one is not counted.
        """
        excess = self.now(token_id) + 1 - self.burst
        if excess > 0:
            detail = f"More than {self.per_s:g} requests a second came with this token."
            raise RequestRefused(429, "rate", detail, retry_after_s=excess / self.per_s)
        self.add_one(token_id)


_MOST_DELAYED = 64
_BEARER = "bearer "
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Gate:
    """Checks of the token, the rate and the body, in front of every operation."""

    def __init__(
        self,
        accounts: Accounts,
        local: AccessToken | None,
        log: TelemetryLogger,
        only_user: str = "",
    ) -> None:
        """Open the gate to the users of `accounts`, and to the person who started the server.

        Args:
            accounts: The accounts; the caller closes them.
            local: AccessToken of that person; None where there are accounts.
            log: The log.
            only_user: Name of the one user whose code may run here, where no sandbox would keep
                that of others apart; empty for all users.
        """
        self._log = log
        self._accounts = accounts
        self._local = local
        self._local_user = User(LOCAL_USER, "admin", token_id=local.id if local else "")
        self._rate = FallingCounts(200.0, 1000)
        self._failed = FallingCounts(1 / 30)
        self._only_user = only_user
        self._refused_users = set[str]()
        self._delayed = 0
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def endpoint(self, operation: ApiOperation) -> Callable[[Request], Awaitable[Response]]:
        """Return the function that Starlette calls for an operation."""

        async def carry_out(request: Request) -> Response:
            user = await self._user(request, operation)
            outcome = "failed"
            try:
                if user.name and not (operation.is_end or operation.is_public):
                    share = self._accounts.admission.take(user, "requests")
                    request.state.held.enter_context(share)
                if operation.of_admins:
                    require_admin(user, operation.of_admins)
                body = await read_body(request, operation)
                call = Call(user, request)
                handled = operation.handler(call, *([] if body is None else [body]))
                response = _response(await handled, operation)
                outcome = str(response.status_code)
                return response
            except RequestRefused as error:
                outcome = f"{error.status} {error.kind}"
                raise
            finally:
                if operation.method not in _READING:
                    await self._record(user.name, request, operation, outcome)

        return carry_out

    async def _user(self, request: Request, operation: ApiOperation) -> User:
        token = _token(request)
        if not token:
            if operation.is_public:
                return User("")
            detail = "A token is needed, in the header Authorization (as Bearer) or X-API-Key."
            raise RequestRefused(401, "token-missing", detail)
        user = await self._owner(token)
        if user is None:
            await self._fail(request, operation)
            raise RequestRefused(401, "token-invalid", "The token is not valid.")
        self._rate.count(user.token_id)
        self._check_walls(user.name)
        return user

    def _check_walls(self, name: str) -> None:
        """Refuse users who came after the server had started without walls between users."""
        if self._only_user in {"", name}:
            return
        detail = (
            "The server runs without the sandbox bwrap, for one user: the code of another could"
            " reach that user's processes. Install bubblewrap and allow user namespaces, then start"
            " the server again; or run one server for each user."
        )
        if name not in self._refused_users:
            self._refused_users.add(name)
            self._log.warning(f"Requests of {name} are refused. {detail}")
        raise RequestRefused(403, "users-not-separated", detail)

    async def _owner(self, token: str) -> User | None:
        if self._local is not None and id_of(token) == self._local.id:
            return self._local_user if is_valid(token, self._local.hash) else None
        async with self._turn(id_of(token)):
            return await self._accounts.calls.in_thread(self._accounts.find, token)

    def _turn(self, whose: str) -> asyncio.Lock:
        """Return the lock of a token's or user's calls of the accounts: others come between."""
        return self._turns.setdefault(whose, asyncio.Lock())

    async def _fail(self, request: Request, operation: ApiOperation) -> None:
        """Count a failure, and wait before the answer: each makes the next answer slower.

        A right token is never slowed, so that a stranger behind the same proxy locks out no user.
        """
        number = round(self._failed.add_one(_address(request)))
        delay_s = min(_FIRST_DELAY_S * 2.0 ** min(number - 1, 20), _LONGEST_DELAY_S)
        if number & (number - 1) == 0:  # the 1st, 2nd, 4th...: a flood does not fill the log
            await self._record("", request, operation, f"wrong token ({number} lately)")
        if self._delayed >= _MOST_DELAYED:
            detail = "Too many wrong tokens came."
            raise RequestRefused(429, "token-failures", detail, retry_after_s=delay_s)
        self._delayed += 1
        try:
            await asyncio.sleep(delay_s)
        finally:
            self._delayed -= 1

    async def _record(
        self, user: str, request: Request, operation: ApiOperation, outcome: str
    ) -> None:
        where = (_address(request), operation.name, request.url.path[:512])
        entry = AuditEntry(user, *where, outcome, request.state.request_id)
        try:
            async with self._turn(user):
                await self._accounts.calls.in_thread(self._accounts.record, entry)
        except ServerError as error:  # a full disk; the answer to work that was done is not lost
            self._log.error(f"the audit log lacks {entry}: {error}")


def _response(answer: Response | BaseModel | None, operation: ApiOperation) -> Response:
    if isinstance(answer, Response):
        return answer
    content = None if answer is None else answer.model_dump_json()
    return Response(content, operation.status, media_type=JSON_TYPE if content else None)


def _token(request: Request) -> str:
    """Return the token of a request. A cookie never carries one."""
    authorization = request.headers.get("authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip()
    return request.headers.get("x-api-key", "").strip()


def _address(request: Request) -> str:
    return request.client.host if request.client else "local socket"
