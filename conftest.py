"""What holds for the tests of every wheel."""

from __future__ import annotations

import gc

gc.set_threshold(50_000, 50, 100)  # else tests that capture spend much of their time on finding little
