"""Pages that answer and act: why a charge costs what it does, what-if, and what an officer may do."""

import math
import random
import re
import time
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import budget_stores
from demo_pages import OFFICER, demonstrated
from page_visits import labelled, numbers, read, rows, says, words
from privcheck.commands.calculations import afford
from privcheck.errors import ParameterError
from privcheck.ledger import Actor
from privcheck.ledger.wire import parse_event
from privcheck.service.pages.lists import rule_of
from privcheck.service.problems import ProblemError


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with demonstrated(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture(scope="module")
def officer(opened):
    return opened[1]["officer"]


EVENTS = [
    {"type": "gaussian", "rho": "0.0021", "count": 7},
    {"type": "gaussian", "std": "30", "sensitivity": "2", "count": 3},
    {"type": "gaussian", "mu2": "0.001"},
    {"type": "laplace", "scale": "40"},
    {"type": "laplace", "epsilon": "0.03", "count": 2},
    {"type": "discrete_gaussian", "std": "41"},
    {"type": "discrete_laplace", "scale": "40", "sensitivity": "3"},
    {"type": "pure", "epsilon": "0.02"},
    {"type": "randomized_response", "epsilon": "0.02", "categories": "4"},
    {"type": "zcdp", "rho": "0.003"},
    {"type": "gdp", "mu2": "0.003"},
    {"type": "bounded_range", "epsilon": "0.05"},
    {"type": "noisy_max", "noise": "laplace", "scale": "80"},
    {"type": "compose", "events": [{"type": "gaussian", "std": "30"}, {"type": "laplace", "scale": "50", "count": 4}]},
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
def test_the_derivation_of_a_cost_ends_with_the_cost_and_its_share_of_the_cap(opened, officer, event):
    book = opened[0].state.desk.book
    if book.show(OFFICER)["datasets"][-1]["name"] != "zz":
        book.set_policy(OFFICER, dataset="zz", epsilon="50", delta="1e-6", unit=budget_stores.UNIT)
        book.grant(OFFICER, name="zz-rho", dataset="zz", currency="rho", cap="1.7", delta="1e-6")
    done = book.charge(OFFICER, grant="zz-rho", unit="dataset", event=event)
    told = officer.ask(f"/v1/charges/{done.charge}").json()
    page = read(officer.get(f"/charges/{done.charge}"))
    assert numbers(page.one("section", class_="verdict"))[0] == told["cost"]["amount"]
    sums = [numbers(one) for one in page.one("ol").all("p", class_="formula")]
    assert sums[-1][-1] == told["cost"]["amount"]
    total, last = Fraction(0), Fraction(0)
    for steps, item in zip(sums, page.one("ol").all("li"), strict=False):  # arithmetic, told step by step
        said = words(item)
        if said.startswith("One release"):
            total, last = total + last, Fraction(steps[0])
        elif "releases: costs" in said:
            count = int(re.search(r"(\d+) ×", said)[1])
            assert (Fraction(steps[0]), Fraction(steps[1])) == (last, last * count)
            last = Fraction(steps[1])
        elif "together" in said:
            assert Fraction(steps[0]) == total + last
    share = -(-Fraction(told["cost"]["amount"]) * 2**62 // Fraction("1.7"))
    assert f"{share} of 2⁶² parts of the cap, rounded up" in words(page.one("ol"))
    assert "Σρ, Whitehouse, Ramdas, Rogers & Wu 2023" in page.one("ol").text()


def twin_of_rule(rule, event):
    """Returns the number that a rule's words say, computed from the words by hand."""
    get = {name: float(value) for name, value in event.items() if name not in ("type", "noise")}
    delta = get.get("sensitivity", 1.0)
    e = get.get("epsilon", delta / get["scale"] if "scale" in get else math.nan)

    def normal(p):
        return -math.sqrt(2) * inverse_erfc(2 * p)

    for said, value in (
        ("ε + e^(−ε) − 1", lambda: e + math.exp(-e) - 1),
        ("ε·tanh(ε/2)", lambda: e * math.tanh(e / 2)),
        ("−2Φ⁻¹(1/(1 + e^ε))", lambda: (-2 * normal(1 / (1 + math.exp(e)))) ** 2),
        ("ρ = (Δ/σ)²/2", lambda: (delta / get["std"]) ** 2 / 2),
        ("μ² = (Δ/σ)²", lambda: (delta / get["std"]) ** 2),
        ("μ² = 2ρ", lambda: 2 * get["rho"]),
        ("ρ = μ²/2", lambda: get["mu2"] / 2),
        ("ρ = ε²/8", lambda: e * e / 8),
        ("ε = Δ/b", lambda: delta / get["scale"]),
    ):
        if said in rule:
            return value()
    if rule.startswith("the least"):
        kind, categories = event["type"], get.get("categories", 2)
        pairs = losses(kind, e, categories) if "laplace" not in kind else losses(kind, e, delta)
        return least_rho(pairs) if "ρ" in rule else least_mu(pairs) ** 2
    if rule == "as it is stated":
        return next(get[name] for name in ("rho", "mu2", "epsilon") if name in get)
    assert rule == "derived by the accountant from the event's privacy loss"
    return None


def losses(kind, e, other):
    """Pairs of distributions whose losses matter, each as (probabilities, probabilities of the neighbour)."""
    if kind == "randomized_response":
        total = math.exp(e) + other - 1
        return [(np.array([math.exp(e), 1, other - 2]) / total, np.array([1, math.exp(e), other - 2]) / total)]
    if kind == "bounded_range":  # two answers, whose losses lie e apart
        pairs = []
        for t in np.linspace(0, e, 41)[1:-1]:
            p = (math.exp(e - t) - 1) / (math.exp(e - t) - math.exp(-t))
            pairs.append((np.array([p, 1 - p]), np.array([p * math.exp(-t), (1 - p) * math.exp(e - t)])))
        return pairs
    step = 1.0 if kind == "discrete_laplace" else 0.002  # between the ends, where the losses are not constant
    between = np.arange(0, other + step / 2, step)
    scale = other / e
    if kind == "discrete_laplace":
        points = np.arange(-60 * scale, other + 60 * scale)
        p, q = np.exp(-np.abs(points) / scale), np.exp(-np.abs(points - other) / scale)
        return [(p / p.sum(), q / q.sum())]
    middles = (between[1:] + between[:-1]) / 2
    p, q = np.exp(-middles / scale) * step / (2 * scale), np.exp((middles - other) / scale) * step / (2 * scale)
    ends = 0.5, math.exp(-e) / 2
    return [(np.array([ends[0], *p, ends[1]]), np.array([ends[1], *q, ends[0]]))]


def least_mu(pairs):
    low, high = 0.0, 10.0
    grid = np.linspace(0, 1, 400)
    for _ in range(60):
        mu = (low + high) / 2
        good = True
        for p, q in pairs:
            for one, two in ((p, q), (q, p)):
                for at in grid * np.log(one / two).max():
                    delta = np.maximum(one - math.exp(at) * two, 0).sum()
                    first, second = (math.erfc((at / mu + k * mu / 2) / math.sqrt(2)) / 2 for k in (-1, 1))
                    if delta > first - math.exp(at) * second:
                        good = False
                        break
        low, high = (low, mu) if good else (mu, high)
    return high


def least_rho(pairs):
    orders = np.concatenate([1 + np.logspace(-6, 0, 60), np.logspace(0.4, 3, 60)])
    return max(
        math.log((one * np.exp((a - 1) * np.log(one / two))).sum()) / (a - 1) / a
        for p, q in pairs
        for one, two in ((p, q), (q, p))
        for a in orders
    )


def inverse_erfc(p):
    low, high = 0.0, 30.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle) > p else (low, middle)
    return low


@pytest.mark.parametrize("event", [one for one in EVENTS if one["type"] != "compose"], ids=lambda event: event["type"])
def test_the_rule_that_is_told_is_the_one_that_priced_it(event):
    one = {**event, "count": 1}
    for unit in ("epsilon", "rho", "mu2"):
        try:
            cost = float(parse_event(one).cost(unit).amount)
        except ParameterError:
            continue
        rule = rule_of(parse_event(one).to_dict(), unit)
        expected = twin_of_rule(rule, one)
        if expected is not None:
            assert cost == pytest.approx(expected, rel=5e-4 if rule.startswith("the least") else 1e-9), unit


def test_what_if_says_what_the_quote_says(officer):
    body = {
        "grant": "icu-team",
        "unit": "dataset",
        "event": {"type": "gaussian", "std": "30", "sensitivity": "1", "count": 2},
    }
    told = officer.ask("/v1/quotes", "POST", body).json()
    before = [one["head"] for one in officer.ask("/v1/datasets").json()["datasets"]]
    page = read(officer.settled("/what-if?grant=icu-team&noise=gaussian-std&value=30&count=2&unit=dataset&wanted=500"))
    assert [one["head"] for one in officer.ask("/v1/datasets").json()["datasets"]] == before  # nothing is written
    first, least = page.all("section", class_="verdict")
    assert first.one("h2").text() == f"Fits {told['times']} times"
    assert numbers(first)[:2] == [told["cost"]["amount"], told["remaining"]]
    std = float(re.fullmatch(r"σ = ([\d.]+)", least.one("h2").text())[1])
    free = Fraction(told["remaining"])
    assert Fraction(numbers(least)[0]) <= free
    assert 500 * 2 / std**2 / 2 <= free < 500 * 2 / (std * (1 - 1.2e-5)) ** 2 / 2
    form = page.one("form", method="get")
    assert form.one("input", name="wanted").attributes["value"] == "500"
    assert [o.attributes["value"] for o in form.all("option") if "selected" in o.attributes] == [
        "icu-team",
        "gaussian-std",
    ]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("grant=ads-bandit&noise=pure&value=0.01&unit=dataset", 200, "frozen"),
        ("grant=trips-census&noise=gaussian-std&value=40&sensitivity=&count=3&wanted=9", 200, "Fits once"),
        ("grant=trips-census&noise=gaussian-std&value=41&sensitivity=", 422, "expected an event of the plan"),
        ("grant=icu-nightly&noise=gaussian-std&value=30", 422, "has no finite cost in pure"),
        ("grant=icu-team&noise=gaussian-std&value=x", 422, "expected std as a number"),
        ("grant=icu-team&noise=gaussian-std&value=30&count=1.5", 422, "expected releases a time as a whole number"),
        ("grant=icu-team&noise=gaussian-std&value=30&count=²", 422, "expected releases a time as a whole number"),
        ("grant=icu-team&noise=nothing&value=30", 422, "expected noise one of"),
        ("grant=nowhere&noise=gaussian-std&value=30", 422, "nowhere"),
        ("grant=icu-team&noise=zcdp&value=0.05&wanted=4", 200, "ρ = 0.02225"),
        ("", 200, "How many more of these"),
    ],
)
def test_what_if_answers_every_question(officer, query, status, said):
    answer = officer.settled(f"/what-if?{query}&unit=dataset")
    assert (answer.status_code, says(answer, said)) == (status, True), words(read(answer).one("main"))


def test_a_quote_stands_while_nothing_calculates(opened, officer, monkeypatch):
    def fail(*_):
        raise ProblemError(503, "calculations are not ready yet: ask again")

    monkeypatch.setattr(opened[0].state, "calculators", SimpleNamespace(holders=SimpleNamespace(run=fail)))
    answer = officer.get("/what-if?grant=icu-team&value=29&unit=dataset&wanted=7")
    assert answer.status_code == 200
    assert says(answer, "fits 1")
    assert says(answer, "the least noise is being computed: load the page again")
    answer = officer.get("/datasets/icu-stays")
    assert answer.status_code == 200
    assert says(answer, "it is being computed: load the page again")


def test_what_if_of_an_analyst_is_about_own_grants(opened):
    ana = opened[1]["ana"]
    options = [
        one.attributes["value"]
        for one in read(ana.get("/what-if")).all("select", name="grant").__next__().all("option")
    ]
    assert options == ["icu-team", "trips-routes"]
    answer = ana.get("/what-if?grant=icu-nightly&noise=pure&value=0.01&unit=dataset")
    assert says(answer, "own grants: icu-team, trips-routes")


@pytest.mark.parametrize("seed", range(12))
def test_the_least_noise_fits_and_a_little_less_does_not(seed):
    rng = random.Random(seed)  # noqa: S311
    kind, field, unit, cost = rng.choice([
        ("gaussian", "std", "rho", lambda x: 1 / (2 * x * x)),
        ("gaussian", "rho", "mu2", lambda x: 2 * x),
        ("laplace", "scale", "epsilon", lambda x: 1 / x),
        ("laplace", "scale", "rho", lambda x: 1 / x + math.expm1(-1 / x)),
        ("zcdp", "rho", "rho", lambda x: x),
        ("randomized_response", "epsilon", "rho", lambda x: x * math.tanh(x / 2)),
    ])  # fmt: skip
    times, count = rng.randint(1, 10**5), rng.randint(1, 50)
    free = Fraction(str(round(10 ** rng.uniform(-3, 1), 5)))
    event = {"type": kind, field: str(round(10 ** rng.uniform(-1, 2), 4)), "count": count}
    asked = {"event": event, "currency": unit, "free": {"amount": str(free), "lost": "0"}, "times": [times]}
    (found,) = afford(asked)["answers"]
    value = float(found["event"][field])
    assert Fraction(found["cost"]["amount"]) <= free
    assert times * count * cost(value) <= float(free) * (1 + 1e-9)
    less = value * (1 - 1.2e-5) if field in ("std", "scale") else value * (1 + 1.2e-5)
    assert times * count * cost(less) > float(free)
    (nothing,) = afford({**asked, "free": {"amount": "0", "lost": "0"}})["answers"]
    assert nothing == {"times": times, "event": None, "cost": None}


def reserve(book, actor, key, *, seconds=60):
    event = {"type": "gaussian", "rho": "0.001"}
    return book.reserve(actor, grant="icu-team", unit="dataset", event=event, key=key, seconds=seconds).charge


def expire(book, actor, key):
    """A reservation of one second, after that second: a dataset's time never goes back."""
    name = reserve(book, actor, key, seconds=1)
    time.sleep(1.05)
    assert book.find_charge(OFFICER, name).expired
    return name


def test_an_officer_attests_an_expired_reservation_that_is_somebody_elses(opened, officer):
    book = opened[0].state.desk.book
    ana = Actor(name="ana", role="analyst", grants=("icu-team",))
    name = expire(book, ana, "expired-1")
    page = read(officer.get(f"/charges/{name}"))
    form = page.one("form", action=f"/charges/{name}/release")
    fields = {one.attributes["name"]: one.attributes.get("value") for one in form.all("input")}
    assert officer.post(f"/charges/{name}/release", {**fields, "evidence": ""}).status_code == 422
    without = {key: value for key, value in fields.items() if key != "attest"}
    refused = officer.post(f"/charges/{name}/release", {**without, "evidence": "the scheduler never started it"})
    assert (refused.status_code, says(refused, "no noise was drawn")) == (422, True)
    assert book.find_charge(OFFICER, name).state == "reserved"
    said = {**fields, "evidence": "the scheduler never started it"}
    for _ in range(2):  # a form sent twice does it once
        done = officer.post(f"/charges/{name}/release", said)
        assert (done.status_code, done.headers["location"]) == (303, f"/charges/{name}")
    other = officer.post(f"/charges/{name}/release", {**said, "evidence": "another reason"})
    assert (other.status_code, says(other, "another request")) == (422, True)
    page = read(officer.get(f"/charges/{name}"))
    assert (page.one("section", class_="verdict").one("h2").text(), list(page.all("textarea"))) == ("Released", [])
    assert "the scheduler never started it" in page.text()
    assert [row[2].text()[:8] for row in rows(next(one for one in page.all("div", class_="scroll")))] == [
        "reserved",
        "released",
    ]
    gone = officer.post(f"/charges/{name}/commit", {**fields, "key": "k9"})
    assert (gone.status_code, says(gone, "was released")) == (409, True)


def test_nobody_attests_what_they_reserved_themselves(opened, officer):
    book = opened[0].state.desk.book
    name = expire(book, OFFICER, "own-1")
    page = read(officer.get("/queue"))
    case = next(
        one for one in page.all("article") if f"/charges/{name}" in [a.attributes["href"] for a in one.all("a")]
    )
    assert list(case.all("form")) == []
    assert "another officer" in words(case)
    assert [f.attributes["action"] for f in read(officer.get(f"/charges/{name}")).all("form")][1:] == [
        f"/charges/{name}/commit"
    ]
    fields = {"csrf": officer.csrf(), "key": "k1", "attest": "yes", "evidence": "I know"}
    refused = officer.post(f"/charges/{name}/release", fields)
    assert (refused.status_code, says(refused, "another officer")) == (403, True)
    second = opened[1]["second"]
    done = second.post(f"/charges/{name}/release", {**fields, "csrf": second.csrf()})
    assert done.status_code == 303
    assert book.find_charge(OFFICER, name).state == "released"


def test_whoever_reserved_it_may_release_or_commit_while_it_runs_and_others_may_not(opened, officer):
    book, ana = opened[0].state.desk.book, opened[1]["ana"]
    actor = Actor(name="ana", role="analyst", grants=("icu-team", "icu-nightly"))
    first, second = (reserve(book, actor, f"running-{n}") for n in range(2))
    fields = {"csrf": ana.csrf(), "key": "k1", "attest": "yes", "evidence": "cancelled"}
    assert ana.post(f"/charges/{first}/release", fields).status_code == 303
    assert ana.post(f"/charges/{second}/commit", {"csrf": ana.csrf(), "key": "k2"}).status_code == 303
    assert [book.find_charge(OFFICER, one).state for one in (first, second)] == ["released", "committed"]
    page = read(ana.get(f"/charges/{second}"))
    assert page.one("section", class_="verdict").one("h2").text() == "Committed"
    assert len(list(page.all("form"))) == 1  # to log out
    theirs = reserve(book, OFFICER, "theirs")
    assert len(list(read(ana.get(f"/charges/{theirs}")).all("form"))) == 1
    for action in ("release", "commit"):
        refused = ana.post(f"/charges/{theirs}/{action}", {**fields, "csrf": ana.csrf(), "key": f"k-{action}"})
        assert (refused.status_code, book.find_charge(OFFICER, theirs).state) == (403, "reserved")
    missing = officer.post("/charges/c-0/commit", {"csrf": officer.csrf()})
    assert (missing.status_code, says(missing, "key")) == (422, True)


def test_the_queue_has_what_waits(opened, officer):
    page = read(officer.get("/queue"))
    assert "frozen" in words(page.one("section", class_="verdict"))
    tables = labelled(page)
    assert ["ads-bandit", "ads"] in [[cell.text() for cell in row[:2]] for row in rows(tables["Frozen grants"])]
    violated = rows(tables["Violations"])
    assert any("ε ≥ 0.41" in row[3].text() for row in violated)
    assert any(row[1].text() == "trips-routes" for row in rows(tables["Reservations that run"]))
