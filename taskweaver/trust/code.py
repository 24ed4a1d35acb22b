"""Code of a project that runs with the user's rights: roles, and plugins without a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.trust.content import digest_of_file, digests_below
from taskweaver.trust.finding import Finding, finding
from taskweaver.trust.places import PACKAGE, is_shipped

_ROLES, _PLUGINS = "role.base_path", "plugin.base_path"
_TAKING_PART = "session.roles"
_MODULES = frozenset({".py", ".pyc", ".so"})


def findings_in_roles(src: AppConfigSource) -> Iterator[Finding]:
    """Yield the project's roles as one finding: any of them can import the others.

    The modules and packages beside the folder of roles belong to it: roles can import these, too.
    """
    folder = Path(src.get_path(_ROLES))
    names = ", ".join(_names_of_roles(folder))
    if not names or is_shipped(folder):
        return
    content = digests_below(folder)
    for path in sorted(folder.parent.iterdir()):
        if path.suffix in _MODULES and path.is_file():
            content[f"../{path.name}"] = digest_of_file(path)
        elif path != folder and (path / "__init__.py").is_file():
            content |= {f"../{path.name}/{name}": h for name, h in digests_below(path).items()}
    sentence = f"Run the Python code of roles of the project, with your rights ({names})."
    yield finding("roles", folder.name, sentence, content, _ROLES)


def _names_of_roles(folder: Path) -> list[str]:
    files = sorted([*folder.glob("*.role.yaml"), *folder.glob("*/*.role.yaml")])
    return list(dict.fromkeys(file.name.split(".", 1)[0] for file in files))


def dismiss_roles(src: AppConfigSource) -> None:
    """Take the project's roles out of the list of those that take part."""
    own = set(_names_of_roles(Path(src.get_path(_ROLES))))
    for parts in ("*/*.role.yaml", "*/*/*.role.yaml"):
        own -= {file.name.split(".", 1)[0] for file in PACKAGE.glob(parts)}
    wanted = src.json_file_store.get(_TAKING_PART)
    if not own or wanted is None:
        return
    left = [name for name in src.get_list(_TAKING_PART) if name not in own]
    src.json_file_store.pop(_TAKING_PART)
    if left:
        src.json_file_store[_TAKING_PART] = left


def has_plugins(src: AppConfigSource) -> bool:
    """Return whether a project has plugins that did not come with this installation."""
    folder = Path(src.get_path(_PLUGINS))
    return not is_shipped(folder) and any(folder.glob("*.py"))


def findings_in_plugins(src: AppConfigSource) -> Iterator[Finding]:
    """Yield the project's plugins as one finding; for projects whose code runs in no sandbox."""
    if not has_plugins(src):
        return
    folder = Path(src.get_path(_PLUGINS))
    names = ", ".join(sorted(path.stem for path in folder.glob("*.py")))
    sentence = f"Run plugins of the project without a sandbox, with your rights ({names})."
    yield finding("plugins", folder.name, sentence, digests_below(folder), _PLUGINS)
