"""Measure an attempt at the demand: mean absolute error on rows whose Count it is not shown.

The attempt brings predict.py. Called with a folder, it reads train.csv and test.csv there (test.csv
has no column Count) and writes predicted.txt: one number for each row of test.csv, a line each.
"""

import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).with_name("sales.csv")
HIDDEN = 0.3


def written(rows: list[dict[str, str]], path: Path, names: list[str]) -> None:
    """Write rows with some of their columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Hide the counts of some rows, drawn by the run's seed, and score the answers."""
    with DATA.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["Count"]]
    random.Random(f"rows {os.environ.get('TASKWEAVER_SEED', '0')}").shuffle(rows)
    at = int(len(rows) * HIDDEN)
    test, train = rows[:at], rows[at:]
    names = list(rows[0])
    DATA.unlink()  # this copy holds what the attempt may not see
    with tempfile.TemporaryDirectory(dir=".") as folder:
        written(train, Path(folder, "train.csv"), names)
        written(test, Path(folder, "test.csv"), [name for name in names if name != "Count"])
        subprocess.run([sys.executable, "predict.py", folder], check=True)
        said = Path(folder, "predicted.txt").read_text().split()
    if len(said) != len(test):
        sys.exit(f"predicted.txt holds {len(said)} numbers, and test.csv has {len(test)} rows")
    errors = [
        abs(float(value) - float(row["Count"])) for value, row in zip(said, test, strict=True)
    ]
    mean = sum(errors) / len(errors)
    details = {"rows": len(test), "largest": max(errors)}
    print(json.dumps({"metric": mean, "valid": math.isfinite(mean), "details": details}))


if __name__ == "__main__":
    main()
