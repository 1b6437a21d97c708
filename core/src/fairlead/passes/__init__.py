"""Rewrites of IR graphs, each from one documented form to another. They know neither torch nor any backend."""

from fairlead.passes._bags import even_bags
from fairlead.passes._canonicalize import canonicalize
from fairlead.passes._common import eliminate_common_subexpressions
from fairlead.passes._communication import WAIT, communicates, is_collective
from fairlead.passes._composites import recognize_composites
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._decompose import DECOMPOSABLE, decompose
from fairlead.passes._fold import Evaluate, Folded, fold_constants, fold_tensors
from fairlead.passes._hoist import Hoisted, hoist
from fairlead.passes._layout import RowMajor, row_major_inputs
from fairlead.passes._memory import is_view, layout_sensitive, shown_views, view_overwritten_inputs
from fairlead.passes._random import draws, draws_random_numbers, split_dropout
from fairlead.passes._recurrences import unroll_recurrences
from fairlead.passes._rewrite import Emitter, Replacement, Rule, by_op, rewrite, substitute
from fairlead.passes._training import trains_convolutions
from fairlead.passes._wide import Widened, widen_products
from fairlead.passes._work import multiplications, share_of_products, typical_sizes, work

__all__ = [
    "DECOMPOSABLE",
    "WAIT",
    "Emitter",
    "Evaluate",
    "Folded",
    "Hoisted",
    "Replacement",
    "RowMajor",
    "Rule",
    "Widened",
    "by_op",
    "canonicalize",
    "communicates",
    "decompose",
    "draws",
    "draws_random_numbers",
    "eliminate_common_subexpressions",
    "even_bags",
    "fold_constants",
    "fold_tensors",
    "hoist",
    "is_collective",
    "is_view",
    "layout_sensitive",
    "multiplications",
    "recognize_composites",
    "remove_dead_nodes",
    "rewrite",
    "row_major_inputs",
    "share_of_products",
    "shown_views",
    "split_dropout",
    "substitute",
    "trains_convolutions",
    "typical_sizes",
    "unroll_recurrences",
    "view_overwritten_inputs",
    "widen_products",
    "work",
]
