"""YAML that would use up the stack or the memory is refused; the usual forms are loaded."""

from __future__ import annotations

import pytest

from taskweaver.utils.files import parse_yaml


def aliases(first: str, form: str) -> str:
    """Return ten levels, each of which names the one before ten times."""
    levels = [f"a{n}: &a{n}{form.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 11)]
    return "\n".join([f"a0: &a0 {first}", *levels])


REFUSED = {
    "brackets": "[" * 100_000,
    "braces": "{a: " * 100_000,
    "dashes": "- " * 50_000,
    "indentation": "\n".join(" " * n + "a:" for n in range(2_000)),
    "lists in the same column": "\n".join(" " * n + "a:\n" + " " * n + "-" for n in range(500)),
    "aliases of aliases": aliases("[x, x]", " [{}]"),
    "many merges": "a: &a {k: 1}\nb:\n  <<: [" + "*a, " * 1_000 + "]",
}
LOADED = {
    "an alias": ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
    "a merge": ("a: &x {k: 1}\nb:\n  <<: *x\n  z: 2", {"a": {"k": 1}, "b": {"k": 1, "z": 2}}),
    "text": ("a: '* & [[[['", {"a": "* & [[[["}),
    "many lists": ("[" + "[1]," * 1_000 + "]", [[1]] * 1_000),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_use_up_the_program_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"^f\.yaml"):
        parse_yaml(REFUSED[kind], "f.yaml")


@pytest.mark.parametrize("kind", LOADED)
def test_the_usual_forms_are_loaded(kind: str) -> None:
    text, expected = LOADED[kind]
    assert parse_yaml(text, "f.yaml") == expected
