"""The description of a plugin: ``<name>.yaml``, and the form in prompts."""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from taskweaver.plugin.errors import PluginError
from taskweaver.utils.files import read_text, read_yaml
from taskweaver.utils.parsing import parse_expression

_PURPOSE_CHARS = 120
_TYPE_OF_OPTIONAL = re.compile(r": .* = ")
_SENTENCE = re.compile(r"(?<=[.!?])\s")
ParameterKind = Literal["", "position", "*", "keyword", "**"]
"""How an argument is given: either way, by position only, by name only, or any number."""


class _Fields:
    """The keys of one mapping in a plugin file. Errors name file and key."""

    def __init__(self, data: object, where: str, path: str = "") -> None:
        self._where = where
        self._path = path
        if not isinstance(data, Mapping):
            what = f"`{path}`" if path else "the file"
            raise PluginError(where, f"{what} must be a mapping, not {type(data).__name__}.")
        self._data = data

    def _fail(self, key: str, problem: str) -> PluginError:
        full = f"{self._path}.{key}" if self._path else key
        return PluginError(self._where, f"`{full}` {problem}.")

    def text(self, key: str, default: str | None = None) -> str:
        value = self._data.get(key)
        value = default if value is None else value  # `key:` with nothing after it is null
        if value is None:
            raise self._fail(key, "is missing")
        if not isinstance(value, str):
            raise self._fail(key, f"must be a text, not {value!r}")
        return value.strip()

    def identifier(self, key: str) -> str:
        value = self.text(key)
        if not value.isidentifier() or keyword.iskeyword(value):
            raise self._fail(key, f"must be a name Python allows, not {value!r}")
        return value

    def file_stem(self, key: str, default: str) -> str:
        value = self.text(key, default).removesuffix(".py")
        if not value or Path(value).name != value or "\\" in value or value.startswith("."):
            raise self._fail(key, f"must be a file in the same folder, not {value!r}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._data.get(key, default)
        if not isinstance(value, bool):
            raise self._fail(key, f"must be true or false, not {value!r}")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        value = self._data.get(key) or {}
        if not isinstance(value, Mapping):
            raise self._fail(key, f"must be a mapping, not {value!r}")
        try:
            json.dumps(value, default=str)  # the form it reaches the kernel in
        except (TypeError, ValueError, RecursionError) as error:
            raise self._fail(key, f"must be plain data ({error})") from error
        return dict(value)

    def parameters(self, key: str, *, are_named: bool = True) -> tuple[PluginParameter, ...]:
        value = self._data.get(key)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise self._fail(key, "must be a list (`[]` for none)")
        found = tuple(
            PluginParameter.from_fields(
                _Fields(item, self._where, f"{key}[{number}]"), is_named=are_named
            )
            for number, item in enumerate(value)
        )
        names = [parameter.name for parameter in found]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise self._fail(key, f"names {twice[0]!r} twice")
        return found


@dataclass(frozen=True, slots=True)
class PluginParameter:
    """A parameter of a plugin, or a part of the result.

    `type` and `default` are written as in Python; the default is None if it is not known.
    """

    name: str
    type: str = "Any"
    description: str = ""
    required: bool = False
    kind: ParameterKind = ""
    default: str | None = None

    @classmethod
    def from_fields(cls, fields: _Fields, *, is_named: bool = True) -> Self:
        """Read one item of ``parameters``, or of ``returns``, whose names are informative only."""
        return cls(
            fields.identifier("name") if is_named else fields.text("name"),
            fields.text("type", "Any") or "Any",
            fields.text("description", ""),
            fields.flag("required", default=False),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the form in the file."""
        return {
            "name": self.name,
            "type": self.type,
            "description": self.description,
            "required": self.required,
        }

    @property
    def annotation(self) -> str:
        """The type as a Python annotation, in quotes when the type is not Python."""
        try:
            parse_expression(self.type)
        except (SyntaxError, ValueError):
            return repr(self.type)
        return self.type

    def declaration(self, *, may_be_left_out: bool) -> str:
        """Return the parameter as part of a signature, with a default if `may_be_left_out`."""
        if self.kind in {"*", "**"}:
            return f"{self.kind}{self.name}: {self.annotation}"
        if self.default is not None:
            return f"{self.name}: {self.annotation} = {self.default}"
        annotation = self.annotation if self.required else f"{self.annotation} | None"
        return f"{self.name}: {annotation}{' = None' if may_be_left_out else ''}"


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """Purpose and signature of a plugin."""

    name: str
    description: str = ""
    args: tuple[PluginParameter, ...] = ()
    returns: tuple[PluginParameter, ...] = ()
    examples: str = ""

    def plugin_description(self) -> str:
        """Return one line for a role that plans: name, purpose, arguments that are needed."""
        needed = ", ".join(f"{arg.name}: {arg.type}" for arg in self.args if arg.required)
        arguments = f" Arguments required: {needed}" if needed else ""
        return f"- {self.name}: {_one_line(self.description)}{arguments}"

    def format_line(self) -> str:
        """Return one line for a role that writes code: the call, the parts and the purpose.

        In a kernel, `help` of the function has the rest.
        """
        args = [_TYPE_OF_OPTIONAL.sub("=", declared) for declared in self._declarations()]
        call = f"{self.name}({', '.join(args)})"
        result = " -> " * bool(self.returns) + ", ".join(part.name for part in self.returns)
        purpose = _SENTENCE.split(_one_line(self.description), maxsplit=1)[0]
        return f"- {call}{result}: {textwrap.shorten(purpose, _PURPOSE_CHARS, placeholder='...')}"

    def format_prompt(self) -> str:
        """Return a commented Python stub for a role that writes code."""
        lines = _comment(self.description)
        if self.examples:
            lines += ["# Examples:", *_comment(self.examples)]
        if len(self.returns) == 1 and self.returns[0].description:
            lines += _comment(f"Returns {self.returns[0].name}: {self.returns[0].description}")
        if self.args:
            lines += [f"def {self.name}(", *self._parameter_lines(), ")"]
        else:
            lines += [f"def {self.name}()"]
        lines[-1] += " -> "
        returns = self._return_lines()
        return "\n".join([*lines[:-1], lines[-1] + returns[0], *returns[1:]]) + ": ..."

    def function_schema(self) -> dict[str, Any]:
        """Return the form that models with function calling are given."""
        parameters = {
            "type": "object",
            "properties": {arg.name: _json_schema(arg) for arg in self.args},
            "required": [arg.name for arg in self.args if arg.required],
        }
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }
        return {"type": "function", "function": function}

    def _declarations(self) -> list[str]:
        last_required = max((n for n, arg in enumerate(self.args) if arg.required), default=-1)
        return [
            arg.declaration(may_be_left_out=n > last_required) for n, arg in enumerate(self.args)
        ]

    def _parameter_lines(self) -> list[str]:
        lines = []
        before: ParameterKind = ""
        for arg, declared in zip(self.args, self._declarations(), strict=True):
            if before == "position" != arg.kind:
                lines.append("    /,")
            if arg.kind == "keyword" and before not in {"keyword", "*"}:
                lines.append("    *,")
            lines += _annotated(f"{declared},", arg.description)
            before = arg.kind
        return [*lines, "    /,"] if before == "position" else lines

    def _return_lines(self) -> list[str]:
        match self.returns:
            case ():
                return ["None"]
            case (only,):
                return [only.annotation]
            case several:
                lines = ["tuple["]
                for part in several:
                    lines += _annotated(f"{part.annotation},", f"{part.name}: {part.description}")
                return [*lines, "]"]


_JSON_TYPES = {
    **dict.fromkeys(("str", "string", "text"), "string"),
    **dict.fromkeys(("int", "integer"), "integer"),
    **dict.fromkeys(("float", "double", "number"), "number"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
    **dict.fromkeys(("none", "null"), "null"),
}


def _json_schema(parameter: PluginParameter) -> dict[str, str]:
    """Return the JSON schema of a parameter, without a type where JSON has no such type."""
    schema = {"description": parameter.description}
    known = _JSON_TYPES.get(parameter.type.lower())
    return {"type": known, **schema} if known else schema


def _annotated(code: str, note: str) -> list[str]:
    return [f"    # {_one_line(note)}", f"    {code}"] if note else [f"    {code}"]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _comment(text: str) -> list[str]:
    return [f"# {line}".rstrip() for line in text.strip().splitlines()]


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin of a project.

    Attributes:
        name: Name it is called by.
        impl: File that implements it, without ``.py``.
        spec: Its purpose and signature.
        config: Its ``configurations``, handed to it when it is made.
        required: Whether it is always shown to the model.
        enabled: Whether it is used at all.
        plugin_only: Whether it may be called where no other code may run.
        folder: Folder of its files; None when it was not read from a file.
        described_in: The file with its description.
        helpers: Digest of the helper files it may import; it is loaded again when it changes.
    """

    name: str
    impl: str
    spec: PluginSpec
    config: dict[str, Any] = field(default_factory=dict)
    required: bool = False
    enabled: bool = True
    plugin_only: bool = False
    folder: Path | None = None
    described_in: str = ""
    helpers: str = ""

    @classmethod
    def from_yaml_file(cls, path: Path | str) -> Self:
        """Read a plugin file.

        Raises:
            PluginError: If it cannot be read or a key is wrong; names the file and the key.
        """
        file = Path(path)
        try:
            data = read_yaml(file)
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}."
            raise PluginError(str(file), problem) from error
        except ValueError as error:
            raise PluginError(str(file), f"{error}.") from error
        return cls.from_yaml_content(data, folder=file.parent, where=str(file))

    @classmethod
    def from_yaml_content(
        cls, content: object, folder: Path | None = None, where: str = "(content)"
    ) -> Self:
        """Build an entry from the content of a plugin file.

        Raises:
            PluginError: If a key is missing or wrong; names it.
        """
        fields = _Fields(content, where)
        name = fields.identifier("name")
        return cls(
            name=name,
            impl=fields.file_stem("code", name),
            spec=PluginSpec(
                name,
                fields.text("description"),
                fields.parameters("parameters"),
                fields.parameters("returns", are_named=False),
                fields.text("examples", ""),
            ),
            config=fields.mapping("configurations"),
            required=fields.flag("required", default=False),
            enabled=fields.flag("enabled", default=True),
            plugin_only=fields.flag("plugin_only", default=False),
            folder=folder,
            described_in=where,
        )

    @property
    def path(self) -> Path:
        """The file of the implementation."""
        return (self.folder or Path()) / f"{self.impl}.py"

    def source(self) -> str:
        """Read the implementation.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it is not UTF-8 text.
        """
        return read_text(self.path)

    def format_prompt(self) -> str:
        """Return a commented Python stub for a role that writes code."""
        return self.spec.format_prompt()

    def format_function_calling(self) -> dict[str, Any]:
        """Return the form that models with function calling are given."""
        return self.spec.function_schema()

    def to_dict(self) -> dict[str, Any]:
        """Return the form in the file."""
        return {
            "name": self.name,
            "enabled": self.enabled,
            "required": self.required,
            "plugin_only": self.plugin_only,
            "code": self.impl,
            "description": self.spec.description,
            "examples": self.spec.examples,
            "parameters": [parameter.to_dict() for parameter in self.spec.args],
            "returns": [part.to_dict() for part in self.spec.returns],
            "configurations": dict(self.config),
        }
