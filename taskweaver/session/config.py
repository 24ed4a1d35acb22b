"""Configuration of sessions."""

from __future__ import annotations

from pathlib import Path

from taskweaver.config.module_config import ModuleConfig
from taskweaver.session.storage.workdir import files_in
from taskweaver.utils.named_files import Finder


class AppSessionConfig(ModuleConfig):
    """Keys under ``session.``.

    Attributes:
        roles: Names of the roles that take part.
        max_internal_chat_round_num: Most messages between roles in one round.
        experience_dir: Where experiences are saved.
        data_dir: Folder whose files a message may name.
        has_tables_only: Whether only the tables of `data_dir` count: it is a folder that is no
            project and has no folder `data`.
        data_root: Folder that links in `data_dir` may not leave; None for any target.
        stuck_after: Repetitions before a hint.
        fork_limit_bytes: Most bytes a fork copies of a working directory.
        checks_answers: Whether numbers of answers are looked up in the outcomes.
        snapshot_limit_bytes: Memory for kernel states at round ends; 0 keeps none.
        state_limit_bytes: Disk space for stored variables; 0 stores none.
    """

    def _configure(self) -> None:
        self._set_name("session")
        self.roles = self._get_list("roles")
        self.max_internal_chat_round_num = self._get_int("max_internal_chat_round_num")
        self.experience_dir = Path(self._get_path("experience_dir"))
        self.data_dir = Path(self._get_path("data_dir"))
        folder = self.src.app_base_path
        self.has_tables_only = (
            self.src.config_file is None
            and self.data_dir == folder / "data"
            and not self.data_dir.is_dir()
        )
        if self.has_tables_only:
            self.data_dir = folder
        self.data_root = self.src.link_root
        self.stuck_after = self._get_int("stuck_after")
        self.fork_limit_bytes = self._get_int("fork_limit_mb") << 20
        self.checks_answers = self.src.get_bool("answers.check")
        self.snapshot_limit_bytes = self._get_int("snapshot_memory_mb") << 20
        self.state_limit_bytes = self._get_int("state_limit_mb") << 20

    def data_files(self) -> list[Path]:
        """Return the files of the data folder."""
        return list(files_in(self.data_dir, self.data_root, tables_only=self.has_tables_only))

    def finder(self, here: Path | None = None) -> Finder:
        """Return a finder of the files that a text names.

        Names of the data folder are found; paths too, from the folder `here`, unless it is None.
        """
        return Finder(here, self.data_dir, self.data_root, tables_only=self.has_tables_only)
