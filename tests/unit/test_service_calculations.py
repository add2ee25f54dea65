"""Endpoints without a store: what they answer is what the functions behind the commands answer, or a problem."""

import json
import math
import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck import api
from privcheck.commands.calculations import decimal_up
from privcheck.reports.values import document
from privcheck.service.access import BODY_BYTES, Buckets
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from privcheck.service.problems import ProblemError
from served import refuse, served, wait_for

FAST = Settings(rate=1e6, burst=10**6, processes=1, calculation_seconds=30)


@pytest.fixture(scope="module")
def client():
    with served(create_app(FAST)) as made:
        wait_for(lambda: made.post("/v1/convert", json={"guarantee": {"type": "zcdp", "rho": "1"}, "delta": "0.1"}))
        yield made


@given(st.floats(min_value=0, allow_infinity=False, allow_nan=False))
def test_a_decimal_is_never_below_its_float(number):
    assert Fraction(Decimal(decimal_up(number))) >= Fraction(number)
    assert float(decimal_up(number)) <= math.nextafter(number, math.inf)


def test_compose_is_the_accountants(client):
    events = [{"type": "gaussian", "std": "20", "count": 50}, {"type": "laplace", "scale": "30", "count": 7}]
    curve = acc.compose(acc.gaussian(std=20, count=50), acc.laplace(scale=30, count=7))
    told = client.post("/v1/compose", json={"events": events, "delta": "1e-6"}).json()
    figure = curve.epsilon(delta=1e-6)
    assert (told["estimate"], told["upper"]) == (decimal_up(figure.value), decimal_up(figure.upper))
    assert told["quantity"] == "epsilon"
    told = client.post("/v1/compose", json={"events": events, "epsilon": "1"}).json()
    assert told["upper"] == decimal_up(curve.delta(epsilon=1).upper)
    told = client.post("/v1/compose", json={"events": [{"type": "gaussian", "rho": "1"}], "delta": "0"}).json()
    assert (told["upper"], bool(told["reason"])) == (None, True)


@pytest.mark.parametrize(
    "event",
    [{"type": "gaussian", "std": "1"}, {"type": "gaussian", "rho": "0.3"}, {"type": "laplace", "epsilon": "2"},
     {"type": "above_threshold", "threshold_scale": "1", "query_scale": "2"}],
)  # fmt: skip
def test_the_least_noise_keeps_the_target_and_less_does_not(client, event):
    fixed = {"type": "pure", "epsilon": "0.1"}
    events = [{**event, "count": 20}, fixed]
    told = client.post("/v1/calibrate", json={"epsilon": "1", "delta": "1e-6", "events": events}).json()
    assert told["events"][1] == {**fixed, "count": 1}
    assert Decimal(told["epsilon"]) <= 1
    again = client.post("/v1/compose", json={"events": told["events"], "delta": "1e-6"}).json()
    assert again["upper"] == told["epsilon"]
    power = {"std": 1, "rho": -2, "epsilon": -1, "threshold_scale": 1, "query_scale": 1}
    less = {
        name: str(float(value) * 0.999 ** power[name]) if name in power else value
        for name, value in told["events"][0].items()
    }
    worse = client.post("/v1/compose", json={"events": [less, fixed], "delta": "1e-6"}).json()
    assert Decimal(worse["estimate"]) > 1
    hopeless = client.post("/v1/calibrate", json={"epsilon": "1", "delta": "1e-6", "events": [fixed]})
    assert "noise to scale" in refuse(hopeless, 422, "events")["detail"]


def test_convert_is_the_accountants(client):
    def ask(**body):
        return client.post("/v1/convert", json=body)

    told = ask(guarantee={"type": "zcdp", "rho": "0.1"}, delta="1e-6").json()
    assert told["epsilon"] == decimal_up(acc.zcdp_to_epsilon("0.1", 1e-6).value)
    assert told["implies"] == {"epsilon": None, "rho": decimal_up(0.1), "mu2": None}
    told = ask(guarantee={"type": "gdp", "mu": "0.5"}, epsilon="1").json()
    assert told["delta"] == decimal_up(acc.gdp_delta("0.5", 1).value)
    assert told["implies"] == {"epsilon": None, "rho": "0.125", "mu2": "0.25"}
    told = ask(guarantee={"type": "pure", "epsilon": "1"}, epsilon="0.5").json()
    assert told["delta"] == decimal_up(float(acc.pure_delta(1, 0.5)))
    assert Decimal(told["implies"]["mu2"]) >= Decimal("1.5179111907419")  # (2Φ⁻¹(e/(1 + e)))²
    assert (
        ask(guarantee={"type": "approximate", "epsilon": "1", "delta": "0.1"}, delta="0.01").json()["epsilon"] is None
    )
    refuse(ask(guarantee={"type": "pure", "rho": "1"}, delta="0.1"), 422, "guarantee")
    refuse(ask(guarantee={"type": "approximate", "epsilon": "1", "delta": "2"}, delta="0.1"), 422, "delta")


def test_algorithms_are_those_of_the_commands(client):
    listed = wait_for(lambda: client.get("/v1/algorithms")).json()["algorithms"]
    assert "dp-apvi" in {one["name"] for one in listed}
    assert client.get("/v1/algorithms/dp-apvi").json()["name"] == "dp-apvi"
    body = {"parameters": {"rho": "1/2", "H": "10"}, "delta": "1e-5"}
    told = client.post("/v1/algorithms/dp-apvi/budget", json=body).json()
    expected = document(api.budget("dp-apvi", delta="1e-5", rho="1/2", H=10))
    assert told == json.loads(json.dumps(expected))
    verdict = wait_for(lambda: client.post("/v1/algorithms/dp-apvi/verify", json={}))
    assert verdict.json()["verdict"] == "holds"
    assert client.post("/v1/algorithms/dp-apvi/verify", json={}).json() == verdict.json()


def test_a_misspelt_algorithm_and_what_is_no_number(client):
    refuse(client.get("/v1/algorithms/dp-apv"), 404)
    bad = client.post("/v1/algorithms/dp-apvi/budget", json={"parameters": {"rho": "__import__('os')"}})
    assert "exact number" in refuse(bad, 422, "rho")["detail"]
    refuse(client.post("/v1/algorithms/dp-apvi/budget", json={"parameters": {"rhoo": "1"}}), 422)


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        (b"{", 422, None),
        (b"[" * 50_000, 400, ()),
        (b" " * (BODY_BYTES + 1), 413, ()),
        (b'{"events": [], "delta": "0.1"}', 422, ("events",)),
        (b'{"events": [{"type": "\\ud800"}], "delta": "0.1"}', 422, None),
        (b'{"events": [{"type": "gaussian", "rho": "0.1\\u0000"}], "delta": "0.1"}', 422, None),
        (b'{"events": [{"type": "gaussian", "rho": NaN}], "delta": "0.1"}', 422, None),
        (b'{"events": [{"type": "gaussian", "rho": "1", "count": 2000000000}], "delta": "0.1"}', 422, None),
        (b'{"events": [{"type": "gaussian", "rho": "1", "eval": "1"}], "delta": "0.1"}', 422, None),
        (b'{"events": [{"type": "os.system", "rho": "1"}], "delta": "0.1"}', 422, None),
        (b'{"events": [{"type": "gaussian", "rho": "1"}]}', 422, ("body",)),
        (b'{"events": [{"type": "gaussian", "rho": "1"}], "delta": "1e-5", "more": 1}', 422, ("more",)),
        (b'{"events": [{"type": "gaussian", "rho": "1"}], "delta": "1e999"}', 422, None),
    ],
)  # fmt: skip
def test_what_is_refused_is_a_problem_that_names_the_field(client, body, status, fields):
    answer = client.post("/v1/compose", content=body, headers={"content-type": "application/json"})
    refuse(answer, status, *(fields or ()))


def test_unknown_addresses_and_methods_are_problems_and_every_answer_has_headers(client):
    answers = [client.get("/nowhere"), client.get("/v1/compose"), client.get("/v1/healthz")]
    assert [answer.status_code for answer in answers] == [404, 405, 200]
    refuse(answers[0], 404)
    assert answers[1].headers["allow"] == "POST"
    for answer in answers:
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_an_internal_error_is_told_as_a_problem_without_its_words(client, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("secret")

    monkeypatch.setattr(Calculator, "run", fail)
    answer = client.get("/v1/algorithms/dp-apvi")
    refuse(answer, 500)
    assert "secret" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_a_request_that_takes_too_long_is_told_to_come_again(monkeypatch):
    monkeypatch.setattr(Calculator, "run", lambda *_: time.sleep(0.6))
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    with served(create_app(Settings(seconds=0.2))) as client:
        answer = client.get("/v1/algorithms/dp-apvi")
    refuse(answer, 503)
    assert answer.headers["retry-after"]


def test_buckets_fill_again_and_forget():
    now = 0.0
    buckets = Buckets(rate=2, burst=3, clock=lambda: now)
    for _ in range(3):
        buckets.take("a")
    with pytest.raises(ProblemError, match="too many requests") as caught:
        buckets.take("a")
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (429, "1")
    buckets.take("b")
    now = 0.5
    buckets.take("a")
    with pytest.raises(ProblemError):
        buckets.take("a")
    now = 100.0
    for _ in range(3):
        buckets.take("a")


def test_an_address_that_asks_too_often_is_told_to_wait(monkeypatch):
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    with served(create_app(Settings(rate=0.001, burst=2))) as client:
        answers = [client.get("/v1/healthz") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) > 100


@pytest.mark.parametrize("said", [b'{"result": {"epsilon": 1.0}}', None])
def test_clients_that_never_ask_again_take_no_place(monkeypatch, said):
    calculator = Calculator(waiting=2, patience=0.01)
    monkeypatch.setattr(type(calculator._apart), "ask", lambda *_, **__: (time.sleep(0.1), said)[1])
    try:
        for n in range(8):
            assert calculator.run_later("verify", {"n": n}) is None
            futures = list(calculator._running.values())
            while not all(future.done() for future in futures):
                time.sleep(0.01)
        assert len(calculator._running) <= 2 + calculator.waiting
        if said is None:  # a failure is kept for the client that asks for it
            with pytest.raises(ProblemError, match="takes more than"):
                calculator.run_later("verify", {"n": 7})
        else:
            assert calculator.run_later("verify", {"n": 7}) == {"epsilon": 1.0}
    finally:
        calculator.close()


def test_a_calculation_that_takes_too_long_is_killed_and_the_next_one_runs():
    calculator = Calculator(processes=1, seconds=60, patience=60)
    event = {"type": "gaussian", "rho": "1", "count": 1}
    body = {"events": [event], "delta": "0.1", "epsilon": None}
    long = {
        **body,
        "events": [{"type": "laplace", "scale": str(20 + n), "count": 1} for n in range(40)],
    }  # never at once
    try:
        first = calculator.run("compose", body)
        process = calculator._idle.queue[0].process
        calculator.seconds = 0.0
        with pytest.raises(ProblemError, match="takes more than 0 s") as caught:
            calculator.run("compose", long)
        assert caught.value.status == 422
        assert calculator._idle.queue[0].process is not process
        calculator.seconds = 60
        assert calculator.run("compose", body) == first
        assert calculator.run("compose", long)["upper"]
    finally:
        calculator.close()
