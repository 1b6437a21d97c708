"""Makes the case pack of the suite from PyTorch's samples of its ops; no part of the wheel.

Nothing else depends on ``torch.testing``'s database, whose samples change with every release of torch: what is frozen
stays. ``make pack`` runs it, and writes the pack and ``docs/results/pack.md``.
"""
