"""Binary tree of noisy partial sums."""

from __future__ import annotations

from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import GaussianLaw, repeat_on_one_draw
from privcheck.accounting.engine.trees import tree_load
from privcheck.accounting.events.base import Event, Piece, event, join_notes
from privcheck.accounting.reals import Real, whole
from privcheck.errors import ParameterError


def tree(*, node: Event, leaves: Real, participations: Real, separation: Real = 1, count: Real = 1) -> Event:
    """Binary tree of noisy partial sums, with one event per node.

    One participation is in at most ⌊log₂ T⌋ + 1 complete nodes. Several add up: Gaussian nodes are charged the largest
    Σc_v² over all patterns of leaves (T = 8, p = 2: 14), Laplace nodes the least shifts that majorise every pattern: no
    pattern exceeds their δ(ε). Where the tree is too large for that, each level has its own worst pattern, and the
    figures' method says "bounded level by level".

    A sampled node (`poisson_gaussian` and its kin, also inside `group`, `user_level` or another sample) means that
    users are sampled.

    Lemma sampled-tree: For Gaussian noise a sampled leaf is one sampled release with √(⌊log₂ T⌋ + 1) times the
    sensitivity. Proof: a user sampled at the leaf is in all nodes above it at once, any other user in none.

    Mechanisms known only by a guarantee (`pure`, `privacy_profile`, `renyi_curve`, …) count as drawn anew in every
    node; that does not describe a mechanism on a sample that the nodes share: give the sampled event instead. Figures
    are bounds wherever the node's are.

    Args:
        node: Event of one node, with the `sensitivity` of one participation; any event is allowed for one
            participation. The tree is priced under its relation.
        leaves: T.
        participations: Largest number of participations of one user.
        separation: Least distance between two participations, in leaves; 1, the least value, costs most.
        count: Number of such trees.

    Raises:
        ParameterError: A number is out of range, the node's event is neither Gaussian nor Laplace for several
            participations, or nothing is known of nodes that share its sample (`repeat_and_select` of sampled runs).

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
    pieces: list[tuple[Piece, int]] = list(repeat_on_one_draw(node.pieces, load.total)) if p == 1 else []
    for piece, times in node.pieces if p > 1 else ():
        if isinstance(piece, GaussianLaw):
            pieces.append((GaussianLaw(piece.mu_squared * load.squares), times))
        elif isinstance(piece, LaplaceLaw):
            pieces += [(LaplaceLaw(piece.step * c), times * n) for c, n in load.moves]
        else:
            message = f"expected gaussian or laplace nodes for {p} participations, got {node}"
            drawn = piece.on_one_draw is not None
            sampled = "; sampled anew each time, they are `matrix_poisson_gaussian`" if drawn else ""
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
        join_notes(node.note, note),
        node=str(node),
        leaves=size,
        participations=p,
        separation=apart,
        relation=node.relation,
    )
