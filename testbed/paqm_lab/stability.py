# SPDX-License-Identifier: GPL-2.0
"""Where the outer loop of ECF and ERF is stable, by theory: a fluid model and a recursion.

The law is R' = R + alpha (c - r) + beta dq / d, once in each period d = skip + measured; R is the
rate asked for, r that measured in the later part of the period, dq the target minus the queue. In
some of its versions alpha and beta / d are multiplied by d / measured. Nothing here knows of
packets, pictures or flows: it says where to look, and runs of the real queue say what is there.
"""

from __future__ import annotations

import math

import numpy as np

RATIO_LEAST = 1e-9


def fluid_stable(alpha: float, beta: float, part: float = 1.0) -> bool:
    """Whether x' = -xi x(t-d) + th dq(t-d), dq' = -x is stable, with d = 1.

    xi = alpha / part, th = beta / part; `part` is measured / d, 1 where the law divides by d.
    Open loop (xi s + th) e^-s / s^2: stable if its gain is 1 at a lower frequency than that at
    which its phase is -pi.
    """
    xi, th = alpha / part, beta / part
    if beta <= 0:
        return xi < math.pi / 2
    if alpha <= beta:
        return False  # the phase is below -pi everywhere
    gain = math.sqrt((xi**2 + math.sqrt(xi**4 + 4 * th**2)) / 2)
    # The phase is -pi where atan(w xi / th) = w, in (0, pi / 2): below, it is above -pi.
    low, high = RATIO_LEAST, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        if math.atan(middle * alpha / beta) > middle:
            low = middle
        else:
            high = middle
    return gain < low


def largest_beta(alpha: float, part: float = 1.0) -> float | None:
    """Largest beta for which the fluid model is stable; None if there is none."""
    if not fluid_stable(alpha, 1e-6, part):
        return None
    low, high = 1e-6, alpha
    for _ in range(60):
        middle = (low + high) / 2
        if fluid_stable(alpha, middle, part):
            low = middle
        else:
            high = middle
    return low


def sampled_growth(
    alpha: float, beta: float, skip: float, measured: float, *lags: float
) -> float:
    """By what factor a disturbance grows in each period; below 1 is stable.

    The rate that a message asks for is in force `skip + lag` after it, and until then the one
    before; with several lags each is that of an equal part of the flows. The state is the queue
    and as many rates as are on their way.
    """
    d = skip + measured
    size = math.floor((skip + max(lags)) / d) + 3  # queue, then the rates x_n, x_n-1, ...
    in_period, seen = np.zeros(size), np.zeros(size)
    for lag in lags:
        late = skip + lag
        whole = math.floor(late / d)  # periods that a rate is older, at least
        rest = late - whole * d  # into a period the older rate is still in force
        # In period n the rate x_{n-whole-1} is in force for `rest`, then x_{n-whole}.
        in_period[1 + whole + 1] += rest / len(lags)
        in_period[1 + whole] += (d - rest) / len(lags)
        old = min(max(rest - skip, 0.0), measured) / measured
        seen[1 + whole + 1] += old / len(lags)
        seen[1 + whole] += (1 - old) / len(lags)
    queue = in_period.copy()
    queue[0] = 1
    step = np.zeros((size, size))
    step[0] = queue
    # x_n+1 = x_n - alpha x_seen - beta q_n+1 / d, rates relative to the capacity.
    step[1] = -alpha * seen - beta / d * queue
    step[1, 1] += 1
    for i in range(2, size):
        step[i, i - 1] = 1
    return float(np.abs(np.linalg.eigvals(step)).max())
