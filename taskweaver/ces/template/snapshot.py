"""The state of a kernel at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.ces.common import PluginCode
from taskweaver.ces.process.footprint import Footprint, footprint
from taskweaver.ces.template.template import Template


@dataclass(frozen=True, slots=True)
class KernelSnapshot:
    """The state of a kernel at one moment, from which others start. Close it.

    Attributes:
        template: The sleeping process that holds it.
        plugins: Its plugins.
        session_vars: Its session variables.
    """

    template: Template
    plugins: dict[str, PluginCode]
    session_vars: dict[str, str]

    @property
    def footprint(self) -> Footprint:
        """The memory it takes up."""
        return footprint(self.template.pid)

    def close(self) -> None:
        """Give it up; kernels that started from it live on."""
        self.template.close()
