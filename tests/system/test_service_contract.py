"""The OpenAPI document is what the service says, and the service says nothing else: schemathesis over all of it."""

import json
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks
from schemathesis.specs.openapi import checks as openapi

import budget_stores
from privcheck.service.app import Settings, create_app, describe, open_or_create
from privcheck.service.calculator import Calculators
from served import served, wait_for

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"
SCHEMA = schemathesis.openapi.from_dict(json.loads(COMMITTED.read_text(encoding="utf-8")))  # the app takes seconds
OPERATIONS = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations()}
PAIRS = [
    (label, mode)
    for label, one in sorted(OPERATIONS.items())
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE
    or [*one.body, *one.path_parameters, *one.query, *one.headers]  # else no wrong one
]
CHECKS = [
    checks.not_a_server_error,
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_headers_conformance,
    openapi.response_schema_conformance,
]
EXAMPLES = settings(
    max_examples=12, deadline=None, derandomize=False, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
KNOWN = {
    "/v1/quotes": {"grant": "G", "unit": "dataset", "event": {"type": "gaussian", "rho": "0.00001"}},
    "/v1/charges": {"grant": "G", "unit": "dataset", "event": {"type": "gaussian", "rho": "0.00001"}},
    "/v1/reservations": {"grant": "G", "unit": "dataset", "event": {"type": "laplace", "epsilon": "0.001"}},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("store") / "ledger.db")
    token = open_or_create(url)
    app = create_app(Settings(store=url, rate=1e6, burst=10**6, seconds=60, calculation_seconds=30))
    one = app.state.calculators.holders
    app.state.calculators = Calculators(holders=one, strangers=one)  # less to start
    with served(app) as client:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "first"}
        made = {"name": "G", "dataset": "people", "currency": "rho", "cap": "1", "delta": "1e-6"}
        policy, first = budget_stores.policy_body(made), {**headers, "Idempotency-Key": "policy"}
        assert client.post("/v1/datasets", json=policy, headers=first).status_code == 201
        assert client.post("/v1/grants", json=made, headers=headers).status_code == 201
        assert wait_for(lambda: client.get("/v1/algorithms")).status_code == 200
        assert wait_for(lambda: client.get("/v1/algorithms/dp-apvi")).status_code == 200
        yield str(client.base_url).rstrip("/"), token


def test_the_committed_document_is_what_the_service_says():
    remedy = "python -m privcheck.service.app > docs/openapi.json"
    assert COMMITTED.read_text(encoding="utf-8") == describe(), f"the API has changed: {remedy}"


@pytest.mark.slow
@pytest.mark.parametrize(("label", "mode"), PAIRS)
def test_every_answer_is_documented_and_none_is_an_internal_error(service, label, mode):
    operation, (base, token) = OPERATIONS[label], service

    @seed(19)
    @EXAMPLES
    @given(
        case=operation.as_strategy(generation_mode=mode), known=st.booleans(), authorized=st.sampled_from([1, 1, 1, 0])
    )
    def ask(case, known, authorized):
        if known and isinstance(case.path_parameters, dict):
            case.path_parameters.update({name: "dp-apvi" for name in case.path_parameters if name == "name"})
            case.path_parameters.update({name: "people" for name in case.path_parameters if name == "dataset"})
        if known and case.path in KNOWN and mode is GenerationMode.POSITIVE:
            case.body = KNOWN[case.path]
        headers = {"Authorization": f"Bearer {token}"} if authorized else {}
        answer = case.call(base_url=base, headers=headers)
        case.validate_response(answer, checks=CHECKS)

    ask()
