"""Packages and programs that an idea needs where it runs, checked before its first attempt."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from socket import gethostname

from packaging.requirements import InvalidRequirement, Requirement

from taskweaver.treesearch.errors import SearchError
from taskweaver.utils.system.installation import absent, command

_LINE = re.compile(r"^[\s>*_-]*packages[*_]*\s*:\s*(?P<text>\S.*)$", re.I | re.M)
_MARKUP = "`*_. "


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of an idea; false when there are none.

    Attributes:
        packages: Requirements as pip takes them, like ``scikit-learn>=1.5``.
        programs: Names of programs, like ``gcc``.
    """

    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.packages or self.programs)

    def check(self) -> None:
        """Check that all of them are installed on this machine.

        Raises:
            SearchError: If one is missing; its hint is the command that installs the packages.
        """
        packages = absent(self.packages)
        programs = [name for name in self.programs if shutil.which(name) is None]
        missing = ", ".join([*packages, *programs])
        if not missing:
            return
        steps = [command(packages)] if packages else []
        steps += [f"install {', '.join(programs)} with the system's packages"] if programs else []
        raise SearchError(
            f"The idea needs {missing}, not installed on {gethostname()}. No attempt was made.",
            f"Install: {'; '.join(steps)}",
        )


def named_packages(text: str) -> tuple[str, ...]:
    """Return the requirements of the lines ``Packages: scikit-learn, pandas>=2`` of an idea.

    Parts that are no requirement in pip's syntax are left out.
    """
    parts = (part for line in _LINE.finditer(text) for part in line["text"].split(","))
    found = []
    for part in parts:
        with suppress(InvalidRequirement):
            found.append(str(Requirement(part.strip(_MARKUP))))
    return tuple(found)
