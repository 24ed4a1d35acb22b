"""Measure a heuristic for round trips: mean excess over a lower bound, in percent.

The attempt brings solve.py with `solve(places, seconds)`: it returns all indices of `places`, a
list of (x, y), in the order of a round trip. Each of the maps is hidden from it until it is called.
"""

import json
import math
import os
import random
import subprocess
import sys
import time
from itertools import pairwise

MAPS, PLACES, SECONDS, GRACE_S = 4, 400, 2.0, 1.0
CALL = """
import json, sys
places = [tuple(place) for place in json.loads(sys.stdin.read())]
sys.path.insert(0, ".")
from solve import solve
trip = [int(index) for index in solve(places, float(sys.argv[1]))]
print("\\n" + json.dumps(trip))
"""


def drawn(seed: int) -> list[tuple[float, float]]:
    """Return the places of a map: clusters, and some places anywhere."""
    rng = random.Random(f"map {seed}")
    middles = [(rng.random(), rng.random()) for _ in range(12)]
    found = []
    while len(found) < PLACES:
        x, y = rng.choice(middles)
        near = (rng.gauss(x, 0.05), rng.gauss(y, 0.05))
        found.append(near if rng.random() < 0.8 else (rng.random(), rng.random()))
    return found


def bound(places: list[tuple[float, float]]) -> float:
    """Return a lower bound of a round trip: 1-trees with prices of places (Held and Karp 1971)."""
    prices, best, count = [0.0] * len(places), 0.0, len(places)
    step = 0.002
    for _ in range(40):
        degrees, length = [0] * count, 0.0
        costs, parents = [math.inf] * count, [0] * count
        costs[1] = 0.0
        open_ = set(range(1, count))
        while open_:  # Prim, over all places but the first
            near = min(open_, key=costs.__getitem__)
            open_.remove(near)
            if near != 1:
                degrees[near] += 1
                degrees[parents[near]] += 1
                length += costs[near]
            for other in open_:
                cost = math.dist(places[near], places[other]) + prices[near] + prices[other]
                if cost < costs[other]:
                    costs[other], parents[other] = cost, near
        first = sorted((math.dist(places[0], places[n]) + prices[0] + prices[n], n)
                       for n in range(1, count))[:2]  # fmt: skip
        for cost, near in first:
            length += cost
            degrees[0] += 1
            degrees[near] += 1
        best = max(best, length - 2 * sum(prices))
        for place, degree in enumerate(degrees):
            prices[place] += step * (degree - 2)
        step *= 0.95
    return best


def length(places: list[tuple[float, float]], trip: list[int]) -> float:
    """Return the length of a round trip."""
    return sum(math.dist(places[a], places[b]) for a, b in pairwise([*trip, trip[0]]))


def nearest(places: list[tuple[float, float]]) -> list[int]:
    """Return the trip that always goes on to the nearest place."""
    left, trip = set(range(1, len(places))), [0]
    while left:
        trip.append(min(left, key=lambda n: math.dist(places[trip[-1]], places[n])))
        left.remove(trip[-1])
    return trip


def main() -> None:
    """Call the attempt for each map, and print its mean excess."""
    seed, excess, late, valid = int(os.environ.get("TASKWEAVER_SEED", "0")), [], 0, True
    for number in range(MAPS):
        places = drawn(MAPS * seed + number)
        call = [sys.executable, "-c", CALL, str(SECONDS)]
        begin = time.monotonic()
        try:
            said = subprocess.run(
                call,
                input=json.dumps(places),
                capture_output=True,
                text=True,
                timeout=SECONDS + GRACE_S,
            )
        except subprocess.TimeoutExpired:
            said = None
        is_late = said is None or time.monotonic() - begin > SECONDS + GRACE_S
        if said is not None and said.returncode:
            sys.exit(said.stderr[-2000:])
        trip = nearest(places) if said is None else json.loads(said.stdout.splitlines()[-1])
        if sorted(trip) != list(range(PLACES)):
            valid = False
            print(f"map {number}: the trip does not visit each place once")
            break
        if is_late:
            late, trip = late + 1, nearest(places)
        excess.append(100 * (length(places, trip) / bound(places) - 1))
    metric = sum(excess) / len(excess) if valid else 0.0
    details = {"per map": [round(value, 3) for value in excess], "late": late}
    print(json.dumps({"metric": metric, "valid": valid, "details": details}))


if __name__ == "__main__":
    main()
