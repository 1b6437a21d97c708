"""What holds for the tests of every wheel."""

from __future__ import annotations

import gc

gc.set_threshold(50_000, 50, 100)  # else a tenth of the time of tests that capture goes into finding little
