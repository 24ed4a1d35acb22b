"""The files that questions are about: where they come from and the frames they hold.

Files are copied into `data`, made by `messy`, made from scikit-learn's data sets, or read from the
packages of the dependency group ``bench``. Questions about files of a package that is not
installed are left out.
"""

from __future__ import annotations

import importlib.util
import shutil
from functools import cache
from pathlib import Path

import pandas as pd

from bench.questions.messy import MADE, Frames

DATA = Path(__file__).parent / "data"
SALES = Path(__file__).parents[2] / "project" / "data" / "sales.csv"

_COPIED = {
    "gapminder.csv": "gapminder",
    "penguins.csv": "penguins",
    "seattle-weather.csv": "weather",
    "iowa-electricity.csv": "iowa",
}
_DATES = {"weather": "date", "iowa": "year", "sales": "Date", "stocks": "date", "cars": "Year"}
_OF_VEGA = {
    "cars.json": "cars",
    "stocks.csv": "stocks",
    "barley.json": "barley",
    "airports.csv": "airports",
}
_OF_SKLEARN = {
    "iris.csv": (
        "iris.csv",
        "sepal length (cm),sepal width (cm),petal length (cm),petal width (cm)",
    ),
    "wine.csv": (
        "wine_data.csv",
        "alcohol,malic_acid,ash,alcalinity_of_ash,magnesium,total_phenols,flavanoids,"
        "nonflavanoid_phenols,proanthocyanins,color_intensity,hue,"
        "od280/od315_of_diluted_wines,proline",
    ),
}
"""Names of files in scikit-learn, and their columns before ``class``."""


def _vega_folder() -> Path | None:
    spec = importlib.util.find_spec("vega_datasets")
    return Path(spec.origin).parent / "_data" if spec and spec.origin else None


def is_available(file: str) -> bool:
    """Return whether a file can be had with the packages that are installed."""
    if file in _OF_VEGA:
        return _vega_folder() is not None
    if file in _OF_SKLEARN:
        return importlib.util.find_spec("sklearn") is not None
    return True


def _source(file: str) -> Path:
    if file == "sales.csv":
        return SALES
    folder = _vega_folder() if file in _OF_VEGA else DATA
    if folder is None:
        raise FileNotFoundError(f"{file} is part of the package vega_datasets")
    return folder / file


def _of_sklearn(file: str) -> pd.DataFrame:
    """Read a data set where scikit-learn keeps it: importing the package takes seconds.

    Its first line has numbers of rows and columns, and the names of the classes.
    """
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{file} is part of the package scikit-learn")
    name, columns = _OF_SKLEARN[file]
    path = Path(spec.origin).parent / "datasets" / "data" / name
    with path.open() as lines:
        classes = next(lines).strip().split(",")[2:]
    names = columns.split(",")
    frame = pd.read_csv(path, skiprows=1, names=[*names, "class"])
    numbers: pd.DataFrame = frame[names].astype(float)
    return numbers.assign(**{"class": [classes[number] for number in frame["class"]]})


def place(file: str, folder: Path) -> None:
    """Put a file into a folder.

    Raises:
        KeyError: If no such file is known.
        FileNotFoundError: If its package is not installed.
    """
    target = folder / file
    if file in MADE:
        MADE[file][1](target)
    elif file in _OF_SKLEARN:
        _of_sklearn(file).to_csv(target, index=False)
    elif file in _COPIED or file in _OF_VEGA or file == "sales.csv":
        shutil.copyfile(_source(file), target)
    else:
        raise KeyError(file)


@cache
def _frames(file: str) -> Frames:
    if file in MADE:
        return MADE[file][0]()
    if file in _OF_SKLEARN:
        return {Path(file).stem: _of_sklearn(file)}
    name = "sales" if file == "sales.csv" else (_COPIED | _OF_VEGA)[file]
    path = _source(file)
    frame = pd.read_json(path) if path.suffix == ".json" else pd.read_csv(path)
    if name in _DATES:
        frame[_DATES[name]] = pd.to_datetime(frame[_DATES[name]])
    return {name: frame}


def frames(files: tuple[str, ...]) -> Frames:
    """Return copies of the frames of files, by the names that expectations use."""
    found: Frames = {}
    for file in files:
        found |= {name: frame.copy() for name, frame in _frames(file).items()}
    return found
