"""CALIBRATED-LINOPT's estimation and planning with loops over everything; shares no code with the agent."""

from __future__ import annotations

import numpy as np


def probabilities(known, weights):
    """P (S, A, S) of one step under weights η, negative numbers taken for 0."""
    S, A, _ = known.fixed.shape
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            for t in range(S):
                p = known.fixed[s, a, t] + sum(weights[j] * known.open[j, s, a, t] for j in range(len(weights)))
                P[s, a, t] = max(p, 0.0)
            P[s, a] = P[s, a] / sum(P[s, a])
    return P


def plan(known, weights, reward):
    """The first of the best actions at every step and state, and the values."""
    H, S, A = reward.shape
    actions, values = [[0] * S for _ in range(H)], np.zeros((H + 1, S))
    for h in reversed(range(H)):
        P = probabilities(known, weights[h])
        for s in range(S):
            q = [reward[h, s, a] + sum(P[s, a, t] * values[h + 1, t] for t in range(S)) for a in range(A)]
            actions[h][s], values[h, s] = q.index(max(q)), max(q)
    return actions, values


def targets(values):
    """y of every next state: V scaled to [−½, ½]."""
    low, high = min(values), max(values)
    return np.array([(v - low) / (high - low) - 0.5 for v in values])


def features(known, y):
    """Features scaled by the longest, the known mean, and how long the longest is."""
    q, S, A, _ = known.open.shape
    long, mean = np.zeros((S, A, q)), np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            mean[s, a] = sum(known.fixed[s, a, t] * y[t] for t in range(S))
            for j in range(q):
                long[s, a, j] = sum(known.open[j, s, a, t] * y[t] for t in range(S))
    length = max(float(np.sqrt((long[s, a] ** 2).sum())) for s in range(S) for a in range(A))
    return (long / length if length > 0 else long), mean, length


def next_law(law, policy, P):
    """The law of the next state under one policy."""
    after = np.zeros_like(law)
    for s in range(len(law)):
        for t in range(len(law)):
            after[t] += law[s] * P[s, policy[s], t]
    return after


def posterior(equations, n, prior):
    """Mean and covariance of a normal u from (z, slope, variance): z = slope·u + noise."""
    precision, told = np.eye(n) / prior**2, np.zeros(n)
    for z, slope, variance in equations:
        precision = precision + slope.T @ np.linalg.inv(variance) @ slope
        told = told + slope.T @ np.linalg.inv(variance) @ z
    return np.linalg.inv(precision) @ told, np.linalg.inv(precision)


def equation(z, visits, about, sigma):
    """One batch's sums at one step: what is known is taken off, and how it depends on u."""
    x, known, length = about
    S, A, n = x.shape
    gram, offset = np.zeros((n, n)), np.zeros(n)
    for s in range(S):
        for a in range(A):
            gram += visits[s, a] * np.outer(x[s, a], x[s, a])
            offset += visits[s, a] * known[s, a] * x[s, a]
    return z - offset, length * gram, sigma**2 * np.eye(n) + gram / 4


def believe(past, c):
    """((means, covariances) of η by step, the same of rewards or None)."""
    B, G, H, S = past.played.shape
    A, d2, q, prior = c.phi.shape[1], c.phi.shape[2], c.known.open.shape[0], c.option["prior"]
    laws = [[np.array(c.known.initial) for _ in range(G)] for _ in range(B)]
    weights, rewards = [], []
    for h in range(H):
        visits = np.zeros((B, S, A))
        for b in range(B):
            for g in range(G):
                for s in range(S):
                    visits[b, s, past.played[b, g, h, s]] += past.sizes[b] / G * laws[b][g][s]
        if c.public is None:
            of_rewards = [
                equation(past.rewards[b, h], visits[b], (c.phi, np.full((S, A), -0.5), 1.0), c.sigma_rewards)
                for b in range(B)
            ]
            rewards.append(posterior(of_rewards, d2, prior))
        if h == H - 1:
            break
        of_values = []
        for b in range(B):
            about = features(c.known, targets(past.bases[b, h + 1]))
            z = np.array([sum(past.values[b, h] * c.known.basis[:, j]) for j in range(q)])
            of_values.append(equation(z, visits[b], about, c.sigma))
        weights.append(posterior(of_values, q, prior))
        P = probabilities(c.known, weights[-1][0])
        laws = [[next_law(laws[b][g], past.played[b, g, h], P) for g in range(G)] for b in range(B)]
    weights.append((np.zeros(q), prior**2 * np.eye(q)))
    both = [tuple(np.stack(part) for part in zip(*one, strict=True)) for one in (weights, rewards) if one]
    return both[0], both[1] if len(both) > 1 else None


def clip_values(values, chosen, weights, c):
    """V within c.option["reach"] deviations of its mean over likely states."""
    G, H, S = chosen.shape
    laws, clipped = [np.array(c.known.initial) for _ in range(G)], np.array(values)
    for h in range(H - 1):
        P = probabilities(c.known, weights[h])
        laws = [next_law(law, chosen[g, h], P) for g, law in enumerate(laws)]
        law = sum(laws) / G
        mean = sum(law[s] * values[h + 1, s] for s in range(S))
        deviation = np.sqrt(sum(law[s] * (values[h + 1, s] - mean) ** 2 for s in range(S)))
        for s in range(S):
            reach = c.option["reach"] * deviation
            clipped[h + 1, s] = min(max(values[h + 1, s], mean - reach), mean + reach)
    return clipped


def expected_sums(world, known, played, bases, *, users):
    """What so many users add to sums of values and of rewards on average, each batch's."""
    B, G, H, S = played.shape
    mdp, phi = world.mdp, world.features.phi
    values, rewards = np.zeros((B, H - 1, len(known.basis))), np.zeros((B, H, phi.shape[-1]))
    for b in range(B):
        for g in range(G):
            law = np.array(mdp.initial)
            for h in range(H):
                P, r = mdp.transition[mdp.part(h)], mdp.mean_reward[mdp.part(h)]
                for s in range(S):
                    a = played[b, g, h, s]
                    rewards[b, h] += users / G * law[s] * (r[s, a] - 0.5) * phi[s, a]
                    if h < H - 1:
                        y = targets(bases[b, h + 1])
                        values[b, h] += users / G * law[s] * (P[s, a] @ y) * (known.basis @ features(known, y)[0][s, a])
                law = next_law(law, played[b, g, h], P)
    return values, rewards
