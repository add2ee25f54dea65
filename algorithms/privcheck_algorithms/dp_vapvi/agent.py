"""The agent of Qiao & Wang's (2022) Algorithm 2: pessimistic value iteration on noisy regressions, from H down.

The agent half is the loop over `steps.plan`, which sees a billboard and never data; the privatizer half stands in
`privatizer`. `AGENT` is what is registered, run (`privcheck.offline`) and audited. The README beside this file maps
theorems to lines and lists the deviations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.offline import Learnt, OfflineAgent
from privcheck.planning import one_hot
from privcheck.results import Remark, RunRequest
from privcheck.runtime import Billboard
from privcheck.setting import Setting
from privcheck_algorithms.baselines.vapvi import OPTIONS as TWIN_OPTIONS
from privcheck_algorithms.baselines.vapvi import vapvi
from privcheck_algorithms.dp_vapvi.privatizer import HALVES, VapviPrivatizer
from privcheck_algorithms.dp_vapvi.steps import Public, declared_features, estimate_variance, plan, prepare
from privcheck_algorithms.linear.remarks import remark_features

Array = NDArray[np.float64]
OPTIONS: Final = (
    *TWIN_OPTIONS,
    Parameter(name="failure", default="0.1", kind="probability", meaning="failure probability of the bound E/2"),
    Parameter(
        name="E_scale", default=9, kind="real", meaning="factor of E/2, the bound on noise matrices; the paper's: 1"
    ),
    Parameter(name="offset", default=0, kind="real", meaning="D/K, taken off every Q; the paper's is not bounded"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VapviPass:
    """The agent half as it is registered: importable, so that audits can run it in any process.

    Attributes:
        public: What it plans with.
        remarks: On the features.
    """

    public: Public
    remarks: tuple[Remark, ...] = ()

    def __call__(
        self, billboard: Billboard, publish: Callable[[int], None], *, done: Callable[[], None] = lambda: None
    ) -> Learnt:
        """Returns policy and values from what is on the billboard alone.

        Args:
            billboard: Where the noisy statistics appear.
            publish: Asks for the noisy statistics of one step, counted from 0; what it returns is ignored.
            done: Called after each step.
        """
        public = self.public
        S, A, _ = public.phi.shape
        actions, values = np.empty((public.horizon, S), dtype=np.int64), np.empty((public.horizon, S))
        worthless = raised = 0
        for step in reversed(range(public.horizon)):  # step 3
            publish(step)
            planned = plan(billboard, step, public)
            actions[step], values[step] = planned.actions, planned.values
            worthless += int((planned.q == 0).sum())
            raised += int((estimate_variance(billboard, step, public) > 1).sum())
            done()
        cells = public.horizon * S * A
        return Learnt(
            policy=one_hot(actions, A),
            values=values,
            claimed=float(values[0].min()),  # of the first states nothing is released
            diagnostics={
                "noise_bound": public.noise_bound,
                "ridge": public.ridge,
                "share_of_pairs_worth_nothing": worthless / cells,
                "share_of_pairs_with_variance_above_1": raised / cells,
            },
            remarks=(*self.remarks, *remark(worthless / cells)),
        )


def make_pass(setting: Setting, *, reward: Array | None) -> VapviPass:  # noqa: ARG001 - it regresses on rewards too
    """Returns the agent half.

    Raises:
        ParameterError: As for `prepare`.
    """
    return VapviPass(public=prepare(setting), remarks=remark_features(declared_features(setting)))


def remark(worthless: float) -> tuple[Remark, ...]:
    """Returns what there is to say about a share of all steps, states and actions with Q̂ = 0."""
    if worthless < 1:
        return ()
    text = (
        "The penalty is at least as large as every estimate, so that every Q is 0 and the policy takes the first "
        "action throughout: nothing was learned. It takes a smaller C or offset, a larger rho, or more users."
    )
    return (Remark(title="Every Q is 0", text=text),)


def baseline(request: RunRequest) -> float:
    """Returns the true return of VAPVI's policy on the same data, in the same halves."""
    setting, data = request.setting, request.data
    assert data.evaluate is not None
    rows = [HALVES[setting.declared.release(name).users] for name in ("gram", "gains")]
    learnt = vapvi(data.trajectories, data.feature_map.phi, setting.options, variance=rows[0], values=rows[1])
    return data.evaluate(learnt.policy)


AGENT = OfflineAgent(make=make_pass, regressing=VapviPrivatizer, baseline=baseline)
