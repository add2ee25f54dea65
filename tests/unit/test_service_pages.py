"""The pages: who may see them, how sessions begin and end, forms of other sites, and that nothing on them can run."""

import hashlib
import re
from datetime import UTC, datetime, timedelta

import pytest

from page_visits import HTML, OWN, Guest, read
from privcheck.cli import demo
from privcheck.ledger.registry import ROLES, may
from privcheck.service.access import PAGES
from privcheck.service.app import ROUTERS, Settings, create_app, open_or_create
from privcheck.service.pages.login import SECONDS, Sessions
from served import served


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("store") / "ledger.db")
    token = open_or_create(url)
    app = create_app(Settings(store=url, rate=1e6, burst=10**6, processes=1, calculation_seconds=30))
    demo.fill(app.state.desk.book)
    with served(app) as client:
        yield app, str(client.base_url), token


@pytest.fixture(scope="module")
def tokens(opened):
    app, _, first = opened
    book = app.state.desk.book
    officer = book.find_actor(first)
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    made = {"officer": first}
    for role in ROLES:
        grants = ("icu-team",) if role in ("ci", "analyst") else ()
        if role != "officer":
            made[role] = book.make_token(officer, name=f"{role}-1", role=role, grants=grants, expires=soon)
    return made


@pytest.fixture
def guest(opened):
    return Guest(opened[1])


@pytest.fixture
def officer(guest, tokens):
    assert guest.log_in(tokens["officer"]).status_code == 303
    return guest


def test_every_page_is_in_the_table_and_none_in_the_document(opened):
    shown = {(method, route.path) for router in ROUTERS for route in router.routes for method in route.methods}
    assert shown == set(PAGES)
    assert not {path for _, path in PAGES} & set(opened[0].openapi()["paths"])


@pytest.mark.parametrize(("method", "path"), sorted(PAGES))
def test_every_role_at_every_page(opened, tokens, method, path):
    action = PAGES[method, path]
    place = path.format(dataset="icu-stays", charge="c-0")
    nobody = Guest(opened[1])
    if action is not None:
        answer = nobody.client.request(method, place, headers=OWN)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login")
    for role in ROLES:
        person = Guest(opened[1])
        person.log_in(tokens[role])
        csrf = opened[0].state.sessions.find(person.client.cookies["privcheck"]).csrf
        answer = person.post(place, {"csrf": csrf}) if method == "POST" else person.get(place)
        if action is None or may(role, action):
            assert answer.status_code in {200, 303, 401, 404, 422, 503}, (role, answer.text)
        else:
            assert answer.status_code == 403, (role, answer.text)
            assert "may not" in read(answer).one("main").text()


def test_logging_in_gives_a_cookie_that_scripts_and_other_sites_do_not_get(opened, guest, tokens):
    first = guest.get("/?before=7")
    assert (first.status_code, first.headers["location"]) == (303, "/login?next=/%3Fbefore%3D7")
    form = read(guest.get(first.headers["location"])).one("form", action="/login")
    where = form.one("input", name="next").attributes["value"]
    answer = guest.log_in(tokens["reader"], next=where)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?before=7")
    cookie = answer.headers["set-cookie"]
    assert re.fullmatch(rf"privcheck=[\w-]{{43}}; HttpOnly; Max-Age={SECONDS}; Path=/; SameSite=strict", cookie)
    assert tokens["reader"] not in cookie
    assert "reader-1, reader" in read(guest.get("/")).one("nav").text()
    assert guest.get("/login").headers["location"] == "/"


def test_behind_tls_the_cookie_travels_by_tls_alone(tmp_path):
    url = str(tmp_path / "ledger.db")
    token = open_or_create(url)
    with served(create_app(Settings(store=url, processes=1, secure=True))) as client:
        answer = Guest(str(client.base_url)).log_in(token)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-privcheck=")
    assert cookie.endswith("; HttpOnly; Max-Age=43200; Path=/; SameSite=strict; Secure")


@pytest.mark.parametrize("token", ["", "privcheck_wrong", "é\x00", "x" * 200])
def test_a_token_that_is_none_opens_nothing(guest, token):
    answer = guest.log_in(token)
    assert answer.status_code == 401
    assert "unknown, revoked or expired" in read(answer).one("p", role="alert").text()
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("where", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/a b"])
def test_after_the_login_nobody_is_sent_elsewhere(guest, tokens, where):
    assert guest.log_in(tokens["reader"], next=where).headers["location"] == "/"
    assert (
        read(Guest(guest.client.base_url).get(f"/login?next={where}")).one("input", name="next").attributes["value"]
        == "/"
    )


def test_a_token_that_ends_ends_its_sessions(opened, guest, monkeypatch):
    book = opened[0].state.desk.book
    first = book.find_actor(opened[2])
    token = book.make_token(first, name="leaver", role="reader")
    hour = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    soon = book.make_token(first, name="short", role="reader", expires=hour)
    other = Guest(opened[1])
    assert (guest.log_in(token).status_code, other.log_in(soon).status_code) == (303, 303)
    assert (guest.get("/").status_code, other.get("/").status_code) == (200, 200)
    book.revoke_token(first, "leaver")
    assert guest.get("/").headers["location"] == "/login"
    assert opened[0].state.sessions.find(guest.client.cookies["privcheck"]) is None
    assert other.get("/").status_code == 200
    monkeypatch.setattr(book, "_clock", lambda: datetime.now(UTC) + timedelta(hours=2))
    assert other.get("/").headers["location"] == "/login"


def test_a_login_ends_the_session_before_it_and_one_that_fails_does_not(opened, officer, tokens):
    first = officer.client.cookies["privcheck"]
    assert officer.log_in("privcheck_wrong").status_code == 401
    assert officer.get("/").status_code == 200
    assert officer.log_in(tokens["reader"]).status_code == 303
    assert officer.client.cookies["privcheck"] != first
    assert opened[0].state.sessions.find(first) is None


def test_who_logs_out_is_out(opened, officer):
    name = officer.client.cookies["privcheck"]
    assert officer.post("/logout", {"csrf": officer.csrf()}).headers["location"] == "/login"
    assert opened[0].state.sessions.find(name) is None
    officer.client.cookies.set("privcheck", name, domain="127.0.0.1")
    assert officer.get("/").status_code == 303


FORMS = sorted(path for method, path in PAGES if method == "POST" and path != "/login")


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("csrf", [None, "", "wrong", "x" * 43, "x" * 1000, "é", "of another session"])
def test_a_form_without_the_sessions_own_token_does_nothing(opened, officer, tokens, path, csrf):
    if csrf == "of another session":
        other = Guest(opened[1])
        other.log_in(tokens["officer"])
        csrf = other.csrf()
    fields = {"evidence": "none was drawn", "attest": "yes"} | ({} if csrf is None else {"csrf": csrf})
    answer = officer.post(path.format(charge="c-0"), fields)
    assert answer.status_code == 403
    assert "form" in read(answer).one("main").text()
    assert officer.get("/").status_code == 200


FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://[", "Referer": "http://127.0.0.1"},
    {},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_form_of_another_site_does_nothing_the_login_included(opened, officer, tokens, headers):
    for path, fields in (("/login", {"token": tokens["officer"]}), ("/logout", {"csrf": officer.csrf()})):
        answer = officer.post(path, fields, headers=HTML | headers)
        assert answer.status_code == 403, path
        assert "another site" in read(answer).one("main").text()
    assert officer.get("/").status_code == 200
    port = officer.client.base_url.port
    again = Guest(opened[1]).post("/login", {"token": tokens["officer"]}, HTML | {"Origin": f"http://127.0.0.1:{port}"})
    assert again.status_code == 303


def test_sessions_are_bounded_in_number_and_age():
    now = 0.0
    sessions = Sessions(clock=lambda: now)
    first = sessions.open("d0")
    own = [sessions.open("mine") for _ in range(25)]
    assert [sessions.find(name) is not None for name in own] == [False] * 15 + [True] * 10
    others = [sessions.open(f"d{n}") for n in range(1, 1200)]
    assert sum(sessions.find(name) is not None for name in others) == 1000
    assert sessions.find(first) is None
    assert len({*others, *own}) == 1224
    now = SECONDS - 1.0
    last = sessions.open("late")
    assert sessions.find(others[-1]) is not None
    now = SECONDS
    assert sessions.find(others[-1]) is None
    assert sessions.find(last) is not None
    session = sessions.find(last)
    assert last not in repr(session)
    assert (len(session.csrf), session.digest) == (43, "late")


def test_a_session_keeps_the_digest_of_its_token_alone(opened, guest, tokens):
    guest.log_in(tokens["reader"])
    session = opened[0].state.sessions.find(guest.client.cookies["privcheck"])
    assert session.digest == hashlib.sha256(tokens["reader"].encode()).hexdigest()


def test_what_goes_wrong_is_a_page_where_a_browser_asks_and_a_problem_elsewhere(officer):
    for path, status in (("/datasets/nowhere", 404), ("/nothing", 404), ("/page.css/x", 404)):
        page = officer.get(path)
        assert page.status_code == status
        assert read(page).one("section", role="alert").one("h2").text() == "Not Found"
        told = officer.client.get(path, headers={"Accept": "application/json"})
        assert (told.status_code, told.json()["status"]) == (status, status)
    assert officer.client.get("/v1/nothing", headers=HTML).headers["content-type"] == "application/problem+json"
    assert "No bearer" not in officer.get("/v1/datasets").text
    assert officer.get("/v1/datasets").status_code == 401  # a cookie opens no endpoint of the API
    long = officer.post("/login", {"token": "x" * 70_000})
    assert (long.status_code, "65536 bytes" in read(long).text()) == (413, True)


def test_an_internal_error_is_a_page_that_tells_nothing_of_itself(opened, officer, monkeypatch):
    def fail(*_):
        raise RuntimeError("a secret of the machine")

    monkeypatch.setattr(opened[0].state.desk.book, "show", fail)
    answer = officer.get("/")
    assert answer.status_code == 500
    page = read(answer)
    assert page.one("h2").text() == "Internal Server Error"
    assert "secret" not in answer.text
    assert list(page.all("form", action="/logout"))  # and the way out is there


def test_too_many_requests_of_one_token_are_refused_as_those_with_a_bearer_are(tmp_path):
    url = str(tmp_path / "ledger.db")
    token = open_or_create(url)
    app = create_app(Settings(store=url, processes=1, rate=0.01, burst=10**4))
    app.state.buckets.burst = 4  # logging in is one of them
    with served(app) as client:
        guest = Guest(str(client.base_url))
        guest.log_in(token)
        answers = [guest.get("/") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert "too many requests" in read(answers[-1]).text().lower()
        assert int(answers[-1].headers["retry-after"]) > 0
        bearer = client.get("/v1/datasets", headers={"Authorization": f"Bearer {token}"})
        assert bearer.status_code == 429  # of one purse


def test_without_a_store_the_page_says_so():
    with served(create_app(Settings(processes=1))) as client:
        guest = Guest(str(client.base_url))
        answer = guest.get("/")
        assert (answer.status_code, "keeps no ledger" in read(answer).text()) == (200, True)
        for path in ("/login", "/datasets/x"):
            assert guest.get(path).status_code == 404
        assert guest.log_in("privcheck_x").status_code == 404
        assert guest.get("/page.css").status_code == 200


def test_a_read_only_ledger_says_so_on_every_page(opened, officer, monkeypatch):
    monkeypatch.setattr(opened[0].state.desk.book.store, "read_only", "the disk is full")
    assert "read-only: the disk is full" in " ".join(read(officer.get("/")).one("p", role="alert").text().split())


def test_the_style_sheet_loads_nothing_and_its_address_changes_with_it(officer):
    link = read(officer.get("/")).one("link", rel="stylesheet").attributes["href"]
    style = officer.get(link)
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert "url(" not in style.text
    assert "@import" not in style.text
    assert link == f"/page.css?{hashlib.sha256(style.text.encode()).hexdigest()[:12]}"
