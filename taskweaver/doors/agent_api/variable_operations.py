"""Operations on the variables of a branch: a list of them now, pages of tables now and then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from taskweaver.doors.agent_api import moment_views as views
from taskweaver.doors.agent_api.routes import BRANCH, AgentOperations
from taskweaver.server.errors import RequestRefused, invalid_query
from taskweaver.server.operations import Call, number_of, operation
from taskweaver.session.branches.locks import PAST

_MOST_ROWS, _MOST_COLUMNS = 200, 50
_STATUSES = {
    "missing": (404, "not-found"),
    "invalid": (422, "invalid-query"),
    "slow": (409, "slow"),
}
_Word = Annotated[str, Field(max_length=20)]
_Value = Annotated[str, Field(max_length=500)]
_FILTERS = TypeAdapter(Annotated[list[tuple[int, _Word, _Value]], Field(max_length=20)])
_ORDER = TypeAdapter(Annotated[list[tuple[int, bool]], Field(max_length=5)])
_PAGE = {
    "first_row": "Number of rows to leave out",
    "rows": f"Most rows, up to {_MOST_ROWS}",
    "first_column": "Number of columns to leave out",
    "columns": f"Most columns, up to {_MOST_COLUMNS}",
    "order": "JSON: number of a column and whether the largest comes first, as [[2, true]]",
    "filters": (
        'JSON: number of a column, comparison and value, as [[0, "contains", "north"]];'
        " comparisons are eq, ne, lt, le, gt, ge, contains, missing and present"
    ),
}

ModelT = TypeVar("ModelT", bound=BaseModel)


class VariableOperations(AgentOperations):
    """Operations on variables. A kernel shows them; it starts if need be."""

    @operation(
        "GET",
        f"{BRANCH}/variables",
        "Variables of a branch with types, shapes and sizes",
    )
    async def _list(self, call: Call) -> views.Variables:
        view = await self._view(call, {"view": "variables"})
        return _checked(views.Variables, view)

    @operation(
        "GET",
        f"{BRANCH}/variables/{{name}}/rows",
        "A page of a table, sorted and filtered by the kernel",
        query=_PAGE,
    )
    async def _rows(self, call: Call) -> views.TablePage:
        return _checked(views.TablePage, await self._view(call, _wanted_page(call)))

    @operation(
        "GET",
        f"{BRANCH}/rounds/{{number:int}}/variables/{{name}}/rows",
        "A page of a table as it was at the end of a round",
        query=_PAGE,
    )
    async def _past_rows(self, call: Call) -> views.TablePage:
        """Return a page of a table as it was.

        Raises:
            RequestRefused: As `_view`.
            StateNotKept: If the variables of that moment are no longer there.
            KernelError: If the kernel cannot be started.
        """
        wanted, conversation = _wanted_page(call), await self._found(call)
        branch, number = call.path("branch"), int(call.path("number"))
        kernel = conversation.session.moment_kernel
        await conversation.in_turn(PAST, lambda: kernel.check_kept(branch, number))
        with await (await self._own(call)).reserve(conversation, PAST):
            view = await conversation.in_turn(PAST, lambda: kernel.view(branch, number, wanted))
        return _checked(views.TablePage, _without_problem(view))

    async def _view(self, call: Call, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the kernel of a branch shows.

        Raises:
            RequestRefused: If there is no such variable, it is no table, the kernel cannot show it,
                or no further kernel is allowed.
            SessionBusy: If the branch is at work.
            KernelError: If the kernel cannot be started.
        """
        conversation, branch = await self._found(call), call.path("branch")
        with await (await self._own(call)).reserve(conversation, branch):
            view = await conversation.change(branch, lambda one: one.view(wanted))
        return _without_problem(view)


def _wanted_page(call: Call) -> dict[str, Any]:
    """Return the page of a table that a request is about.

    Raises:
        RequestRefused: If a parameter has another form.
    """
    return {
        "view": "page",
        "name": call.path("name"),
        "first_row": number_of(call, "first_row", 0, 1 << 40),
        "rows": number_of(call, "rows", _MOST_ROWS, _MOST_ROWS),
        "first_column": number_of(call, "first_column", 0, 1 << 40),
        "columns": number_of(call, "columns", _MOST_COLUMNS, _MOST_COLUMNS),
        "order": _from_json(_ORDER, call, "order"),
        "filters": _from_json(_FILTERS, call, "filters"),
    }


def _without_problem(view: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a view of a kernel, unless it is a problem.

    Raises:
        RequestRefused: If it is one.
    """
    problem = view.get("problem")
    if isinstance(problem, dict):
        status, kind = _STATUSES.get(str(problem.get("kind")), _STATUSES["invalid"])
        raise RequestRefused(status, kind, str(problem.get("text"))[:500])
    return view


def _from_json(form: TypeAdapter[list[Any]], call: Call, name: str) -> list[Any]:
    """Return a parameter of the query that is a list in JSON; none if it is left out.

    Raises:
        RequestRefused: If it has another form.
    """
    text = call.query(name)
    if not text:
        return []
    try:
        return form.validate_json(text)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise invalid_query(f"{name}: {reason}. {_PAGE[name]}.") from None


def _checked(model: type[ModelT], view: Mapping[str, Any]) -> ModelT:
    """Return a view as an answer: code can send anything in its kernel's name.

    Raises:
        RequestRefused: If it has another form, or the kernel ended.
    """
    try:
        return model.model_validate(view)
    except ValidationError:
        detail = "The kernel did not show its variables; it ended, or code in it answered instead."
        raise RequestRefused(409, "no-view", detail) from None
