"""The ledger over HTTP: shapes that scripts rely on, roles × endpoints, idempotency keys, refusals."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import budget_stores
from privcheck.accounting.conversions import zcdp_to_epsilon
from privcheck.errors import StoreError
from privcheck.ledger.registry import ROLES, may
from privcheck.service.access import ENDPOINTS
from privcheck.service.app import Settings, create_app, open_or_create
from privcheck.service.calculator import Calculator, Calculators
from served import refuse, served, wait_for

KEYS = (f"k{n}" for n in itertools.count())
EVENT = {"type": "gaussian", "rho": "0.01"}


class Person:
    """Somebody with a token."""

    def __init__(self, client, token):
        self.client, self.token = client, token

    def ask(self, method, path, body=None, *, key=None):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if method != "GET":
            headers["Idempotency-Key"] = key or next(KEYS)
        return self.client.request(method, path, json=body, headers=headers)

    def post(self, path, body=None, *, key=None):
        return self.ask("POST", path, body, key=key)

    def get(self, path):
        return self.ask("GET", path)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("store") / "ledger.db")
    token = open_or_create(url)
    assert open_or_create(url) is None
    app = create_app(Settings(store=url, rate=1e6, burst=10**6, processes=1, calculation_seconds=30))
    one = app.state.calculators.holders
    one.patience = 0.3  # what is not there yet is asked for again
    app.state.calculators = Calculators(holders=one, strangers=one)  # less to start
    with served(app) as client:
        yield app, Person(client, token)


@pytest.fixture(scope="module")
def officer(opened):
    return opened[1]


@pytest.fixture(scope="module")
def people(officer):
    make_grant(officer, "G", dataset="people")
    soon = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = {None: Person(officer.client, None), "wrong": Person(officer.client, "privcheck_wrong")}
    for role in ROLES:
        body = {"name": f"{role}-1", "role": role, "grants": ["G"] if role in ("ci", "analyst") else []}
        answer = officer.post("/v1/tokens", {**body, "expires": soon})
        assert answer.status_code == 201, answer.text
        made[role] = Person(officer.client, answer.json()["token"])
    return made


def make_grant(officer, name, *, dataset, cap="1"):
    body = {"name": name, "dataset": dataset, "currency": "rho", "cap": cap, "delta": "1e-6"}
    if officer.get(f"/v1/datasets/{dataset}").status_code == 404:
        assert officer.post("/v1/datasets", budget_stores.policy_body(body)).status_code == 201
    answer = officer.post("/v1/grants", body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_charge_is_committed_with_receipt_and_what_remains(officer):
    make_grant(officer, "shape", dataset="shapes", cap="0.025")
    answer = officer.post("/v1/charges", {"grant": "shape", "unit": "dataset", "event": EVENT})
    assert answer.status_code == 201
    told = answer.json()
    assert (told["state"], told["remaining"]) == ("committed", "0.015")
    receipt = officer.get(f"/v1/receipts/{told['receipt']['hash']}")
    assert receipt.json() == told["receipt"]
    shown = officer.get(f"/v1/charges/{told['id']}").json()
    assert (shown["state"], shown["event"]) == ("committed", {**EVENT, "count": 1})
    assert officer.post("/v1/charges", {"grant": "shape", "unit": "dataset", "event": EVENT}).status_code == 201
    refused = refuse(officer.post("/v1/charges", {"grant": "shape", "unit": "dataset", "event": EVENT}), 409)
    assert (refused["state"], refused["remaining"], refused["receipt"]) == ("refused", "0.005", None)
    assert "0.005 is left" in refused["reason"]


def test_a_reservation_is_committed_or_released(officer):
    make_grant(officer, "runs", dataset="runs")
    body = {"grant": "runs", "unit": "dataset", "event": {**EVENT, "count": 60}}
    first = officer.post("/v1/reservations", body)
    assert (first.status_code, first.json()["state"], first.json()["remaining"]) == (201, "reserved", "0.4")
    refuse(officer.post("/v1/reservations", body), 409)
    quoted = officer.post("/v1/quotes", {"grant": "runs", "unit": "dataset", "event": EVENT}).json()
    assert (quoted["state"], quoted["times"]) == ("quoted", 40)
    where = f"/v1/reservations/{first.json()['id']}"
    given_back = officer.post(f"{where}/release", {"evidence": "the job never started"})
    assert (given_back.status_code, given_back.json()["remaining"]) == (200, "1")
    refuse(officer.post(f"{where}/commit"), 409)
    again = officer.post("/v1/reservations", body).json()
    done = officer.post(f"/v1/reservations/{again['id']}/commit")
    assert (done.status_code, done.json()["state"]) == (200, "committed")
    refuse(officer.post(f"/v1/reservations/{again['id']}/release", {"evidence": "x"}), 409)
    refuse(officer.post("/v1/reservations/c-unknown/commit"), 404)


def test_the_same_key_gives_the_same_answer_and_another_body_is_refused(officer):
    make_grant(officer, "keys", dataset="keys")
    body = {"grant": "keys", "unit": "dataset", "event": EVENT}
    for path in ("/v1/charges", "/v1/reservations"):
        answers = [officer.post(path, body, key=f"same{path}") for _ in range(3)]
        assert len({(a.status_code, a.text) for a in answers}) == 1
        refuse(officer.post(path, {**body, "event": {**EVENT, "count": 2}}, key=f"same{path}"), 422)
        refuse(officer.post(path, {**body, "grant": "shape"}, key=f"same{path}"), 422)
    for path, made in (
        ("/v1/datasets", {"dataset": "d1", "epsilon": "4", "delta": "1e-6", "unit": budget_stores.UNIT_BODY}),
        ("/v1/grants", {"name": "g1", "dataset": "d1", "currency": "rho", "cap": "0.1", "delta": "1e-6"}),
        ("/v1/tokens", {"name": "t1", "role": "reader"}),
    ):
        answers = [officer.post(path, made, key=path) for _ in range(2)]
        assert answers[0].status_code == 201, answers[0].text
        assert answers[0].text == answers[1].text
        field = "name" if "name" in made else "dataset"
        refuse(officer.post(path, {**made, field: "other"}, key=path), 422)
        refuse(officer.post(path, made), 422)  # another key: the name is taken
    balance = officer.get("/v1/datasets/keys").json()["grants"][0]["balance"]
    assert (balance["committed"], balance["reserved"]) == ("0.01", "0.01")
    nothing = officer.client.post("/v1/charges", json=body, headers={"Authorization": f"Bearer {officer.token}"})
    refuse(nothing, 422, "Idempotency-Key")


def test_a_refused_request_keeps_no_key_and_one_that_is_written_does_also_after_a_restart(tmp_path, monkeypatch):
    """The same over HTTP as on the command line, for charges, reservations, commits, releases and ends of tokens."""
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    url = str(tmp_path / "ledger.db")
    token = open_or_create(url)
    small = {"grant": "G", "unit": "dataset", "event": EVENT}
    large = {**small, "event": {**EVENT, "count": 1000}}
    with served(create_app(Settings(store=url))) as client:
        officer = Person(client, token)
        make_grant(officer, "G", dataset="d", cap="1")
        for path in ("/v1/charges", "/v1/reservations"):
            refuse(officer.post(path, large, key=path), 409)
            assert officer.post(path, small, key=path).status_code == 201
            refuse(officer.post(path, large, key=path), 422)
        first, second = (officer.post("/v1/reservations", small).json()["id"] for _ in range(2))
        assert officer.post("/v1/tokens", {"name": "t", "role": "reader"}).status_code == 201
        asked = [
            ("POST", f"/v1/reservations/{first}/commit", None),
            ("POST", f"/v1/reservations/{second}/release", {"evidence": "x"}),
            ("DELETE", "/v1/tokens/t", None),
        ]
        answers = [officer.ask(*one, key=f"key{i}") for i, one in enumerate(asked)]
        assert [answer.status_code for answer in answers] == [200] * 3
    with served(create_app(Settings(store=url))) as client:
        officer = Person(client, token)
        for i, (one, answer) in enumerate(zip(asked, answers, strict=True)):
            assert officer.ask(*one, key=f"key{i}").text == answer.text
            refuse(officer.post("/v1/charges", small, key=f"key{i}"), 422)
        refuse(officer.post(f"/v1/reservations/{second}/commit", key="key0"), 422)


def test_a_token_that_is_revoked_while_its_charge_is_under_way_charges_nothing(opened, monkeypatch):
    """The request was let in; before it is written the token ends."""
    app, officer = opened
    make_grant(officer, "racing", dataset="racing")
    made = officer.post("/v1/tokens", {"name": "racer", "role": "analyst", "grants": ["racing"]}).json()["token"]
    analyst, charge = Person(officer.client, made), app.state.desk.writer.charge

    def late(actor, **asked):
        assert officer.ask("DELETE", "/v1/tokens/racer").status_code == 200
        return charge(actor, **asked)

    monkeypatch.setattr(app.state.desk.writer, "charge", late)
    refuse(analyst.post("/v1/charges", {"grant": "racing", "unit": "dataset", "event": EVENT}), 401)
    assert officer.get("/v1/grants/racing").json()["remaining"] == "1"


def test_keys_and_claims_are_known_after_a_restart(tmp_path):
    url = str(tmp_path / "ledger.db")
    token = open_or_create(url)
    asked = {
        "/v1/datasets": {"dataset": "d1", "epsilon": "8", "delta": "1e-6", "unit": budget_stores.UNIT_BODY},
        "/v1/grants": {"name": "g1", "dataset": "d1", "currency": "rho", "cap": "0.5", "delta": "1e-6"},
        "/v1/tokens": {"name": "t1", "role": "reader"},
    }
    settings, about = Settings(store=url, processes=1), {"name": "dp-apvi", "parameters": {"rho": "1/4"}}
    app = create_app(settings)
    with served(app) as client:
        officer = Person(client, token)
        first = {path: officer.post(path, body, key=path) for path, body in asked.items()}
        assert {answer.status_code for answer in first.values()} == {201}
        for name, judged in (("a" * 64, True), ("b" * 64, False)):
            app.state.desk.remember_claim(name, about, judged=judged)
            assert app.state.desk.recall_claim(name) == about
    app = create_app(settings)
    with served(app) as client:
        officer = Person(client, token)
        for path in ("/v1/datasets", "/v1/grants"):
            assert officer.post(path, asked[path], key=path).text == first[path].text
        told = refuse(officer.post("/v1/tokens", asked["/v1/tokens"], key="/v1/tokens"), 409)
        assert "shown once" in told["detail"]
        refuse(officer.post("/v1/grants", {**asked["/v1/grants"], "cap": "0.1"}, key="/v1/datasets"), 422)
        assert [app.state.desk.recall_claim(letter * 64) for letter in "ab"] == [about, None]


def test_what_came_at_once_with_one_key_is_charged_once_and_no_more_than_the_cap_is_spent(officer):
    make_grant(officer, "race", dataset="race", cap="0.1")
    body = {"grant": "race", "unit": "dataset", "event": EVENT}
    with ThreadPoolExecutor(8) as threads:
        same = list(threads.map(lambda _: officer.post("/v1/charges", body, key="one-key"), range(8)))
        many = list(threads.map(lambda _: officer.post("/v1/charges", body), range(20)))
    assert len({a.text for a in same}) == 1
    assert sorted(a.status_code for a in many) == [201] * 9 + [409] * 11


@pytest.mark.parametrize(("method", "path"), sorted(ENDPOINTS))
def test_every_role_at_every_endpoint(people, method, path):
    action = ENDPOINTS[method, path]
    place = path.format(name="dp-apvi", dataset="people", charge="c-0", grant="nothing", hash="0" * 64)
    for role, person in people.items():
        answer = person.ask(method, place, None if method in {"GET", "DELETE"} else {})
        if action is None:
            assert answer.status_code not in {401, 403}, (role, answer.text)
        elif role not in ROLES:
            refuse(answer, 401)
            assert answer.headers["www-authenticate"] == "Bearer"
        elif may(role, action):
            assert answer.status_code in {200, 404, 422, 503}, (role, answer.text)  # the body is empty
        else:
            refuse(answer, 403)


def test_every_endpoint_is_in_the_table(opened):
    shown = opened[0].openapi()["paths"]
    assert {(m.upper(), path) for path, methods in shown.items() for m in methods} == set(ENDPOINTS)


def test_own_grants_alone_and_tokens_that_end(people, officer):
    make_grant(officer, "other", dataset="people-2")
    assert people["ci"].post("/v1/charges", {"grant": "G", "unit": "dataset", "event": EVENT}).status_code == 201
    refuse(people["ci"].post("/v1/charges", {"grant": "other", "unit": "dataset", "event": EVENT}), 403)
    body = {"name": "short", "role": "reader"}
    token = officer.post("/v1/tokens", body).json()["token"]
    assert Person(officer.client, token).get("/v1/datasets").status_code == 200
    assert officer.ask("DELETE", "/v1/tokens/short").json() == {"name": "short", "revoked": True}
    refuse(Person(officer.client, token).get("/v1/datasets"), 401)


def test_a_claim_that_holds_is_charged_at_the_accountants_cost(officer):
    make_grant(officer, "claims", dataset="claims", cap="2")
    body = {"algorithm": "dp-apvi", "parameters": {"rho": "1/2"}}
    answer = officer.post("/v1/claims", body)
    while answer.status_code == 202 and answer.json()["state"] == "running":
        answer = officer.post("/v1/claims", body)
    told = answer.json()
    assert (answer.status_code, told["state"]) == (202, "holds")
    assert told["events"]["rho"] == {"type": "zcdp", "rho": "0.5"}
    assert told["events"]["epsilon"] is None
    done = officer.post("/v1/charges", {"grant": "claims", "claim": told["claim"]})
    assert done.status_code == 201, done.text
    assert done.json()["cost"]["amount"] == "0.5"
    kept = officer.get(f"/v1/charges/{done.json()['id']}").json()["claim"]
    assert (kept["algorithm"], kept["claim"], kept["parameters"]["rho"]) == ("dp-apvi", told["claim"], "1/2")
    policy = {
        "dataset": "adding",
        "epsilon": "9",
        "delta": "1e-6",
        "unit": {**budget_stores.UNIT_BODY, "relation": "add-remove"},
    }
    assert officer.post("/v1/datasets", policy).status_code == 201
    make_grant(officer, "adding", dataset="adding")
    other = refuse(officer.post("/v1/charges", {"grant": "adding", "claim": told["claim"]}), 422, "unit")
    assert "the relation is replace-one, not add-remove" in other["detail"]
    refuse(officer.post("/v1/charges", {"grant": "claims", "claim": "0" * 64}), 404)
    refuse(officer.post("/v1/claims", {"algorithm": "nothing"}), 404)
    bad = {"algorithm": "sparse-vector-4"}
    while (judged := officer.post("/v1/claims", bad).json())["state"] == "running":
        pass
    assert judged["state"] == "fails"
    refused = refuse(officer.post("/v1/charges", {"grant": "claims", "claim": judged["claim"]}), 409)
    assert refused["state"] == "refused"


def test_pages_of_charges_exports_and_the_curve_of_the_caps(officer):
    make_grant(officer, "pages", dataset="pages")
    for _ in range(103):
        assert officer.post(
            "/v1/charges", {"grant": "pages", "unit": "dataset", "event": {"type": "gaussian", "std": "100"}}
        ).is_success
    first = officer.get("/v1/datasets/pages/charges").json()
    assert (len(first["charges"]), first["next"]) == (100, 102)
    rest = officer.get(f"/v1/datasets/pages/charges?after={first['next']}").json()
    assert (len(rest["charges"]), rest["next"]) == (3, None)
    kept = wait_for(lambda: officer.get("/v1/export?as=dp-event&dataset=pages")).json()["datasets"][0]
    assert kept["events"] == [{"type": "gaussian", "std": "100", "count": 103}]
    assert "GaussianDpEvent" in kept["dp_event"]
    assert "no" in officer.get("/v1/export").json()["note"]
    points = wait_for(lambda: officer.get("/v1/datasets/pages/curve")).json()["points"]
    at = next(float(p["epsilon"]) for p in points if p["delta"] == "1e-6")
    assert at == pytest.approx(float(officer.get("/v1/datasets/pages").json()["policy"]["epsilon"]))
    refuse(officer.get("/v1/datasets/nowhere/curve"), 404)


def test_the_curve_holds_what_was_granted_after_the_first_charge(officer):
    policy = {"dataset": "late", "epsilon": "8", "delta": "1e-6", "unit": budget_stores.UNIT_BODY, "remainder": "rho"}
    assert officer.post("/v1/datasets", policy).status_code == 201
    make_grant(officer, "early", dataset="late", cap="0.5")
    assert officer.post(
        "/v1/charges", {"grant": "early", "unit": "dataset", "event": {"type": "zcdp", "rho": "0.1"}}
    ).is_success
    assert make_grant(officer, "later", dataset="late", cap="0.25")["grant"]["late"]
    body = {"name": "latest", "dataset": "late", "currency": "mu2", "cap": "0.5", "delta": "1e-6"}  # 0.25 of rho
    assert wait_for(lambda: officer.post("/v1/grants", body)).status_code == 201
    points = wait_for(lambda: officer.get("/v1/datasets/late/curve")).json()["points"]
    for point in points:
        assert float(point["epsilon"]) == pytest.approx(zcdp_to_epsilon(1.0, float(point["delta"])).value)


def test_a_plan_is_counted_down_and_a_claim_is_none_of_its_events(officer):
    events = [{"type": "gaussian", "std": "30", "count": 2}, {"type": "laplace", "scale": "20"}]
    policy = {"dataset": "plans", "epsilon": "8", "delta": "1e-6", "unit": budget_stores.UNIT_BODY}
    assert officer.post("/v1/datasets", policy).status_code == 201
    body = {"name": "plan", "dataset": "plans", "events": events, "delta": "1e-6"}
    refuse(officer.post("/v1/grants", body), 422)  # for whom were its events priced?
    body["unit"] = "dataset"
    made = wait_for(lambda: officer.post("/v1/grants", body))
    assert made.status_code == 201, made.text
    assert made.json()["grant"]["kind"] == "plan"
    event = {"type": "gaussian", "std": "30"}
    answers = [
        officer.post("/v1/charges", {"grant": "plan", "unit": "dataset", "event": event}).status_code for _ in range(3)
    ]
    assert answers == [201, 201, 409]
    capped = {"currency": "rho", "cap": "1"}
    for wrong in ({"events": events, "cap": "1"}, {"currency": "rho"}, {"events": []}, {}, capped):
        asked = {"name": "p2", "dataset": "plans", "delta": "1e-6", "unit": "dataset", **wrong}
        refuse(officer.post("/v1/grants", asked), 422)
    while (claim := officer.post("/v1/claims", {"algorithm": "dp-apvi"}).json())["state"] == "running":
        pass
    told = refuse(officer.post("/v1/charges", {"grant": "plan", "claim": claim["claim"]}), 422)
    assert "currency" in told["detail"]


def test_trust_models_over_http(officer):
    for trust in ("joint", "local"):
        unit = {**budget_stores.UNIT_BODY, "model": trust}
        policy = {"dataset": f"is-{trust}", "epsilon": "8", "delta": "1e-6", "unit": unit}
        assert officer.post("/v1/datasets", policy).status_code == 201
        make_grant(officer, trust, dataset=f"is-{trust}")
    body = {"grant": "joint", "unit": "dataset", "event": EVENT}
    assert refuse(officer.post("/v1/charges", body), 409)["error"] == "budget"
    refuse(officer.post("/v1/charges", {**body, "conditions": ["outputs"]}), 409)
    done = officer.post("/v1/charges", {**body, "conditions": ["outputs", "billboard"]}).json()
    assert [one["name"] for one in done["conditions"]] == ["outputs", "billboard"]
    assert officer.get(f"/v1/charges/{done['id']}").json()["unit"]["model"] == "joint"
    refuse(officer.post("/v1/charges", {**body, "unit": {**budget_stores.UNIT_BODY, "model": "local"}}), 422, "unit")
    messages = [
        officer.post("/v1/charges", {"grant": "local", "unit": "dataset", "event": {**EVENT, "count": 60}})
        for _ in range(3)
    ]
    assert [answer.status_code for answer in messages] == [201] * 3
    assert messages[-1].json()["balance"]["recorded"]["amount"] == "1.8"
    assert messages[-1].json()["remaining"] == "1"
    assert float(officer.get("/v1/datasets/is-local").json()["taken_part_in_all"]["epsilon"]) > 0


def test_a_divided_dataset_over_http(officer):
    policy = {"dataset": "months", "epsilon": "8", "delta": "1e-6", "unit": budget_stores.UNIT_BODY}
    assert officer.post("/v1/datasets", policy).status_code == 201
    names = {"blocks": ["2027-02", "2027-01"]}
    refuse(officer.post("/v1/datasets/months/blocks", names), 422, "disjoint_users")
    made = officer.post("/v1/datasets/months/blocks", {**names, "disjoint_users": "by the month of signing up"})
    assert [block["name"] for block in made.json()["blocks"]] == ["2027-01", "2027-02"]
    grant = {"name": "both", "dataset": "months", "currency": "rho", "cap": "1", "delta": "1e-6"}
    refuse(officer.post("/v1/grants", grant), 422, "blocks")
    assert officer.post("/v1/grants", {**grant, **names}).json()["grant"]["blocks"] == ["2027-01", "2027-02"]
    body = {"grant": "both", "unit": "dataset", "event": {"type": "zcdp", "rho": "0.75"}}
    one = officer.post("/v1/charges", {**body, "blocks": ["2027-02"]}).json()
    assert (one["blocks"], one["remaining"]) == (["2027-02"], "0.25")
    assert officer.post("/v1/quotes", {**body, "blocks": ["2027-01"]}).json()["times"] == 1
    refused = refuse(officer.post("/v1/reservations", body), 409)
    assert refused["reason"].startswith("on block 2027-02")
    assert officer.post("/v1/reservations", {**body, "blocks": ["2027-01"]}).json()["blocks"] == ["2027-01"]
    refuse(officer.post("/v1/charges", {**body, "blocks": ["2027-03"]}), 422, "blocks")
    wait_for(lambda: officer.get("/v1/datasets/months/curve"))


def test_evidence_of_a_violation_freezes_the_grant(officer):
    make_grant(officer, "audited", dataset="audited")
    done = officer.post("/v1/charges", {"grant": "audited", "unit": "dataset", "event": EVENT}).json()
    found = {"charge": done["id"], "verdict": "consistent", "report": "runs/a1"}
    assert officer.post("/v1/evidence", found).status_code == 201
    assert officer.post("/v1/charges", {"grant": "audited", "unit": "dataset", "event": EVENT}).status_code == 201
    answers = [officer.post("/v1/evidence", {**found, "verdict": "violation"}, key="e1") for _ in range(2)]
    assert answers[0].status_code == 201
    assert answers[0].text == answers[1].text
    assert officer.get(f"/v1/receipts/{answers[0].json()['hash']}").status_code == 200
    refused = refuse(officer.post("/v1/charges", {"grant": "audited", "unit": "dataset", "event": EVENT}), 409)
    assert "frozen" in refused["reason"]
    refuse(officer.post("/v1/evidence", {**found, "charge": "c-unknown"}), 404)


@pytest.mark.parametrize(
    "event",
    [{"type": "gaussian", "rho": "1e-400"}, {"type": "gaussian", "rho": "0.01\u0000"}, {"type": "gaussian"},
     {"type": "gaussian", "rho": "-1"}, {"type": "compose", "events": []}, {"type": "gaussian", "rho": 1e-320},
     {"type": "gaussian", "rho": "0.01", "count": 0}, {"type": "__import__('os')", "rho": "1"}],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_and_nothing_is_written(officer, people, event):
    before = officer.get("/v1/datasets/people").json()["head"]
    refuse(officer.post("/v1/charges", {"grant": "G", "unit": "dataset", "event": event}), 422)
    assert officer.get("/v1/datasets/people").json()["head"] == before


def test_an_unknown_outcome_is_told_to_ask_again_and_a_read_only_store_is_not_ready(opened, monkeypatch):
    app, officer = opened
    make_grant(officer, "lost", dataset="lost")
    body = {"grant": "lost", "unit": "dataset", "event": EVENT}
    book = app.state.desk.book

    def fail(*_, **__):
        raise StoreError("the connection was lost; ask again with the same key")

    with monkeypatch.context() as patch:
        patch.setattr(app.state.desk.writer, "charge", fail)
        answer = officer.post("/v1/charges", body, key="lost-1")
        refuse(answer, 503)
        assert answer.headers["retry-after"]
    assert officer.post("/v1/charges", body, key="lost-1").status_code == 201
    assert wait_for(lambda: officer.get("/v1/readyz")).status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(book.store, "read_only", "the disk is full")
        refuse(officer.get("/v1/readyz"), 503)
        refuse(officer.post("/v1/charges", body), 503)
        assert officer.get("/v1/datasets").status_code == 200


def test_without_a_store_there_are_calculations_alone():
    with served(create_app(Settings(processes=1))) as client:
        refuse(client.get("/v1/datasets"), 503)
        assert wait_for(lambda: client.get("/v1/readyz")).status_code == 200
