"""Measure an attempt on the breast cancer data: accuracy over five folds that it does not score.

The attempt brings experiment.py. Called with a folder, it reads fold0.npz to fold4.npz in it (the
arrays `train`, `labels` and `test`) and writes predicted0.npy to predicted4.npy, one label for each
row of `test`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold


def main() -> None:
    """Hand out the folds, and score what comes back."""
    seed = int(os.environ.get("TASKWEAVER_SEED", "0"))
    features, labels = load_breast_cancer(return_X_y=True)
    split = StratifiedKFold(5, shuffle=True, random_state=seed).split(features, labels)
    scores = []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        folds = dict(enumerate(split))
        for number, (train, test) in folds.items():
            parts = {"train": features[train], "labels": labels[train], "test": features[test]}
            np.savez(Path(folder, f"fold{number}.npz"), **parts)
        subprocess.run([sys.executable, "experiment.py", folder], check=True)
        for number, (_, test) in folds.items():
            predicted = np.load(Path(folder, f"predicted{number}.npy"))
            if predicted.shape != test.shape:
                sys.exit(f"predicted{number}.npy has the shape {predicted.shape}, not {test.shape}")
            scores.append(float((predicted == labels[test]).mean()))
    details = {"std": float(np.std(scores)), "folds": scores}
    metric = {"breast_cancer": float(np.mean(scores))}
    print(json.dumps({"metric": metric, "valid": True, "details": details}))


if __name__ == "__main__":
    main()
