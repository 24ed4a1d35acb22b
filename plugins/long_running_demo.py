"""Work that takes its time: shows progress, and how a plugin ends well when it is stopped."""

from __future__ import annotations

import math
import threading

from taskweaver.plugin import Plugin, register_plugin, test_plugin

MAX_STEPS = 10_000
MAX_SECONDS_PER_STEP = 3600.0


@register_plugin
class LongRunningDemo(Plugin):
    """Waits in steps, and tells each one."""

    def __call__(
        self, steps: int | None = None, seconds_per_step: float | None = None
    ) -> tuple[int, str]:
        """Go through the steps.

        Args:
            steps: How many; None takes 10.
            seconds_per_step: How long each takes; None takes half a second.

        Returns:
            The steps finished, and a line about them; fewer when it was interrupted.

        Raises:
            ValueError: If a number makes no sense.
        """
        steps = _checked_steps(10 if steps is None else steps)
        seconds = _checked_seconds(0.5 if seconds_per_step is None else seconds_per_step)
        never = threading.Event()  # to wait on: an interrupt ends the wait at once
        done = 0
        try:
            while done < steps:
                never.wait(seconds)
                done += 1
                # Flushed, because what is printed is shown while the work goes on.
                print(f"step {done} of {steps} done", flush=True)  # noqa: T201
        except KeyboardInterrupt:
            description = f"Interrupted after {done} of {steps} steps."
        else:
            description = f"All {steps} steps are done."
        self.log("info", description)
        return done, description


def _checked_steps(steps: object) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 0 <= steps <= MAX_STEPS:
        raise ValueError(f"steps must be a whole number from 0 to {MAX_STEPS}, not {steps!r}.")
    return steps


def _checked_seconds(seconds: object) -> float:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or math.isnan(seconds) or not 0 <= seconds <= MAX_SECONDS_PER_STEP:
        raise ValueError(
            f"seconds_per_step must be from 0 to {MAX_SECONDS_PER_STEP:g}, not {seconds!r}."
        )
    return float(seconds)


@test_plugin(name="all steps are done", description="Three steps without waiting.")
def test_all_steps_are_done(plugin: Plugin) -> None:
    """Three steps without waiting."""
    assert plugin(3, 0) == (3, "All 3 steps are done.")
