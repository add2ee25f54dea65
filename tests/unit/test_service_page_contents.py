"""What stands on the pages: the numbers of the JSON API, and text that cannot run."""

import html
import json
import re
import time
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from urllib.parse import quote

import pytest

import budget_stores
from demo_pages import OFFICER, demonstrated
from page_visits import HTML, labelled, links, numbers, read, rows, words
from privcheck.ledger import Actor, BudgetPolicy, grants
from privcheck.ledger.grants import read_adaptive, write_grant
from privcheck.service.pages import lists
from privcheck.service.pages.charts import draw_courses
from privcheck.service.pages.queries import Course
from privcheck.terms.unit import parse_unit
from served import wait_for


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with demonstrated(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture(scope="module")
def officer(opened):
    return opened[1]["officer"]


def test_the_list_of_datasets_has_the_numbers_of_the_api(officer):
    told = officer.ask("/v1/datasets").json()["datasets"]
    sections = list(read(officer.get("/")).all("section", class_="dataset"))
    assert len(sections) == len(told) == 3
    for one, section in zip(told, sections, strict=True):
        assert section.one("a").text() == one["name"]
        assert numbers(section.one("p")) == [one["policy"]["epsilon"], one["policy"]["delta"]]
        for grant, cells in zip(one["grants"], rows(section), strict=True):
            balance = grant["balance"]
            assert cells[0].text() == grant["name"]
            shown = [numbers(cell)[0] for cell in cells if cell.attributes.get("class") == "number"]
            assert shown == [balance[name] for name in ("free", "cap", "committed", "reserved")]
            cap = Fraction(balance["cap"])
            for name in ("committed", "reserved"):
                drawn = [float(bar.attributes["width"]) for bar in cells[1].all("rect", class_=name)] or [0.0]
                assert drawn[0] == pytest.approx(float(100 * Fraction(balance[name]) / cap), abs=1e-3)
            assert cells[-1].text() == {"frozen": "frozen", "open": "open"}[balance["state"]]
    assert [words(next(one.all("span"))) for one in sections] == ["Not supported", "Open", "Open"]


@pytest.mark.parametrize(("name", "kept"), [("ads", False), ("trips", True)])
def test_no_page_promises_what_an_audit_found_violated(officer, name, kept):
    support = officer.ask(f"/v1/datasets/{name}").json()["support"]
    assert (support["state"] == "as declared") == kept
    for path in (f"/statement/{name}", f"/datasets/{name}"):
        text = words(read(officer.settled(path)))
        assert ("will ever release keeps this" in text) == kept
        assert kept or support["sentence"] in text
    assert ("The guarantee stands as declared" in words(read(officer.settled(f"/statement/{name}")))) == kept


@pytest.mark.parametrize("name", ["ads", "icu-stays", "trips"])
def test_a_datasets_page_has_the_numbers_of_the_api(officer, name):
    told = officer.ask(f"/v1/datasets/{name}").json()
    curve = wait_for(lambda: officer.ask(f"/v1/datasets/{name}/curve")).json()["points"]
    page = read(officer.settled(f"/datasets/{name}"))
    assert numbers(page.one("section", class_="verdict")) == [
        told["policy"]["epsilon"], told["policy"]["delta"],
    ]  # fmt: skip
    tables = labelled(page)
    for grant, cells in zip(told["grants"], rows(tables["What each grant guarantees"]), strict=True):
        assert (cells[0].text(), cells[-1].text()) == (grant["name"], grant["theorem"])
        assert numbers(cells[1]) + numbers(cells[2]) == [grant["epsilon"], grant["delta"]]
    points = [[numbers(cell)[0] for cell in row] for row in rows(tables["Points of the curve"])]
    assert points == [[point["delta"], point["epsilon"]] for point in curve]
    own = next(p["epsilon"] for p in curve if Fraction(p["delta"]) == Fraction(told["policy"]["delta"]))
    assert numbers(page.one("dl", class_="strip"))[1] == own
    assert "The amount spent so far is no guarantee" in page.text()
    charges = officer.ask(f"/v1/datasets/{name}/charges").json()["charges"][::-1][:25]
    shown = rows(tables["Charges"])
    assert len(shown) == len(charges)
    for charge, cells in zip(charges, shown, strict=True):
        assert cells[0].one("a").attributes["href"] == f"/charges/{charge['id']}"
        assert numbers(cells[3]) == [charge["cost"]["amount"]]
        state = "expired" if charge["expired"] else charge["state"]
        assert (cells[1].text(), words(cells[4]), cells[5].text()) == (charge["grant"], state, charge["actor"])
    assert told["head"]["hash"] in page.text()


def test_a_divided_dataset_shows_every_block_with_its_own_sums(officer):
    told = officer.ask("/v1/datasets/ads").json()
    (grant,) = told["grants"]
    page = read(officer.get("/datasets/ads"))
    tables = labelled(page)
    for block in told["blocks"]:
        sums = grant["balance"]["blocks"][block["name"]]
        (cells,) = rows(tables[f"Block {block['name']}"])
        shown = [numbers(cell)[0] for cell in cells if cell.attributes.get("class") == "number"]
        assert shown == [sums["free"], grant["cap"], sums["committed"], sums["reserved"]]
        assert block["disjoint_users"] in page.text()
    assert {sums["committed"] for sums in grant["balance"]["blocks"].values()} == {"1", "1.75"}
    events = [row[2].text().rpartition(", on ")[2] for row in rows(tables["Charges"])]
    assert events[:2] == ["2025-h2, 2026-h1", "2026-h1"]
    stated = rows(labelled(read(officer.get("/statement/ads")))["Blocks"])
    assert [row[0].text() for row in stated] == ["2025-h2", "2026-h1"]


def test_a_local_dataset_says_that_charges_are_recorded_and_not_added(opened, officer):
    book = opened[0].state.desk.book
    book.set_policy(OFFICER, dataset="phones", epsilon="2", delta="0", unit=budget_stores.unit_of("local", who="phone"))
    book.grant(OFFICER, name="polls", dataset="phones", currency="epsilon", cap="1.5")
    event = {"type": "randomized_response", "epsilon": "1.25"}
    done = [book.charge(OFFICER, grant="polls", unit="dataset", event=event).charge for _ in range(3)]
    told = officer.ask("/v1/datasets/phones").json()
    verdict = read(officer.get("/datasets/phones")).one("section", class_="verdict")
    assert "Every message of one phone keeps this" in words(verdict)
    assert numbers(verdict)[-2:] == [told["taken_part_in_all"]["epsilon"], "0"] == ["3.75", "0"]
    page = read(officer.get(f"/charges/{done[0]}"))
    assert "Recorded, not added: one message is at most the cap" in words(page)
    assert "One message keeps ε = 1.25 at δ = 0" in words(page)
    lost = book.reserve(OFFICER, grant="polls", unit="dataset", event=event, seconds=1).charge
    time.sleep(1.05)
    assert f"/charges/{lost}" in links(read(officer.get("/queue")))  # expired, though nothing of a cap is reserved


def test_a_charge_of_joint_dp_has_the_conditions_of_the_lemma(opened, officer):
    book = opened[0].state.desk.book
    book.set_policy(OFFICER, dataset="rewards", epsilon="8", delta="1e-6", unit=budget_stores.unit_of("joint"))
    book.grant(OFFICER, name="board", dataset="rewards", currency="rho", cap="0.5", delta="1e-6")
    claim = {"joint": {"outputs": "looked at in review 12", "billboard": "stated by who charges"}}
    done = book.charge(OFFICER, grant="board", unit="dataset", event={"type": "zcdp", "rho": "0.1"}, claim=claim)
    page = words(read(officer.get(f"/charges/{done.charge}")))
    for part in ("billboard lemma, Hsu, Huang, Roth, Roughgarden & Wu 2014", "looked at in review 12", "outputs: "):
        assert part in page


def test_a_claim_shows_its_verdict_where_it_was_judged(opened, officer):
    book = opened[0].state.desk.book
    for claim, said in (
        ({"algorithm": "dp-apvi", "verdict": "holds"}, "Verdict: holds"),
        ({"algorithm": "dp-apvi", "claim": "0" * 64}, "Verdict: holds"),
        ({"algorithm": "dp-apvi", "record": "0" * 64}, "whether its claim holds was not asked"),
        ({"noise": "drawn twice"}, None),
    ):
        done = book.charge(
            OFFICER, grant="trips-routes", unit="dataset", event={"type": "gaussian", "mu2": "0.0001"}, claim=claim
        )
        page = words(read(officer.get(f"/charges/{done.charge}")))
        assert (said or "drawn twice") in page
        assert ("Verdict" in page) == ("Verdict" in (said or ""))


def test_a_plan_shows_what_is_used_of_each_event(officer):
    plan = next(g for g in officer.ask("/v1/datasets/trips").json()["grants"] if g["kind"] == "plan")
    table = next(
        one
        for one in read(officer.get("/datasets/trips")).all("div")
        if one.attributes.get("aria-label") == "Plan trips-census"
    )
    shown = [(cells[1].text(), cells[2].text()) for cells in rows(table)]
    assert shown == [
        (str(used), str(line["count"])) for used, line in zip(plan["balance"]["used"], plan["plan"], strict=True)
    ]


def test_pages_of_charges_go_back_to_the_first_one(opened, officer):
    book = opened[0].state.desk.book
    budget_stores.grant(book, OFFICER, name="many", dataset="many", currency="rho", cap="1", delta="1e-6")
    made = [
        book.charge(OFFICER, grant="many", unit="dataset", event={"type": "zcdp", "rho": "0.001"}).charge
        for _ in range(60)
    ]
    path, seen = "/datasets/many", []
    while path:
        page = read(officer.get(path))
        seen += [
            a.attributes["href"].removeprefix("/charges/") for a in page.all("a") if "/charges/" in a.attributes["href"]
        ]
        older = [a.attributes["href"] for a in page.all("a") if a.text() == "Older charges"]
        path = older[0] if older else None
    assert seen == made[::-1]


BAD = "<script>alert(1)</script>"
QUOTED = "\"'><img src=x onerror=alert(1)>&amp;"


def test_nothing_that_somebody_wrote_becomes_a_part_of_the_page(opened, officer):
    book = opened[0].state.desk.book
    mallory = Actor(name=BAD, role="officer")
    policy = BudgetPolicy(
        dataset=BAD,
        epsilon=Fraction(8),
        delta=Fraction(1, 10**6),
        unit=replace(parse_unit(budget_stores.UNIT, stated_by=BAD), who=QUOTED),
        remainder="rho",
    )
    grant = read_adaptive(name="evil", dataset="evil", currency="rho", cap="0.5", delta="1e-6")
    with book.write() as transaction:
        grants.write_policy(transaction, policy, actor=BAD, at=book.now())
        write_grant(transaction, replace(grant, name=BAD, dataset=BAD, theorem=QUOTED), actor=BAD, at=book.now())
    claim = {"algorithm": BAD, "parameters": {BAD: QUOTED}}
    event = {"type": "gaussian", "rho": "0.01"}
    kept = book.charge(mallory, grant=BAD, unit="dataset", event=event, key=QUOTED, claim=claim).charge
    gone = book.reserve(mallory, grant=BAD, unit="dataset", event=event, key=BAD).charge
    book.release(mallory, gone, evidence=BAD + QUOTED)
    book.add_evidence(mallory, kept, verdict="violation", report=BAD + QUOTED)
    pages = [
        "/",
        f"/datasets/{quote(BAD, safe='')}",
        f"/charges/{kept}",
        f"/charges/{gone}",
        "/queue",
        f"/what-if?grant={quote(BAD)}&value={quote(QUOTED[:40])}&noise={quote(BAD)}&unit=dataset&wanted={quote(QUOTED[:40])}",
        f"/datasets/{quote(QUOTED, safe='')}",
    ]
    seen = ""
    for path in pages:
        answer = officer.get(path)
        assert answer.status_code in {200, 400, 404, 422}, path
        read(answer)  # has no script, no handler, no foreign address
        assert "<script" not in answer.text.lower(), path
        assert "<img" not in answer.text.lower(), path
        seen += html.unescape(answer.text)
    assert seen.count(BAD) > 12
    assert seen.count(QUOTED) > 4


def test_a_charge_has_its_receipt_and_what_audits_found(opened, officer):
    book = opened[0].state.desk.book
    charged = book.charges(OFFICER, "ads")
    page = read(officer.get(f"/charges/{charged[-1].id}"))
    receipt = json.loads(page.one("pre", class_="command").text())
    assert receipt == officer.ask(f"/v1/receipts/{charged[-1].hash}").json()
    assert charged[-1].prev in page.text()
    assert [row[1].text() for row in rows(labelled(page)["Audits"])] == ["violation"]
    stored = json.loads(page.one("details").one("pre").text())
    assert stored == charged[-1].event


def test_a_statement_has_policy_grants_charges_and_the_signed_head(officer, monkeypatch):
    told = officer.ask("/v1/export?as=statement&dataset=icu-stays").json()["datasets"][0]
    events = wait_for(lambda: officer.ask("/v1/export?as=dp-event&dataset=icu-stays")).json()["datasets"][0]["events"]
    page = read(officer.settled("/statement/icu-stays"))
    text = page.text()
    for part in (told["head"]["hash"], told["head"]["signature"], told["head"]["at"], "privcheck 0.1.0", "replace one"):
        assert part in text
    tables = labelled(page)
    for grant, cells in zip(told["grants"], rows(tables["Grants"]), strict=True):
        assert numbers(cells[1]) + numbers(cells[3]) + numbers(cells[4]) == [
            grant["balance"]["cap"], grant["balance"]["committed"], grant["balance"]["reserved"],
        ]  # fmt: skip
        assert cells[-1].text() == grant["theorem"]
    lines = told["lines"]
    shown = [[cell.text() for cell in row] for row in rows(tables["Charges"])]
    assert [(cells[0], int(cells[1]), cells[3], cells[4]) for cells in shown] == [
        (line["grant"], line["times"], line["sensitivity"], line["relation"]) for line in lines
    ]
    assert all(line["noise"] in cells[2] for line, cells in zip(lines, shown, strict=True))
    counts = [sum(part["count"] for part in line["event"].get("events", [line["event"]])) for line in lines]
    assert sum(n * line["times"] for n, line in zip(counts, lines, strict=True)) == sum(e["count"] for e in events)
    for grant in told["grants"]:
        assert f"{grant['theorem']}; covers {grant['concurrency']}." in words(page)
    assert officer.client.get("/statement/nowhere", headers=HTML).status_code == 404
    monkeypatch.setattr(lists, "_WALKED", 3)
    assert "The chain has 27 rows" in words(read(officer.get("/statement/icu-stays")))


def test_a_drawing_is_level_between_points_and_ends_now():
    points = (("2026-01-01T00:00:00.000000Z", 0.0), ("2026-01-11T00:00:00.000000Z", 0.5))
    wide, narrow = draw_courses([Course(grant="g", points=points)], now="2026-01-21T00:00:00.000000Z", spent_at={})
    left, top, right, bottom = wide.box
    y = [round(bottom - (bottom - top) * share / 1.05, 2) for share in (0, 0.5)]
    steps = [float(number) for number in re.findall(r"[\d.]+", wide.lines[1].path)]
    assert steps == [left, y[0], (left + right) / 2, y[1], right]
    assert [text for _, text in narrow.across] == ["01 Jan", "08 Jan", "15 Jan"]
    assert narrow.width < 390


@pytest.mark.parametrize(("day", "reached"), [("02-10", 1.0), ("01-31", 1.0), ("04-21", 0.5 + 0.5 * 20 / 90)])
def test_a_forecast_is_drawn_from_now_towards_the_cap_and_takes_half_of_the_width(day, reached):
    points = (("2026-01-01T00:00:00.000000Z", 0.0), ("2026-01-11T00:00:00.000000Z", 0.5))
    spent_at = {"g": f"2026-{day}T00:00:00.000000Z"}
    wide, _ = draw_courses([Course(grant="g", points=points)], now="2026-01-21T00:00:00.000000Z", spent_at=spent_at)
    left, top, right, bottom = wide.box
    ahead = next(line for line in wide.lines if "ahead" in line.style)
    x0, y0, x1, y1 = (float(number) for number in re.findall(r"[\d.]+", ahead.path))
    far = min((datetime.fromisoformat(f"2026-{day}") - datetime(2026, 1, 1)).days, 40)  # noqa: DTZ001 - days only
    assert x0 == pytest.approx(left + (right - left) * 20 / far, abs=0.02)
    assert x1 == right
    assert [y0, y1] == pytest.approx([bottom - (bottom - top) * share / 1.05 for share in (0.5, reached)], abs=0.02)


def test_long_plans_and_long_events_make_no_long_pages(opened, officer):
    book = opened[0].state.desk.book
    events = [{"type": "pure", "epsilon": f"0.00{n:04d}1"} for n in range(60)]
    book.set_policy(OFFICER, dataset="long", epsilon="50", delta="0", unit=budget_stores.UNIT)
    book.plan(OFFICER, name="long-plan", dataset="long", unit="dataset", events={"type": "compose", "events": events})
    book.grant(OFFICER, name="long-cap", dataset="long", currency="epsilon", cap="5")
    done = book.charge(OFFICER, grant="long-cap", unit="dataset", event={"type": "compose", "events": events})
    page = read(officer.get("/datasets/long"))
    assert len(rows(labelled(page)["Plan long-plan"])) == 50
    assert "And 10 more" in words(page)
    shown = read(officer.get(f"/charges/{done.charge}"))
    assert "40 more events, in the same way" in words(shown)
    assert len(list(shown.one("ol").all("li"))) < 30
    assert "and 57 more" in shown.one("h1").text()
