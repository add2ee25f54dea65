"""A binary tree of noisy partial sums."""

from __future__ import annotations

from privcheck.accounting.engine.laws import GaussianLaw, LaplaceLaw, LostLaw, ZcdpLaw
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.engine.subsampled import together
from privcheck.accounting.engine.trees import tree_load
from privcheck.accounting.events.base import Event, Piece, event
from privcheck.accounting.reals import Real, whole
from privcheck.errors import ParameterError


def tree(*, node: Event, leaves: Real, participations: Real, separation: Real = 1, count: Real = 1) -> Event:
    """Returns a binary tree of noisy partial sums, a node at a time an event.

    One participation is in ⌊log₂ T⌋ + 1 complete nodes at most. Several add up: Gaussian nodes are charged the largest
    Σc_v² over all patterns of leaves (T = 8, p = 2: 14), Laplace nodes the least moves that majorise every pattern: no
    pattern exceeds their δ(ε). Where the tree is too large for that, each level has its own worst pattern, and the
    figures' method says "bounded level by level".

    A sampled node (`poisson_gaussian` and its kin) means that users are sampled: a user who is, at the leaf, is in all
    nodes above it at once, else in none. For Gaussian noise that is one sampled release with √(⌊log₂ T⌋ + 1) times the
    sensitivity.

    Args:
        node: One node's event, `sensitivity` being that of one participation; any event for one participation. The
            tree is priced under its relation.
        leaves: T.
        participations: Of one user, at most.
        separation: Leaves between two participations, at least; 1, the least there is, costs most.
        count: How many such trees.

    Raises:
        ParameterError: A number is out of range, or the node's event is neither Gaussian nor Laplace for several
            participations.

    >>> from privcheck import accounting as acc
    >>> event = acc.tree(node=acc.gaussian(std=30), leaves=1000, participations=3)
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    1.2831
    """
    if not isinstance(node, Event) or node.count != 1:
        raise ParameterError(
            "expected node as one event with count=1, for example gaussian(std=30)", name="node", given=node
        )
    size, p = whole("leaves", leaves), whole("participations", participations, most=1_000_000)
    apart = whole("separation", separation)
    load = tree_load(size, p, apart)
    pieces: list[tuple[Piece, int]] = []
    for piece, times in node.pieces:
        shared = None if isinstance(piece, ZcdpLaw | LostLaw | RenyiLaw) else together(piece, load.total)
        if p == 1:
            pieces.append((piece, times * load.total) if shared is None else (shared, times))
        elif isinstance(piece, GaussianLaw):
            pieces.append((GaussianLaw(piece.mu_squared * load.squares), times))
        elif isinstance(piece, LaplaceLaw):
            pieces += [(LaplaceLaw(piece.step * c), times * n) for c, n in load.moves]
        else:
            message = f"expected gaussian or laplace nodes for {p} participations, got {node}"
            sampled = "; sampled anew each time, they are `matrix_poisson_gaussian`" if shared is not None else ""
            raise ParameterError(message + sampled, name="node", given=node)
    laplace_nodes = p > 1 and any(isinstance(piece, LaplaceLaw) for piece, _ in node.pieces)
    if not (load.least if laplace_nodes else load.exact):
        note = "tree bounded level by level"
    else:
        note = "" if load.attained or not laplace_nodes else "tree bounded by the least moves above all patterns"
    return event(
        "tree",
        pieces,
        count,
        note,
        node=str(node),
        leaves=size,
        participations=p,
        separation=apart,
        relation=node.relation,
    )
