"""Copies of working directories for branches."""

from __future__ import annotations

from pathlib import PurePosixPath

from taskweaver.session.errors import SessionError
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder

STAGING_FOLDER = "staging"
"""Folder of a session in which branches are prepared; code cannot write there."""


def copy_working_folder(source: Folder, target: Folder, *, limit_bytes: int) -> None:
    """Copy a working directory into an empty folder that code cannot write.

    Links stay links, special files are left out; storage is shared where the file system can.

    At most `limit_bytes` are really copied.

    Raises:
        SessionError: If there is more to copy, or it cannot be done.
    """
    try:
        copy_tree(source, target, CopyRules(limit_bytes))
    except OSError as error:
        raise _not_copied(error) from error
    except CopyTooLarge as error:
        way = (
            ", and this file system cannot share storage. Remove files, or raise"
            " session.fork_limit_mb."
            if error.is_of_bytes
            else ". Remove some, or pack them into an archive."
        )
        raise SessionError(f"The working directory holds more than {error.limit}{way}") from error


def clone_into(
    session: Folder, source: Folder, target: PurePosixPath, inner: str, *, limit_bytes: int
) -> None:
    """Copy a working directory into a new folder, which appears when the copy is complete.

    The copy is made in `STAGING_FOLDER`, where code cannot swap its files, and then moved.

    `target` is relative to the session's folder, and a leftover of that name goes. The copy is
    called `inner` in it; at most `limit_bytes` are really copied.

    Raises:
        SessionError: If there is more to copy, or it cannot be done; nothing is left behind.
    """
    draft = PurePosixPath(STAGING_FOLDER, target.name)
    try:
        session.remove(draft)
        session.make_folder(draft)
        session.make_folder(draft / inner)
        with session.folder(draft / inner) as copy:
            copy_working_folder(source, copy, limit_bytes=limit_bytes)
        session.remove(target)
        session.move(draft, session, target)
    except OSError as error:
        raise _not_copied(error) from error
    finally:
        session.remove(draft)


def _not_copied(error: OSError) -> SessionError:
    return SessionError(f"The working directory cannot be copied: {error}")
