"""The code that reads a file: into a variable named after it, dates and numbers as such."""

from __future__ import annotations

import re
from pathlib import PurePath

_READERS = {
    "csv": "pd.read_csv({file})",
    "txt": "pd.read_csv({file}, sep=None, engine='python')",
    "tsv": "pd.read_csv({file}, sep='\\t')",
    "json": "pd.read_json({file})",
    "jsonl": "pd.read_json({file}, lines=True)",
    "ndjson": "pd.read_json({file}, lines=True)",
    "parquet": "pd.read_parquet({file})",
    "xlsx": "pd.read_excel({file})",
    "xls": "pd.read_excel({file})",
}
_DATABASES = {"db", "sqlite", "sqlite3"}


def split_table(file: str) -> tuple[str, str]:
    """Split ``shop.db#orders`` into file and table."""
    name, _, table = file.partition("#")
    return name, table


def is_database(file: str) -> bool:
    """Return whether a file holds several tables."""
    return PurePath(split_table(file)[0]).suffix.lower().lstrip(".") in _DATABASES


def variable(file: str) -> str:
    """Return the name of the variable a file is loaded into."""
    name, table = split_table(file)
    stem = re.sub(r"\W+", "_", table or PurePath(name).stem).strip("_").lower()
    return stem if stem and not stem[0].isdigit() else f"data_{stem}"


def load(file: str, *, is_careful: bool = False, encoding: str = "") -> str:
    """Return the code that loads a file.

    Args:
        file: The file, with ``#table`` for a table of a database.
        is_careful: Whether it did not load plainly: let pandas find out how it is divided.
        encoding: Its encoding; empty for UTF-8.
    """
    name, table = split_table(file)
    data = variable(file)
    if is_database(file):
        query = 'SELECT * FROM "' + table.replace('"', '""') + '"'
        reading = (
            f"with sqlite3.connect({name!r}) as connection:\n"
            f"    {data} = pd.read_sql_query({query!r}, connection)"
        )
        return f"import sqlite3\n\nimport pandas as pd\n\n{reading}\n{_convert(data)}"
    suffix = PurePath(name).suffix.lower().lstrip(".")
    reading = f"{data} = {_READERS.get(suffix, _READERS['csv']).replace('{file}', repr(name))}"
    if is_careful and suffix in {"csv", "txt", "tsv"}:
        extra = f", encoding={encoding!r}" if encoding else ""
        reading = f"{data} = pd.read_csv({name!r}, sep=None, engine='python'{extra})"
    elif suffix == "csv":
        reading += (
            f"\nif {data}.shape[1] == 1 and ';' in {data}.columns[0]:"
            f"\n    {data} = pd.read_csv({name!r}, sep=';')"
        )
    return f"import pandas as pd\n\n{reading}\n{_convert(data)}"


def _convert(data: str) -> str:
    """Return the code that reads texts as numbers or dates where nearly all of them are."""
    return (
        f"for column in {data}.select_dtypes(exclude=['number', 'bool', 'datetime']):\n"
        f"    texts = {data}[column].dropna().astype(str)\n"
        "    plain = texts.str.replace(r'[\\s$€£%]', '', regex=True)\n"
        "    if plain.str.contains(r',\\d{1,2}$').any():  # decimal commas\n"
        "        plain = plain.str.replace('.', '').str.replace(',', '.')\n"
        "    numbers = pd.to_numeric(plain.str.replace(',', ''), errors='coerce')\n"
        "    if numbers.notna().mean() > 0.8:\n"
        f"        {data}[column] = numbers\n"
        "        if numbers.isna().any():\n"
        "            lost = sorted(texts[numbers.isna()].unique())[:5]\n"
        "            print(numbers.isna().sum(), 'values of', column,"
        " 'are no numbers and were left out:', *lost)\n"
        "    elif texts.str.contains(r'\\d[-/.:]\\d').mean() > 0.9:\n"
        "        dates = pd.to_datetime(texts, errors='coerce', format='mixed')\n"
        "        if dates.notna().mean() > 0.9:\n"
        f"            {data}[column] = dates"
    )


def look(file: str, *, is_careful: bool = False, encoding: str = "") -> str:
    """Return the cell that shows what a file holds."""
    name, table = split_table(file)
    if is_database(file) and not table:
        return (
            "import sqlite3\n\n"
            f"with sqlite3.connect({f'file:{name}?mode=ro'!r}, uri=True) as connection:\n"
            "    columns = connection.execute(\n"
            '        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"\n'
            "        \" WHERE m.type = 'table'\"\n"
            "    ).fetchall()\n"
            "tables = {table: [] for table, _ in columns}\n"
            "for table, column in columns:\n"
            "    tables[table].append(column)\n"
            f'{{"file": {name!r}, "tables": tables}}'
        )
    data = variable(file)
    return (
        f"{load(file, is_careful=is_careful, encoding=encoding)}\n"
        f"texts = [name for name in {data}.columns if {data}[name].nunique() <= 20"
        f" and not pd.api.types.is_numeric_dtype({data}[name])]\n"
        f'{{"file": {file!r}, "rows": len({data}),'
        f' "columns": {{str(name): str(kind) for name, kind in {data}.dtypes.items()}},\n'
        ' "values": {name: sorted('
        f"{data}[name].dropna().astype(str).unique()) for name in texts}}}}"
    )
