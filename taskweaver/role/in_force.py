"""Settings of roles that are not in force, and their files that are not read, with the reasons.

Each text for a model is in some request, or named here; docs/roles.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.keys.known_keys import BY_NAME, find
from taskweaver.config.keys.roles import AS_INTERPRETER, EXT_ROLES, INTERPRETERS
from taskweaver.role.examples import load_examples
from taskweaver.role.original_prompt import unread_texts
from taskweaver.role.prompt import prompt_version

_CODERS = ("code_interpreter", *INTERPRETERS)
_OTHERS = (*EXT_ROLES, "web_explorer")
_COMMON = [row.removeprefix("{role}.") for row in BY_NAME if row.startswith("{role}.")]
_OWN = ("llm_alias", "role_name", "use_experience", "dynamic_example_sub_path")
_SWITCHES = {
    "planner.use_experience": "planner.*experience_*",
    "code_generator.use_experience": "code_generator.*experience_*",
    "code_interpreter.code_verification_on": "code_interpreter.[ab]*ed_*",
}
"""Keys that are off by default, and the keys that count while these are on."""


def own_texts(src: AppConfigSource, role: str) -> list[str]:
    """Return the keys that give a code interpreter a model or texts of its own."""
    section = "code_generator" if role == "code_interpreter" else role
    names = [f"{section}.prompt_file_path", *(f"code_generator.{name}" for name in _OWN)]
    keys = filter(None, map(find, names))
    return [key.name for key in keys if src.read(key, None) not in (None, key.default)]


def without_effect(src: AppConfigSource) -> Iterator[str]:
    """Yield a sentence for each setting or file of a role that is not in force."""
    roles = src.get_list("session.roles")
    coders = [role for role in _CODERS if role in roles]
    rules = list(_rules(src, roles, coders))
    for name in filter(src.lookup, dict.fromkeys([*src.names(), *BY_NAME])):
        reason = next((text for pattern, text in rules if fnmatchcase(name, pattern)), "")
        if reason:
            yield f"{name} has no effect: {reason}."
    for section in dict.fromkeys([*roles, *["code_generator"] * bool(coders)]):
        broken: list[str] = []
        if section not in coders and src.get_bool(f"{section}.use_example"):
            load_examples(Path(src.get_path(f"{section}.example_base_path")), tell=broken.append)
        yield from broken
        path = src.get_path(f"{section}.prompt_file_path", None)
        unread = ", ".join(unread_texts(Path(path))) if path else ""
        if unread:
            yield f"{path}: no prompt has {unread}: texts around messages are the packaged ones."


def _rules(
    src: AppConfigSource, roles: Sequence[str], coders: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield patterns of keys with the reason why they have no effect; the first that fits counts.

    An empty reason is that of keys in force.
    """
    form, leads = src.get_enum("llm.form"), "planner" in roles
    if form in ("tools", "fences"):
        yield "llm.response_format", f"llm.form is {form}"
    if leads and src.get_bool("session.leader_writes_code"):
        yield "session.leader_writes_code", _why_orders(src, coders)
    if coders:
        yield "code_interpreter.*auto_plugin_selection*", ""
    else:
        yield "code_generator.*", "session.roles names no code interpreter"
    if not {*INTERPRETERS}.isdisjoint(roles):
        yield from ((f"code_interpreter.{key}", "") for key in AS_INTERPRETER)
    for role in {"planner", *_CODERS, *_OTHERS} - {*roles}:
        yield f"{role}.*", f"session.roles does not name {role}"
    for row in _COMMON:
        yield from ((f"{role}.{row}", f"set code_generator.{row}") for role in coders)
        if row != "llm_alias":
            yield from ((f"{role}.{row}", "the role shows its model none") for role in _OTHERS)
    if coders and coders[0] != "code_interpreter":
        yield "code_generator.prompt_file_path", f"set {coders[0]}.prompt_file_path"
    if leads and src.get_bool("planner.prompt_compression"):
        yield "code_generator.compaction_*", "set the key of this name under planner"
    off = [switch for switch in _SWITCHES if src.lookup(switch) is None]
    yield from ((_SWITCHES[switch], f"it needs {switch}") for switch in off)


def _why_orders(src: AppConfigSource, coders: Sequence[str]) -> str:
    """Return why the Planner gives orders in words to all that run cells; empty if it does not."""
    path = src.get_path("planner.prompt_file_path", None)
    if path and prompt_version(Path(path)) < 2:
        return "the prompt of planner.prompt_file_path gives orders in words"
    own = [own_texts(src, role) for role in coders]
    return f"{own[0][0]} is for orders in words" if own and all(own) else ""
