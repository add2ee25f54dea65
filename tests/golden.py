"""The JSON of every command and endpoint at tiny sizes; `python tests/golden.py` writes the committed files again.

A document keeps its fields, types and figures. Clocks, paths, versions, keys, digests and noise without a seed become
markers such as `<time>`. Figures of exact arithmetic keep all digits; the others, which pass through a processor's own
`exp` or a BLAS, keep nine.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import budget_stores
import work_trees
from privcheck.cli.main import main
from privcheck.runtime import registry

FOLDER = Path(__file__).parent / "system" / "golden"
DIGITS = 9
VOLATILE = {"seconds", "trials_per_second", "episodes_per_second", "cores", "platform", "executable", "bytes"}
VERSIONS = {"versions", "packages"}
TEXT = (  # in this order: the first pattern that fits takes the characters
    (r"-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----\n", "<public key>"),
    (r"privcheck_[A-Za-z0-9_-]{43}", "<token>"),
    (r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}==", "<signature>"),
    (r"\b[0-9a-f]{64}\b", "<digest>"),
    (r"\bc-[0-9a-f]{16}\b", "<charge>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"\b20[0-8]\d-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)", "<time>"),
    (r"\b\d+(\.\d+)? (m?s|seconds|minutes|hours)\b", "<duration>"),
    (r"OpenDP \d+[\d.]*", "OpenDP <version>"),
)
Documents = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Recorder:
    """Runs commands in this process and keeps what they print, by the name of the golden file."""

    folder: Path
    found: Documents = field(default_factory=dict)

    def run(
        self, command: str, *arguments: object, code: int = 0, name: str = "", drawn: tuple[str, ...] = (),
        exact: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Returns the document of a command.

        Args:
            command: Its words, `ledger heads show` for example.
            arguments: Its arguments, without `--json`.
            code: The expected exit code.
            name: Tells apart the files of one command.
            drawn: Fields whose value comes from noise without a seed.
            exact: All figures are computed exactly, so that every digit counts.
        """
        words = [*command.split(), *map(str, arguments), "--json"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["privcheck", *words])  # reports say which command made them
            done = CliRunner().invoke(main, words)
        assert done.exit_code == code, (command, done.exit_code, done.output, done.exception)
        document: dict[str, Any] = json.loads(done.stdout)
        key = command.replace(" ", "-") + (f"~{name}" if name else "")
        self.keep(key, {"exit": code, "document": document}, drawn=drawn, exact=exact)
        return document

    def keep(self, name: str, told: Mapping[str, Any], *, drawn: tuple[str, ...] = (), exact: bool = False) -> None:
        assert name not in self.found, f"two documents are called {name}"
        self.found[name] = _stable(told, str(self.folder), frozenset(drawn), exact=exact)


def _stable(value: Any, folder: str, drawn: frozenset[str], *, exact: bool) -> Any:
    """Returns a document with markers for its volatile parts."""

    def inner(one: Any) -> Any:
        return _stable(one, folder, drawn, exact=exact)

    if isinstance(value, dict):
        return {_text(name, folder): _mark(name, one, drawn, inner) for name, one in value.items()}
    if isinstance(value, list):
        return [inner(one) for one in value]
    if isinstance(value, str):
        long = not exact and re.fullmatch(r"-?\d+\.\d{10,}([eE][-+]?\d+)?", value)
        return f"{float(value):.{DIGITS}g}" if long else _text(value, folder)
    if isinstance(value, float) and not exact and math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    return value


def _mark(name: str, value: Any, drawn: frozenset[str], inner: Callable[[Any], Any]) -> Any:
    if name in VERSIONS and isinstance(value, dict):
        return dict.fromkeys(value, "<version>")
    if name == "version":
        return "<version>"
    if name in VOLATILE and not isinstance(value, dict | list) and value is not None:
        return f"<{name}>"
    return _types(value) if name in drawn else inner(value)


def _types(value: Any) -> Any:
    """Returns the shape of a value that noise without a seed has drawn."""
    if isinstance(value, dict):
        return {name: _types(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_types(value[0]), "…"] if value else []
    return "<number>" if isinstance(value, int | float) and not isinstance(value, bool) else value


def _text(value: str, folder: str) -> str:
    value = value.replace(folder, "<folder>")
    for pattern, marker in TEXT:
        value = re.sub(pattern, marker, value)
    return value


def commands() -> set[str]:
    """Returns the names of all commands that print JSON, with their groups: `ledger-heads-show`."""
    return {"-".join(words) for words, one in _walk(main) if any(p.name == "as_json" for p in one.params)}


def _walk(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        one = command.get_command(context, name)
        assert one is not None
        yield from _walk(one, (*words, name))


def endpoints() -> set[str]:
    """Returns the names of all operations of the OpenAPI document: `GET v1 datasets {dataset}`."""
    from privcheck.service.app import create_app

    paths = create_app().openapi()["paths"]
    return {endpoint(method, path) for path, methods in paths.items() for method in methods}


def endpoint(method: str, path: str) -> str:
    """Returns the name of an operation's golden file."""
    return f"http-{method.lower()}-{path.removeprefix('/v1/').replace('/', '-')}"


@contextmanager
def _few_algorithms(*few: str) -> Iterator[None]:
    """Lets the registry list only a few algorithms: the form of a list does not depend on its length."""
    every = registry.names
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "names", lambda group: list(few) if group == "algorithms" else every(group))
        yield


def declared(folder: Path) -> Documents:
    """Returns what the commands print that need no data."""
    note = Recorder(folder)
    note.run("list", exact=True)
    note.run("show", "dp-apvi", exact=True)
    note.run("show", "rappor", name="procedure", exact=True)
    note.run("show", "nope", name="error", code=2)
    note.run("budget", "dp-apvi", "--set", "H=3", "--set", "rho=1/10", "--delta", "1e-6")
    note.run("budget", "private-ucb-vi-local", "--set", "K=20", "--set", "H=3", name="local")
    note.run("budget", "noisy-max", name="procedure")
    note.run("verify", "dp-apvi", "--set", "H=3")
    note.run("verify", "sparse-vector-4", name="fails", code=1)
    with _few_algorithms("apvi", "dp-apvi", "dp-apvi-laplace"):
        note.run("verify", "--all", name="all")
    note.run("calibrate", "dp-apvi-laplace", "--epsilon", "1", "--delta", "1e-5")
    note.run("doctor")
    note.run("new", "my-agent", "--out", folder / "my-agent")
    return note.found


def _trips(path: Path, *, users: int = 20, steps: int = 2) -> Path:
    rng = np.random.default_rng(1)
    lines = ["episode,step,state,action,reward,next_state\n"]
    for user in range(users):
        states = rng.integers(0, 3, steps + 1)
        lines += [
            f"{user},{h},{states[h]},{rng.integers(0, 2)},{rng.integers(0, 2)},{states[h + 1]}\n" for h in range(steps)
        ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _raw(path: Path) -> Path:
    stays = [
        (1, 0, "well", "wait", 0),
        (1, 1, "ill", "treat", 15),
        (2, 0, "ill", "wait", -3),
        (2, 1, "gone", "wait", 2),
    ]
    path.write_text("stay,hour,condition,care,score\n" + "".join(",".join(map(str, s)) + "\n" for s in stays))
    return path


def learned(folder: Path) -> Documents:
    """Returns what the commands print that read a dataset or learn from one."""
    note = Recorder(folder)
    raw, recipe = _raw(folder / "raw.csv"), folder / "recipe.toml"
    columns = ("episode=stay", "step=hour", "state=condition", "action=care", "reward=score")
    named = [word for one in columns for word in ("--column", one)]
    (folder / "codes.json").write_text('{"states": ["well", "ill", "gone"], "actions": ["wait", "treat"]}')
    note.run(
        "prepare", raw, *named, "--out", folder / "prepared.csv", "--codebook", folder / "codes.json", "--reward-range",
        -15, 15, "--horizon", 2, "--one-episode-is-one-user",
    )  # fmt: skip
    note.run("prepare", raw, *named, "--draft", recipe, name="draft")
    recipe.write_text(_confirm(recipe.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "again").mkdir()  # labels of two tables in one folder would overwrite each other
    note.run("prepare", raw, "--recipe", recipe, "--out", folder / "again" / "again.csv", name="recipe")
    users = ("--data", _trips(folder / "trips.csv"), "--one-episode-is-one-user", "--who", "patient")
    small = (*users, "--set", "S=3", "--set", "A=2", "--set", "rho=1")
    note.run("run", "dp-apvi", *small, "--seed", 1, "--out", folder / "ran", name="offline")
    note.run("policy", folder / "ran" / "policy.npz")
    note.run("run", "dp-apvi", *small, "--dry-run", name="planned")
    note.run("sweep", "dp-apvi", *users, "--set", "S=3", "--set", "A=2", "--over", "rho=1,4", "--out", folder / "swept")
    drawn = ("policy", "value", "rows", "gap")
    note.run("run", "dp-apvi", *small, "--noise", "release", "--out", folder / "mine", name="release", drawn=drawn)
    note.run("publish", folder / "mine", "--out", folder / "handed-on", "--date", "2026-11-24", drawn=drawn)
    return note.found


def _confirm(text: str) -> str:
    """Returns a drafted recipe with its open choices made."""
    for line, chosen in (
        ("range = '?'", "range = [-15, 15]"),
        ("one_episode_is_one_user = '?'", "one_episode_is_one_user = true"),
        ("confirmed = false", "confirmed = true"),
    ):
        name = line.partition(" = ")[0]
        text = re.sub(rf"(?m)^{name} = .*$", chosen, text)
    return text


def audited(folder: Path) -> Documents:
    """Returns what audits and whole checks print, and their reports rendered again."""
    note = Recorder(folder)
    note.run("audit", "dp-apvi", "--set", "H=2", "--trials", 200, "--seed", 1)
    users = ("--data", _trips(folder / "trips.csv"), "--one-episode-is-one-user", "--who", "patient")
    sizes = ("--set", "S=3", "--set", "A=2", "--trials", 100, "--seed", 1)
    note.run("check", "dp-apvi", *users, *sizes, "--out", folder / "checked")
    note.run("report", folder / "checked")
    return note.found


def reproduced(folder: Path) -> Documents:
    """Returns what lists the papers' figures, and one of them as a shrunken version."""
    note = Recorder(folder)
    note.run("reproduce", exact=True)
    note.run("reproduce", "offline-rl", "figure-1b", "--quick", "--out", folder / "figures", name="figure")
    return note.found


def played(folder: Path) -> Documents:
    """Returns what runs of online agents print."""
    note = Recorder(folder)
    tiny = ("--env", "riverswim", "--set", "S=3", "--set", "H=2", "--set", "K=8", "--replicates", 2, "--seed", 1)
    note.run("run", "private-ucb-vi-central", *tiny)
    note.run("run", "private-ucb-vi-central", "ucb-vi", *tiny, name="several")
    return note.found


def reviewed(folder: Path) -> Documents:
    """The message about a change of an `assert_private` call in no marked test."""
    note = Recorder(folder)
    test = "from privcheck.testing import assert_private\n\ndef test():\n    assert_private(print, 1)\n"
    (folder / "tree").mkdir()
    tree = work_trees.make(folder / "tree", {"src.py": "", "tests/test_own.py": test, "pytest.ini": "[pytest]\n"})
    work_trees.commit(tree, {"tests/test_own.py": f"import src\n{test}", "data.csv": "1\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree)
        patch.setenv("PYTHONPATH", os.pathsep.join(one for one in sys.path if Path(one).is_absolute()))
        patch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
        note.run("ci", "--base", "main", "--run-number", 17, code=3)
    return note.found


G = ("--grant", "G")
FOR = ("--unit", "dataset")
RHO = (*FOR, "--gaussian-rho", "0.01")


def ledger(folder: Path) -> Documents:
    """Returns what the commands of `privcheck ledger` print, in the order in which a team uses them."""
    note = Recorder(folder)
    url = f"sqlite:///{folder}/budget.db"

    def ask(command: str, *arguments: object, code: int = 0, name: str = "") -> dict[str, Any]:
        return note.run(f"ledger {command}", *arguments, "--store", url, code=code, name=name, exact=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIVCHECK_LEDGER_TOKEN", ask("init")["officer_token"])
        policy = ("--epsilon", "8", "--delta", "1e-6", "--unit", budget_stores.UNIT)
        ask("policy", "--dataset", "trips", *policy, "--until", "2099-01-01T00:00:00Z", "--allow-asserted-unit")
        ask("policy", "--dataset", "people", *policy, name="second")
        given = ("--dataset", "trips", "--currency", "rho", "--cap", "1/3", "--delta", "1e-6")
        ask("grant", *given, "--name", "G")
        ask("grant", *given, "--name", "G", code=2, name="error")
        plan = folder / "plan.json"
        plan.write_text('{"type": "compose", "events": [{"type": "gaussian", "rho": 0.01, "count": 3}]}')
        ask("grant", "--dataset", "people", "--plan", plan, "--delta", "1e-6", *FOR, "--name", "P", name="plan")
        ask("quote", *G, *RHO)
        ask("quote", *G, *FOR, "--gaussian-rho", "9", code=1, name="refused")
        first = ask("charge", *G, *RHO, "--key", "K")
        (folder / "charge.json").write_text(json.dumps(first))
        ask("charge", *G, *FOR, "--gaussian-rho", "0.5", code=1, name="refused")
        ask("charge", *G, "--algorithm", "dp-apvi", "--set", "rho=1/4", name="algorithm")
        held = ask("reserve", *G, *RHO, "--seconds", "60")
        ask("commit", held["id"])
        spare = ask("reserve", *G, *RHO, name="second")
        ask("release", spare["id"], "--evidence", "it never ran")
        ask("evidence", held["id"], "--verdict", "consistent", "--report", "audit.json")
        ask("policy", "--dataset", "parts", *policy, name="third")
        ask("block", "parts", "--name", "b1", "--name", "b2", "--disjoint-users", "by month")
        ask("token", "--name", "ana", "--role", "analyst", "--grant", "G", "--expires", "2099-01-01T00:00:00Z")
        ask("token", "--name", "ana", "--revoke", name="revoke")
        ask("token", "--list", name="list")
        key = ask("key")
        (folder / "ledger.pem").write_text(str(key["key"]))
        for name in ("first", "second"):
            heads = CliRunner().invoke(main, ["ledger", "heads", "show", "--store", url])
            (folder / f"{name}.jsonl").write_text(heads.stdout)
            ask("freeze", "P", "--reason", "an audit") if name == "first" else ask("heads show")
        compared = (folder / "first.jsonl", folder / "second.jsonl", "--key", folder / "ledger.pem")
        ask("heads prove", "--from", folder / "first.jsonl")
        ask("heads push", folder / "place.jsonl")
        note.run("ledger heads compare", *compared, code=3, exact=True)
        note.run("ledger receipt verify", folder / "charge.json", "--key", folder / "ledger.pem", exact=True)
        ask("show")
        ask("show", "trips", name="dataset")
        ask("show", "--charge", held["id"], name="charge")
        ask("verify", "--receipt", json.dumps(first))
        ask("verify", "--receipt", json.dumps({**first["receipt"], "seq": 99}), code=1, name="wrong")
        ask("export", "trips")
        ask("export", "trips", "--as", "dp-event", name="dp-event")
        ask("import", _record(folder), *G)
        ask("backup", folder / "backup.db")
        copy = f"sqlite:///{folder}/restored.db"
        note.run("ledger restore", folder / "backup.db", "--store", copy, exact=True)
    return note.found


def _record(folder: Path) -> Path:
    """Returns the record of a finished run of the smallest size."""
    given = ("--data", _trips(folder / "trips.csv"), "--one-episode-is-one-user", "--who", "user")
    sizes = ("--set", "S=3", "--set", "A=2", "--set", "rho=1/100", "--out", folder / "ran")
    done = CliRunner().invoke(main, list(map(str, ("run", "dp-apvi", *given, *sizes))))
    assert done.exit_code == 0, done.output
    return folder / "ran" / "ledger.jsonl"


def _calculate(_: object, message: bytes, **_limits: float) -> bytes:
    """Answers a task in this process, in place of a process that first has to import everything."""
    from privcheck.commands.calculations import answer

    return json.dumps(answer(*json.loads(message))).encode()


@contextmanager
def _service(store: str, token: str) -> Iterator[Callable[..., Any]]:
    """Yields a function that asks a served ledger; its calculations run in this process."""
    from privcheck.service.app import Settings, create_app
    from privcheck.service.calculator import _Process
    from served import served

    keys = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Process, "ask", _calculate)
        patch.setattr(_Process, "start", lambda _: None)
        patch.setattr(_Process, "is_up", lambda _: True)
        app = create_app(Settings(store=store, rate=1e6, burst=10**6, processes=1, seconds=60))
        with served(app) as client:

            def ask(method: str, path: str, body: object = None, **query: str) -> Any:
                headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"k{next(keys)}"}

                def send() -> Any:
                    return client.request(method, path, json=body, headers=headers, params=query)

                while (answer := send()).status_code == 503 or answer.json().get("state") == "running":
                    time.sleep(0.05)
                return answer

            yield ask


def answered(folder: Path) -> Documents:
    """Returns what every HTTP endpoint answers, of a ledger that is made here."""
    note = Recorder(folder)
    store = f"sqlite:///{folder}/budget.db"
    token = json.loads(CliRunner().invoke(main, ["ledger", "init", "--store", store, "--json"]).stdout)["officer_token"]
    event = {"type": "gaussian", "rho": "0.01"}
    spend = {"grant": "G", "unit": "dataset", "event": event}
    with _few_algorithms("apvi", "dp-apvi"), _service(store, token) as send:

        def ask(method: str, path: str, body: object = None, *, status: int = 200, name: str = "", exact: bool = True,
                of: str = "", query: Mapping[str, str] = MappingProxyType({})) -> Any:  # fmt: skip
            answer = send(method, re.sub(r"\{\w+\}", of, path), body, **query)
            assert answer.status_code == status, (path, answer.text)
            key = endpoint(method, path) + (f"~{name}" if name else "")
            note.keep(key, {"status": status, "document": answer.json()}, exact=exact)
            return answer.json()

        ask("GET", "/v1/healthz")
        ask("GET", "/v1/readyz")
        ask("POST", "/v1/compose", {"events": [event], "delta": "1e-6"}, exact=False)
        ask("POST", "/v1/compose", {"events": []}, status=422, name="error")
        ask("POST", "/v1/calibrate", {"events": [event], "epsilon": "1", "delta": "1e-6"}, exact=False)
        ask("POST", "/v1/convert", {"guarantee": {"type": "zcdp", "rho": "0.5"}, "delta": "1e-6"}, exact=False)
        ask("GET", "/v1/algorithms")
        ask("GET", "/v1/algorithms/{name}", of="dp-apvi")
        few = {"parameters": {"H": "3"}}
        ask("POST", "/v1/algorithms/{name}/budget", {**few, "delta": "1e-6"}, of="dp-apvi", exact=False)
        ask("POST", "/v1/algorithms/{name}/verify", few, of="dp-apvi", exact=False)
        unit = budget_stores.UNIT_BODY
        policy = {"dataset": "trips", "epsilon": "8", "delta": "1e-6", "unit": unit, "asserted_units": True}
        ask("POST", "/v1/datasets", policy, status=201)
        assert send("POST", "/v1/datasets", {**policy, "dataset": "parts"}).status_code == 201
        blocks = {"blocks": ["b1", "b2"], "disjoint_users": "by month"}
        ask("POST", "/v1/datasets/{dataset}/blocks", blocks, status=201, of="parts")
        grant = {"name": "G", "dataset": "trips", "currency": "rho", "cap": "1/3", "delta": "1e-6"}
        ask("POST", "/v1/grants", grant, status=201)
        ask("POST", "/v1/quotes", spend)
        first = ask("POST", "/v1/charges", spend, status=201)
        ask("POST", "/v1/charges", {**spend, "event": {**event, "rho": "9"}}, status=409, name="refused")
        held = ask("POST", "/v1/reservations", spend, status=201)["id"]
        ask("POST", "/v1/reservations/{charge}/commit", {}, of=held)
        spare = send("POST", "/v1/reservations", spend).json()["id"]
        ask("POST", "/v1/reservations/{charge}/release", {"evidence": "it never ran"}, of=spare)
        ask("POST", "/v1/claims", {"algorithm": "dp-apvi", "parameters": {"H": "3"}}, status=202)
        evidence = {"charge": held, "verdict": "consistent", "report": "audit.json"}
        ask("POST", "/v1/evidence", evidence, status=201)
        ask("POST", "/v1/tokens", {"name": "ana", "role": "analyst", "grants": ["G"]}, status=201)
        ask("GET", "/v1/tokens")
        ask("DELETE", "/v1/tokens/{name}", of="ana")
        ask("GET", "/v1/datasets")
        ask("GET", "/v1/datasets/{dataset}", of="trips")
        ask("GET", "/v1/datasets/{dataset}/curve", of="trips", exact=False)
        ask("GET", "/v1/datasets/{dataset}/charges", of="trips")
        ask("GET", "/v1/grants/{grant}", of="G")
        ask("GET", "/v1/charges/{charge}", of=held)
        ask("GET", "/v1/receipts/{hash}", of=first["receipt"]["hash"])
        ask("GET", "/v1/key")
        ask("GET", "/v1/heads")
        ask("GET", "/v1/export")
        ask("GET", "/v1/export", query={"as": "dp-event"}, name="dp-event")
        ask("POST", "/v1/verify", {"receipts": [first["receipt"]]})
        ask("POST", "/v1/grants/{grant}/freeze", {"reason": "an audit"}, status=201, of="G")
    backup, copy = folder / "backup.db", f"sqlite:///{folder}/restored.db"
    for words in (("backup", backup, "--store", store), ("restore", backup, "--store", copy)):
        assert CliRunner().invoke(main, ["ledger", *map(str, words)]).exit_code == 0
    with _service(copy, token) as send:
        answer = send("POST", "/v1/accept", {"receipts": [first["receipt"]]})
        note.keep(endpoint("POST", "/v1/accept"), {"status": answer.status_code, "document": answer.json()}, exact=True)
    return note.found


AREAS: Mapping[str, Callable[[Path], Documents]] = {
    one.__name__: one for one in (declared, learned, audited, played, reproduced, reviewed, ledger, answered)
}


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name).resolve()


def write(document: Mapping[str, Any]) -> str:
    """Returns the text of a golden file."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _regenerate() -> None:
    FOLDER.mkdir(exist_ok=True)
    made = set()
    for area in AREAS.values():
        with _scratch() as folder:
            for name, document in area(folder).items():
                (FOLDER / f"{name}.json").write_text(write(document), encoding="utf-8")
                made.add(f"{name}.json")
    for path in FOLDER.glob("*.json"):
        if path.name not in made:
            path.unlink()


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    _regenerate()
