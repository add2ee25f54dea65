"""The ledger: whatever happens to a line afterwards is found by its number."""

from __future__ import annotations

import itertools
import json

import pytest

from privcheck.declare.mechanisms.base import Charge
from privcheck.errors import LedgerError
from privcheck.runtime import Ledger, read_ledger
from privcheck.runtime.ledger import _link


@pytest.fixture
def written(tiny, values, tmp_path):
    """A complete ledger of two releases with two slices each: six lines."""
    path = tmp_path / "run.ledger"
    ledger = Ledger(tiny, values, noise="a test", path=path)
    cost = Charge(law="gaussian", scale=2.8284271247461903, l1=4.0, l2=2.0, linf=1.0)
    for part, release in itertools.product(range(2), ("visits", "transitions")):
        ledger.record(release, part, charge=None if part else cost, output=f"{len(ledger.entries):032x}")
    ledger.close()
    return path, ledger


def _refusal(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(LedgerError) as caught:
        read_ledger(path)
    return caught.value.line


def _leaves(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _edited(line, path, value):
    copy = json.loads(json.dumps(line))
    target = copy
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return copy


def test_a_ledger_is_read_back_as_it_was_written(written):
    path, ledger = written
    header, entries = read_ledger(path)
    assert header == ledger.header
    assert entries == ledger.entries
    assert header["parameters"] == {"A": "2", "H": "2", "S": "3", "rho": "1/2"}
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["chain"] == ledger.digest


def test_every_edited_value_is_found(written):
    path, _ = written
    lines = path.read_text(encoding="utf-8").splitlines()
    edits = 0
    for number, text in enumerate(lines, start=1):
        line = json.loads(text)
        for where, value in _leaves(line):
            others = [None, "other", 7, "", f"{value}0"] + ([value * 2 + 1] if isinstance(value, (int, float)) else [])
            for other in others:
                if other == value and type(other) is type(value):
                    continue
                changed = json.dumps(_edited(line, where, other))
                assert _refusal(path, [*lines[: number - 1], changed, *lines[number:]]) == number
                edits += 1
    assert edits > 150


def test_every_removed_or_added_field_is_found(written):
    path, _ = written
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, text in enumerate(lines, start=1):
        line = json.loads(text)
        changed = [{k: v for k, v in line.items() if k != key} for key in line] + [{**line, "extra": 1}]
        for other in changed:
            assert _refusal(path, [*lines[: number - 1], json.dumps(other), *lines[number:]]) == number


def test_every_dropped_line_is_found(written):
    path, _ = written
    lines = path.read_text(encoding="utf-8").splitlines()
    for number in range(1, len(lines)):
        assert _refusal(path, [*lines[: number - 1], *lines[number:]]) == number
    assert _refusal(path, lines[:-1]) == len(lines) - 1  # the closing line: what is left ends one line earlier


def test_every_inserted_line_is_found(written):
    path, _ = written
    lines = path.read_text(encoding="utf-8").splitlines()
    strangers = ["", " ", "{}", "[]", "7", "null", "not json", '{"chain": ""}', '{"chain": "' + "0" * 32 + '"}']
    for number in range(1, len(lines) + 2):
        for line in [*lines, *strangers]:
            # a copy of the line that belongs here is only found by the original after it
            twice = number <= len(lines) and line == lines[number - 1]
            assert _refusal(path, [*lines[: number - 1], line, *lines[number - 1 :]]) == number + twice


def test_every_swap_is_found(written):
    path, _ = written
    lines = path.read_text(encoding="utf-8").splitlines()
    for one, other in itertools.combinations(range(len(lines)), 2):
        swapped = list(lines)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        assert _refusal(path, swapped) == one + 1


@pytest.fixture
def short(tiny, values, tmp_path):
    """The bytes of a ledger of one slice, to be cut and bent at every byte."""
    path = tmp_path / "short.ledger"
    ledger = Ledger(tiny, values, noise="a test", path=path)
    ledger.record("visits", 0, charge=Charge(law="gaussian", scale=0.5, l1=4.0, l2=2.0, linf=1.0), output="0" * 32)
    ledger.close()
    return path, path.read_bytes()


def test_every_truncation_is_found(short):
    path, content = short
    for length in range(len(content) - 1):  # without the last line end the ledger is still whole
        path.write_bytes(content[:length])
        with pytest.raises(LedgerError) as caught:
            read_ledger(path)
        assert caught.value.line == len(content[:length].splitlines())


def test_every_changed_byte_is_found_or_changes_nothing(short):
    path, content = short
    whole, found = read_ledger(path), 0
    for place in range(len(content)):
        for byte in b"0}\xff":
            path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
            try:
                assert read_ledger(path) == whole
            except LedgerError as error:
                assert 1 <= error.line <= 4  # noqa: PT017
                found += 1
    assert found > 2.5 * len(content)


def test_a_chain_that_was_computed_anew_still_has_to_count(written):
    # whoever drops a release and links the rest again has to change the closing line too
    path, _ = written
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    chain, linked = "", []
    for line in [*lines[:4], lines[5]]:
        body = {key: value for key, value in line.items() if key != "chain"}
        chain = _link(chain, body)
        linked.append(json.dumps({**body, "chain": chain}))
    assert _refusal(path, linked) == 5


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    for content in (b"", b"\n", b"\xff\xfe\x00", b"PAR1" * 99):
        path = tmp_path / "other"
        path.write_bytes(content)
        with pytest.raises(LedgerError):
            read_ledger(path)
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(LedgerError, match="cannot be read"):
            read_ledger(path)


def test_a_ledger_takes_its_name_when_it_is_closed(tiny, values, tmp_path):
    path = tmp_path / "run.ledger"
    ledger = Ledger(tiny, values, noise="a test", path=path)
    ledger.record("visits", 0, charge=None, output="0")
    partial = tmp_path / "run.ledger.partial"
    # every line is on disk as soon as it is recorded
    assert len(partial.read_text(encoding="utf-8").splitlines()) == 2
    assert not path.exists()
    ledger.close()
    ledger.close()
    assert path.exists()
    assert not partial.exists()
    with pytest.raises(LedgerError, match="the ledger is closed"):
        ledger.record("visits", 1, charge=None, output="0")


def test_an_abandoned_ledger_stays_partial(tiny, values, tmp_path):
    path = tmp_path / "run.ledger"
    ledger = Ledger(tiny, values, noise="a test", path=path)
    ledger.record("visits", 0, charge=None, output="0")
    ledger.abandon()
    for use in (ledger.close, lambda: ledger.record("visits", 1, charge=None, output="0")):
        with pytest.raises(LedgerError, match="abandoned"):
            use()
    assert [p.name for p in tmp_path.iterdir()] == ["run.ledger.partial"]
    with pytest.raises(LedgerError, match="no closing line") as caught:
        read_ledger(tmp_path / "run.ledger.partial")
    assert caught.value.line == 2


def test_a_ledger_in_memory_has_the_same_chain(tiny, values, written):
    _, on_disk = written
    memory = Ledger(tiny, values, noise="a test")
    for entry in on_disk.entries:
        memory.record(entry.release, entry.part, charge=entry.charge, output=entry.output)
    memory.close()
    assert memory.digest == on_disk.digest
    assert memory.header == on_disk.header


def test_a_repeated_key_does_not_pass_for_the_line_that_was_written(written):
    path, _ = written
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1].replace('"scale": ', '"scale": 999999, "scale": ')
    assert _refusal(path, lines) == 2
    lines[1] = lines[1].replace('"scale": 999999, ', "").replace(": ", ":  ", 1)
    assert _refusal(path, lines) == 2


def test_a_closing_line_alone_is_no_ledger(tmp_path):
    line = {"closed": -1}
    text = json.dumps({**line, "chain": _link("", line)})
    assert _refusal(tmp_path / "run.ledger", [text]) == 1
    header, closing = {"ledger": 99}, {"closed": 0}
    first = _link("", header)
    lines = [json.dumps({**header, "chain": first}), json.dumps({**closing, "chain": _link(first, closing)})]
    assert _refusal(tmp_path / "run.ledger", lines) == 1
