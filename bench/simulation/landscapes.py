"""Invented landscapes: true values of attempts at an idea, between 0 and 1.

The numbers of both were chosen so that three policies of the first release reach about what was
measured of them on landscapes of the same kind; they were not changed for a policy afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Spot:
    """A place on a landscape.

    Attributes:
        value: True value of the attempt there.
        hidden: What its descendants can reach, or how far they are from it; no policy sees it.
    """

    value: float
    hidden: float


class Landscape(Protocol):
    """A landscape: a place to begin at, and a step from a place to the next."""

    def draft(self, random: Random) -> Spot:
        """Return the place of a first attempt."""

    def child(self, spot: Spot, random: Random) -> Spot:
        """Return the place of an attempt that changes one thing."""


class Families:
    """Methods with ceilings: steps get smaller near the ceiling, rare new methods raise it."""

    def draft(self, random: Random) -> Spot:
        """Return a value below half of its method's ceiling."""
        ceiling = random.uniform(0.6, 0.95)
        return Spot(ceiling * random.uniform(0.45, 0.5), ceiling)

    def child(self, spot: Spot, random: Random) -> Spot:
        """Return the method a step further, or a new one, which begins a little lower."""
        value, ceiling = spot.value, spot.hidden
        if random.random() < 0.15:
            ceiling += (1 - ceiling) * random.uniform(0, 0.55)
            return Spot(max(0.0, value - random.uniform(0, 0.05)), ceiling)
        step = random.gauss(0.016, 0.04)
        if step > 0:
            step *= min(1.0, (ceiling - value) / 0.25)
        return Spot(min(ceiling, max(0.0, value + step)), ceiling)


class LateBloomers:
    """Rugged ground: most changes harm; a few rewritings begin lower and pay off much later."""

    def draft(self, random: Random) -> Spot:
        """Return a low value; one of seventeen pays off in its third generation."""
        is_late = random.random() < 0.06
        return Spot(random.uniform(0.24, 0.46), 3.0 if is_late else 0.0)

    def child(self, spot: Spot, random: Random) -> Spot:
        """Return the value after a change; `hidden` counts the generations until it pays off."""
        step, waiting = random.gauss(-0.085, 0.07), spot.hidden
        if waiting == 1:
            step, waiting = step + 0.25, 0.0
        elif waiting > 1:
            waiting -= 1
        elif random.random() < 0.085:
            step, waiting = step - 0.06, 3.0
        return Spot(min(1.0, max(0.0, spot.value + step)), waiting)


LANDSCAPES: Mapping[str, Landscape] = {"families": Families(), "late bloomers": LateBloomers()}
