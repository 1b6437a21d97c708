"""What holds for the tests of every wheel."""

from __future__ import annotations

import gc
import logging

gc.set_threshold(50_000, 50, 100)  # else tests that capture spend much of their time on finding little


def pytest_collection_finish() -> None:
    """Take modules and tests out of what is searched for garbage: they stay, and a search of them all is long.

    And have pytest not listen to torch's trace log, which torch writes every graph to where anybody listens.
    """
    gc.freeze()
    logging.getLogger("torch.__trace").propagate = True
