"""Makes the sample data: ``python make_samples.py`` writes the same files again."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
ROWS = 3_000
REGIONS = {"North": 1.2, "South": 1.0, "East": 0.8, "West": 1.4}
PRODUCTS = {
    "Anvil": ("Tools", 42.0),
    "Bellows": ("Tools", 28.5),
    "Café set": ("Kitchen", 64.0),
    "Drill": ("Tools", 99.0),
    "Eiswürfelform": ("Kitchen", 7.5),
    "Flask": ("Outdoor", 18.0),
    "Gamp": ("Outdoor", 23.0),
}


def sales(random: np.random.Generator) -> pd.DataFrame:
    """Two years of sales: a season, one region in decline, a few absurd prices, some gaps."""
    dates = pd.Series(pd.date_range("2024-01-01", "2025-12-31")).sample(
        ROWS, replace=True, random_state=1, ignore_index=True
    )
    region = pd.Series(random.choice(list(REGIONS), ROWS))
    product = pd.Series(random.choice(list(PRODUCTS), ROWS))
    season = 1 + 0.35 * np.sin((dates.dt.day_of_year - 80) / 365 * 2 * np.pi)
    decline = np.where(region == "East", 1 - 0.5 * (dates - dates.min()).dt.days / 730, 1.0)
    count = random.poisson(8 * season * decline * region.map(REGIONS)) + 1
    price = product.map({name: cost for name, (_, cost) in PRODUCTS.items()})
    price = (price * random.normal(1, 0.06, ROWS)).round(2)
    price[[311, 1702, 2444]] *= 25
    table = pd.DataFrame(
        {
            "Date": dates.dt.strftime("%Y-%m-%d"),
            "Region": region,
            "Product": product,
            "Category": product.map({name: kind for name, (kind, _) in PRODUCTS.items()}),
            "Count": pd.array(count, dtype="Int64"),
            "Price": price,
            "Discount": random.choice([0, 0, 0, 0.05, 0.1, 0.2], ROWS),
            "Rating": random.choice([1, 2, 3, 4, 4, 5, 5], ROWS).astype(float),
        }
    ).sort_values("Date", ignore_index=True)
    for column, share in {"Count": 0.01, "Price": 0.015, "Rating": 0.3, "Region": 0.005}.items():
        table.loc[random.random(ROWS) < share, column] = None
    return table


def stations(random: np.random.Generator) -> list[dict[str, object]]:
    """Hourly readings of three weather stations for a week."""
    hours = pd.date_range("2025-06-01", periods=168, freq="h")
    return [
        {
            "time": hour.isoformat(),
            "station": name,
            "temperature": round(base + 6 * np.sin((hour.hour - 9) / 24 * 2 * np.pi) + noise, 1),
            "humidity": int(random.integers(35, 95)),
        }
        for name, base in {"Harbour": 17.0, "Hill": 13.0, "Town": 19.5}.items()
        for hour, noise in zip(hours, random.normal(0, 0.8, len(hours)), strict=True)
    ]


def shop(path: Path, random: np.random.Generator) -> None:
    """A small database: customers, and their orders."""
    path.unlink(missing_ok=True)
    countries = ["DE", "FR", "JP", "US"]
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT, since TEXT);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers,"
            " day TEXT, product TEXT, amount REAL);"
        )
        connection.executemany(
            "INSERT INTO customers VALUES (?, ?, ?, ?)",
            [
                (n, f"Customer {n:03}", countries[n % 4], f"20{20 + n % 5}-03-01")
                for n in range(1, 121)
            ],
        )
        connection.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
            [
                (
                    n,
                    int(random.integers(1, 121)),
                    f"2025-{1 + n % 12:02}-{1 + n % 28:02}",
                    str(random.choice(list(PRODUCTS))),
                    round(float(random.gamma(2, 40)), 2),
                )
                for n in range(1, 1501)
            ],
        )
    connection.close()


def main() -> None:
    """Write the files beside this one."""
    random = np.random.default_rng(7)
    sales(random).to_csv(HERE / "sales.csv", index=False)
    lines = (json.dumps(reading, ensure_ascii=False) for reading in stations(random))
    (HERE / "stations.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shop(HERE / "shop.db", random)


if __name__ == "__main__":
    main()
