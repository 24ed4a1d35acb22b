"""The log of an application: one file, an own logger, secrets masked.

Nothing here is shared by a process: two applications write two files, and each closes its own.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from taskweaver.config.config_mgt import AppConfigSource, register_secrets
from taskweaver.config.errors import ConfigError
from taskweaver.utils.files import write_json
from taskweaver.utils.redact import redact, redact_data

_FORMAT = "%(asctime)s - %(levelname)s - %(message)s"


class _RedactingFormatter(logging.Formatter):
    """Masks secrets in all of a record, also in the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _FileHandler(logging.FileHandler):
    """Writes the log. A full or vanished disk costs lines, never a traceback on the screen."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handleError(record)


class TelemetryLogger:
    """The log, closed by the maker.

    Attributes:
        path: The log file; None when nothing is written.
    """

    def __init__(self, path: Path | str | None = None, level: str = "INFO") -> None:
        """Open a log file for appending.

        A file that cannot be opened is told once, in one line on standard error, and the
        program goes on without a log.

        Args:
            path: The file; its folder is made. None writes nothing.
            level: Least level that is written, one of logging's names.

        Raises:
            ConfigError: If there is no such level.
        """
        number = logging.getLevelNamesMapping().get(level.upper())
        if number is None:
            raise ConfigError("logging.level", f"must be a level such as INFO, not {level!r}.")
        # Made by hand and not by getLogger: that would keep it, and its file, for ever.
        self._logger = logging.Logger("taskweaver", number)
        self._handler = _open(Path(path)) if path is not None else None
        self.path = Path(path) if path is not None and self._handler is not None else None
        self._logger.addHandler(self._handler or logging.NullHandler())

    @classmethod
    def from_config(cls, src: AppConfigSource) -> Self:
        """Open the log of a configuration. Secrets of configuration and environment are masked.

        Raises:
            ConfigError: If a key of ``logging.`` cannot be read.
        """
        register_secrets(src)
        folder = Path(src.app_base_path, src.get_str("logging.log_folder")).expanduser()
        return cls(folder / src.get_str("logging.log_file"), src.get_str("logging.level"))

    def debug(self, message: str) -> None:
        """Log a detail for debugging."""
        self._logger.debug("%s", message)

    def info(self, message: str) -> None:
        """Log an event."""
        self._logger.info("%s", message)

    def warning(self, message: str) -> None:
        """Log a problem that was handled."""
        self._logger.warning("%s", message)

    def error(self, message: str) -> None:
        """Log a failure."""
        self._logger.error("%s", message)

    def exception(self, message: str) -> None:
        """Log a failure, with the traceback of the exception being handled."""
        self._logger.error("%s", message, exc_info=True)

    def dump_log_file(self, obj: Any, file_path: str | Path) -> None:
        """Write data to an own file as JSON, through any ``to_dict``.

        Secrets are masked.

        Raises:
            OSError: If the file cannot be written.
            ValueError: If the data is not plain.
        """
        write_json(file_path, redact_data(obj.to_dict() if hasattr(obj, "to_dict") else obj))

    def dump_prompt_file(self, prompt: Any, file_path: str | Path) -> None:
        """Write a prompt to an own file, as `dump_log_file`."""
        self.dump_log_file(prompt, file_path)

    def close(self) -> None:
        """Close the file. Later records are dropped. Idempotent."""
        if self._handler is not None:
            self._logger.removeHandler(self._handler)
            self._logger.addHandler(logging.NullHandler())
            with suppress(OSError):  # lines a full disk still refuses
                self._handler.close()
            self._handler = None

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        self.close()


def _open(path: Path) -> logging.Handler | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = _FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        reason = error.strerror or str(error)
        sys.stderr.write(f"taskweaver: nothing is logged, {path} cannot be written: {reason}\n")
        return None
    handler.setFormatter(_RedactingFormatter(_FORMAT))
    return handler
