"""Functions in each kernel's namespace; everything else is imported when one is called."""

from __future__ import annotations

import os
from typing import Any


def read_table(path: str | os.PathLike[str], sheet: str | int | None = None) -> Any:
    """Read a table from a file; print its form and the decisions on its columns.

    Separator, encoding, header, decimal commas, dates with the day first, sheets and missing
    values are found by the content of the whole file. Zip codes and other numerals with leading
    zeros stay text.

    Args:
        path: The file: csv, tsv, txt, json, jsonl, parquet, xlsx, xls, or a SQLite database.
        sheet: Sheet of a workbook or table of a database, by name or number (from 0).

    Returns:
        A pandas DataFrame.

    Raises:
        TableError: If the file cannot be read as a table.
    """
    from taskweaver.tables.session import read

    return read(path, sheet)


def profile_tables(
    path: str | os.PathLike[str], find: str = "", *, matches_only: bool = False
) -> Any:
    """Return profiles of all tables of a file: columns, ranges, and values that a request names.

    Args:
        path: The file.
        find: A request, whose words are looked up among the values of text columns.
        matches_only: Whether the columns are left out, which were printed before. They are there
            all the same if the file has changed since.

    Returns:
        Profiles that print as lines.

    Raises:
        TableError: If the file cannot be read as a table.
    """
    from taskweaver.tables.session import profiles

    return profiles(path, find, matches_only=matches_only)


KERNEL_FUNCTIONS = {"read_table": read_table, "profile_tables": profile_tables}
