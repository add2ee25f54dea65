"""From guesses to bounds, each of which divides its α over all its attempts.

A trial hides a fair bit, takes D or D′ by it, and guesses the bit from the output.

Imports: privcheck only, no other folder of audits. Promises: every bound is exact at any number of runs (binomial
tails, empirical Bernstein, or an e-process, which a true claim does not let grow); lower bounds are rounded down and
p-values up.

| claim | bound | counts |
| --- | --- | --- |
| pure ε, (ε, δ) | `bound_at_ranks` over `guess_plan()`, `CoinFlip` | wrong guesses at ranks fixed in advance |
| μ-GDP (declared Gaussian releases) | `CurveFlip` | wrong guesses in every run |
| ρ-zCDP of anything | `rho_at_least` over `divergence_plan()` | sums of a clipped score |
| discrete outputs | `log_ratios`, `key_score`, then the coin flip; `impossible_epsilon` | canonical keys |
| ε, μ or ρ of many canaries, one run | `OneRun` | wrong guesses of many bits |
| the same, looked at after every run | `RunBets` | right guesses of each run |
| any, monitored continuously | `log_e_value`, `anytime_epsilon`, `anytime_mu` | the same as the coin flip |
| small ε | any of them about k users, then `user_epsilon` | the same |
| one fixed event | `clopper_pearson_pair`, for comparison | hits in both arms |
"""

from privcheck_audits.bounds.coin_flip import (
    RANKS,
    CoinFlip,
    CurveFlip,
    GuessPlan,
    RankedBound,
    bound_at_ranks,
    group_delta,
    group_size,
    guess_plan,
    user_epsilon,
)
from privcheck_audits.bounds.discrete import count_vectors, exact_epsilon, impossible_epsilon, key_score, log_ratios
from privcheck_audits.bounds.divergence import (
    DivergencePlan,
    Moments,
    divergence_plan,
    moments,
    pure_epsilon_at_least,
    rho_at_least,
)
from privcheck_audits.bounds.e_process import (
    BETS,
    SIGNS,
    anytime_epsilon,
    anytime_mu,
    e_process_plan,
    find_largest_refuted,
    log_average,
    log_e_value,
    log_e_value_on_the_curve,
)
from privcheck_audits.bounds.one_run import Neighbouring, OneRun, RunBets
from privcheck_audits.bounds.tails import clopper_pearson_pair, error_rate_at_most, few_errors_p_value

__all__ = [
    "BETS",
    "RANKS",
    "SIGNS",
    "CoinFlip",
    "CurveFlip",
    "DivergencePlan",
    "GuessPlan",
    "Moments",
    "Neighbouring",
    "OneRun",
    "RankedBound",
    "RunBets",
    "anytime_epsilon",
    "anytime_mu",
    "bound_at_ranks",
    "clopper_pearson_pair",
    "count_vectors",
    "divergence_plan",
    "e_process_plan",
    "error_rate_at_most",
    "exact_epsilon",
    "few_errors_p_value",
    "find_largest_refuted",
    "group_delta",
    "group_size",
    "guess_plan",
    "impossible_epsilon",
    "key_score",
    "log_average",
    "log_e_value",
    "log_e_value_on_the_curve",
    "log_ratios",
    "moments",
    "pure_epsilon_at_least",
    "rho_at_least",
    "user_epsilon",
]
