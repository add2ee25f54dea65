"""People who visit the pages: a browser without a browser, and what is on a page, read with the standard library."""

import re
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx

HTML = {"Accept": "text/html,application/xhtml+xml"}
OWN = {**HTML, "Sec-Fetch-Site": "same-origin"}  # what a browser says of a form of the page itself
VOID = {"meta", "link", "input", "br", "wbr", "img", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict
    children: list = field(default_factory=list)

    def text(self):
        parts = (child if isinstance(child, str) else child.text() for child in self.children)
        return "".join(parts)

    def all(self, tag, **wanted):
        """Yields the elements below of a tag and with some attributes; `class_` is one of the classes."""
        name = wanted.pop("class_", None)
        for child in self.children:
            if isinstance(child, Element):
                if (
                    tag in (child.tag, "*")
                    and all(child.attributes.get(key) == value for key, value in wanted.items())
                    and (name is None or name in (child.attributes.get("class") or "").split())
                ):
                    yield child
                yield from child.all(tag, **wanted, **({"class_": name} if name else {}))

    def one(self, tag, **wanted):
        found = list(self.all(tag, **wanted))
        assert len(found) == 1, f"{len(found)} of <{tag}> {wanted}"
        return found[0]


class Page(HTMLParser):
    """A page as a tree; what is not closed in order is an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root], [one.tag for one in self.open]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, attrs)
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read(answer):
    """Returns the page in an answer, which has to be HTML that can run nothing and loads nothing from elsewhere."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8", answer.text[:200]
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; ")
    assert "unsafe" not in policy
    page = Page(answer.text).root
    for element in page.all("*"):
        assert element.tag not in {"script", "style", "iframe", "object", "embed", "base"}, element
        for name, value in element.attributes.items():
            assert name != "style", element
            assert not name.startswith("on"), element
            if name in {"href", "src", "action"}:
                assert re.fullmatch(r"/(?!/)\S*|#\S*", value), element
    for form in page.all("form"):
        if form.attributes["method"] == "post" and form.attributes["action"] != "/login":
            assert form.one("input", name="csrf").attributes["value"], form
    return page


_AT_ONCE = httpx.Limits(max_keepalive_connections=0)  # nobody has to close a guest


class Guest:
    """Somebody with a browser: cookies are kept, redirections are seen."""

    def __init__(self, base):
        self.client = httpx.Client(base_url=base, timeout=60, headers=HTML, limits=_AT_ONCE)

    def log_in(self, token, **more):
        return self.post("/login", {"token": token, **more})

    def get(self, path):
        return self.client.get(path)

    def post(self, path, fields, headers=OWN):
        return self.client.post(path, data=fields, headers=headers)

    def settled(self, path):
        """Returns the answer once nothing on the page is still being computed."""
        end = time.monotonic() + 60
        while "load the page again" in (answer := self.get(path)).text and time.monotonic() < end:
            time.sleep(0.05)
        return answer

    def csrf(self):
        """Returns what the forms of this session send back."""
        return next(read(self.get("/")).all("input", name="csrf")).attributes["value"]


class Looker(Guest):
    """Somebody logged in, who may ask the JSON API too."""

    def __init__(self, base, token):
        super().__init__(base)
        self.token = token
        assert self.log_in(token).status_code == 303

    def ask(self, path, method="GET", body=None):
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        return self.client.request(method, path, headers=headers, json=body)


def numbers(element):
    """Returns the exact numbers in an element, in order."""
    return [one.attributes["value"] for one in element.all("data")]


def rows(element):
    """Returns the cells of a table's rows."""
    return [list(row.all("td")) for row in element.one("table").one("tbody").all("tr")]


def links(element):
    return [one.attributes["href"] for one in element.all("a")]


def words(element):
    return " ".join(element.text().split())


def says(answer, text):
    """Returns whether the page in an answer says something, in small or capital letters."""
    return text.casefold() in words(read(answer)).casefold()


def labelled(page):
    """Returns the tables of a page, by their labels."""
    return {one.attributes["aria-label"]: one for one in page.all("div", class_="scroll")}
