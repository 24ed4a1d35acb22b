"""Make the table of vectors of the package from the wheel of `wordllama`.

Run ``pip download --no-deps wordllama`` in a folder of its own, then
``python -m bench.retrieval.make_table WHEEL``. The first 128 of 256 dimensions of each piece are
centred and rounded to 8 bits; pieces are listed by row, so a piece joined earlier has a lower row.
"""

from __future__ import annotations

import json
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np

from taskweaver.memory.vectors import embedders

_PIECES = 259
"""Row of the first piece; before are marks and single bytes."""

_LARGEST = 6.0
"""Values beyond are cut off: one in 10,000."""


def main(wheel: Path) -> None:
    """Write ``table.bin``, ``pieces.txt`` and ``LICENSE.txt`` beside the module that reads them."""
    folder = Path(embedders.__file__).parent
    with zipfile.ZipFile(wheel) as file:
        weights = file.read("wordllama/weights/l2_supercat_256.safetensors")
        tokenizer = json.loads(file.read("wordllama/tokenizers/l2_supercat_tokenizer_config.json"))
        licence = next(name for name in file.namelist() if name.endswith("licenses/LICENSE"))
        (folder / "LICENSE.txt").write_bytes(file.read(licence))
    (header,) = struct.unpack("<Q", weights[:8])
    table = np.frombuffer(weights[8 + header :], np.float16).reshape(-1, 256).astype(np.float32)
    centre = table[_PIECES:].mean(axis=0)
    table = np.vstack([table[:_PIECES], table[_PIECES:] - centre])
    short = np.clip(table[:, : embedders.DIMENSIONS] / _LARGEST, -1, 1)
    (folder / "table.bin").write_bytes(np.round(short * 127).astype(np.int8).tobytes())
    rows = {row: piece for piece, row in tokenizer["model"]["vocab"].items()}
    pieces = [rows.get(row, "") for row in range(len(table))]
    pieces = ["" if {*piece} & {*"\r\n"} or piece.startswith("<0x") else piece for piece in pieces]
    (folder / "pieces.txt").write_text("\n".join(pieces), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
