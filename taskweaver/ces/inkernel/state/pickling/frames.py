"""Blocks of pandas and frames of polars."""

from __future__ import annotations

import sys
from typing import Any

from taskweaver.ces.inkernel.state.pickling.reducers import reduce_object
from taskweaver.ces.inkernel.state.pickling.scope import CannotStore, Notes


def constants() -> frozenset[int]:
    """Return the ids of lists that pandas keeps at its classes and adds to each pickle."""
    pandas = sys.modules.get("pandas")
    kinds = [getattr(pandas, name, None) for name in ("DataFrame", "Series")]
    return frozenset(id(kind._metadata) for kind in kinds if kind is not None)  # noqa: SLF001


def reduce_block(notes: Notes, block: Any) -> Any:
    """Reduce a block of a frame with a view of its values of its own.

    Two frames that share an array of values would share it after the restore, too, but without
    pandas' record of it: a write to one would change the other.
    """
    function, arguments = reduce_object(notes, block)[:2]
    values, *others = arguments
    return function, (values.view(), *others)


def reduce_arrow_array(notes: Notes, array: Any) -> Any:
    """Reduce an Arrow array of pandas without copying it.

    pandas copies all chunks into one, at an address that differs each time, so that every save
    would write it again. A small part of a large array is copied all the same.
    """
    reduction = reduce_object(notes, array)
    values = array._pa_array  # noqa: SLF001 - the name in pandas' own pickles
    if values.num_chunks and values.get_total_buffer_size() <= 2 * values.nbytes:
        reduction[2]["_pa_array"] = list(values.chunks)
    return reduction


def reduce_polars_series(_notes: Notes, series: Any) -> Any:
    """Reduce a series of polars through Arrow.

    Its own pickling waits for a pool of threads that a forked child does not have.

    Raises:
        CannotStore: If its type is none of Arrow's.
    """
    return restore_polars_series, (series.name, _arrow(series), series.dtype)


def reduce_polars_frame(_notes: Notes, frame: Any) -> Any:
    """Reduce a frame of polars by columns, through Arrow.

    Raises:
        CannotStore: If the type of a column is none of Arrow's.
    """
    columns = [(column.name, _arrow(column), column.dtype) for column in frame.get_columns()]
    return restore_polars_frame, (columns,)


def _arrow(series: Any) -> Any:
    if "pyarrow" not in sys.modules:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise CannotStore("pyarrow is not installed") from None
    # The newest layout is that of polars itself: nothing is copied, and addresses stay.
    newest = sys.modules["polars"].CompatLevel.newest()
    return series.to_arrow(compat_level=newest)


def restore_polars_series(name: str, values: Any, dtype: Any) -> Any:
    """Return a series of polars from Arrow."""
    import polars

    series = polars.Series(name, values)
    return series if series.dtype == dtype else series.cast(dtype)


def restore_polars_frame(columns: list[tuple[str, Any, Any]]) -> Any:
    """Return a frame of polars from columns of Arrow."""
    import polars

    return polars.DataFrame([restore_polars_series(*column) for column in columns])
