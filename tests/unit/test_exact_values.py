"""Numbers, names, texts and digests of the ledger, each at the edges of what is accepted."""

import hashlib
import math
import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import pytest

from privcheck.errors import ParameterError
from privcheck.ledger.exact import (
    canonical,
    digest,
    is_plain,
    read_fraction,
    read_name,
    read_number,
    read_text,
    round_up,
    write_number,
    write_time,
)

LONG = "0." + "1" * 62  # 64 characters


class Disguised:
    """No number, although it reads like one."""

    def __str__(self):
        return "1"


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ("0", 0), (0, 0), ("1e-30", Fraction(1, 10**30)), ("1e30", 10**30), (10**30, 10**30), ("1/3", Fraction(1, 3)),
        (f"1/{10**30}", Fraction(1, 10**30)), (".5", Fraction(1, 2)), ("5.", 5), ("+1e2", 100), (0.1, Fraction(1, 10)),
        (Decimal("0.10"), Fraction(1, 10)), (Fraction(1, 7), Fraction(1, 7)), (LONG, Fraction(LONG)),
    ],
)  # fmt: skip
def test_a_number_of_the_ledger_is_read_exactly(given, number):
    assert read_fraction("rho", given) == number


@pytest.mark.parametrize(
    "given",
    [
        "0.999e-30", "1.001e30", 10**30 + 1, f"1/{10**30 + 1}", "-1", -1, Fraction(-1, 3), "1e400", LONG + "1", True,
        False, None, Disguised(), "1_000", "\u0661", " 1", "1 ", "", "1/0", "one", "nan", math.nan, math.inf, "0x1",
        b"1", [1], "1/2/3", "1e", ".", "1.5/2",
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_number_of_the_ledger_is_refused(given):
    for read in (read_fraction, read_number):
        with pytest.raises(ParameterError, match="expected rho as a number that is 0 or from 1e-30 to 1e30") as caught:
            read("rho", given)
        assert caught.value.name == "rho"


def test_a_cost_is_a_decimal_of_at_most_fifteen_digits():
    assert read_number("rho", "0.123456789012345") == Fraction("0.123456789012345")
    assert read_number("rho", Fraction(1, 4)) == read_number("rho", 0.25) == Fraction(1, 4)
    for given, reason in (("1/4", "as a decimal, got"), ("0.1234567890123456789", "at most 15 digits")):
        with pytest.raises(ParameterError, match=reason):
            read_number("rho", given)
    with pytest.raises(ParameterError, match="at most 15 digits"):
        read_number("rho", Fraction(1, 3))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"), (Fraction(12), "12"), (Fraction(-3), "-3"), (Fraction(1, 8), "0.125"),
        (Fraction(-1, 8), "-0.125"), (Fraction(7, 25), "0.28"), (Fraction(101, 10), "10.1"), (Fraction(1, 6), "1/6"),
        (Fraction(-1, 6), "-1/6"), (Fraction(3, 40), "0.075"), (Fraction(1, 10**60), "0." + "0" * 59 + "1"),
        (Fraction(1, 10**61), f"1/{10**61}"), (Fraction(1, 5**60), f"0.{2**60:060}"),
        (Fraction(1, 2**61), f"1/{2**61}"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_a_decimal_where_there_is_a_short_one(number, text):
    assert write_number(number) == text
    assert Fraction(write_number(number)) == number


def test_long_numbers_are_rounded_up_to_eighteen_digits():
    assert round_up(Fraction(1, 2**128 - 1)) == Fraction(1, 2**128 - 1)  # of 128 bits
    assert round_up(Fraction(1, 2**127 + 1)) == Fraction(1, 2**127 + 1)
    rng = random.Random(3)  # noqa: S311 - no secret
    for _ in range(300):
        size = rng.randrange(1, 500)
        number = Fraction(rng.randrange(1, 2**size), 2**128 + rng.randrange(2**size))
        rounded = round_up(number)
        assert number <= rounded
        if number.denominator.bit_length() <= 128:
            assert rounded == number
        else:
            assert rounded <= number * (1 + Fraction(1, 10**17))
            assert rounded.numerator <= 10**19
    for number in (Fraction(1, 3**90), Fraction(3**80, 7**60)):
        assert number < round_up(number) < number * (1 + Fraction(1, 10**17))


@pytest.mark.parametrize("name", ["a", "7", "trips-2027.v1_x", "é", "x" * 64])
def test_a_name_is_letters_digits_and_three_signs(name):
    assert read_name("grant", name) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 65, "_a", "-a", ".a", "a b", "a/b", "a\n", "a\0", "ﬁt", "e\u0301", "①", None, 7, b"a"]
)
def test_what_could_be_read_as_another_name_is_refused(name):
    with pytest.raises(ParameterError, match="expected grant as 1 to 64 letters") as caught:
        read_name("grant", name)
    assert caught.value.name == "grant"


def test_a_text_is_one_line_that_reads_as_it_is_written():
    assert is_plain("δ of José, 100 %")
    for bad in ("\n", "\0", "\x7f", "\x85", "\u2028", "\u2029", "\ud800", "\u202e", "\u2066", "\u200f"):
        assert not is_plain(f"a{bad}b")
        with pytest.raises(ParameterError, match="expected reason as 1 to 200 characters"):
            read_text("reason", f"a{bad}b")
    assert read_text("reason", "x" * 200) == "x" * 200
    assert read_text("reason", "x" * 3, most=3) == "xxx"
    for bad in ("", "x" * 201, None, 7):
        with pytest.raises(ParameterError):
            read_text("reason", bad)


def test_moments_are_written_in_utc_and_sort_as_they_follow():
    moment = datetime(2027, 1, 1, 12, 30, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert write_time(moment) == "2027-01-01T10:30:00.000005Z"
    assert write_time(moment) < write_time(moment + timedelta(microseconds=1))
    assert datetime.fromisoformat(write_time(moment)) == moment.astimezone(UTC)


def test_a_digest_is_blake2b_of_texts_with_their_lengths():
    parts = ("é", "", "row")
    data = b"".join(len(p.encode()).to_bytes(8, "big") + p.encode() for p in parts)
    assert digest(*parts) == hashlib.blake2b(data, digest_size=32).hexdigest()
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4


def test_canonical_json_is_sorted_short_and_without_what_is_no_number():
    assert canonical({"b": [1, None, True], "a": "δ"}) == '{"a":"δ","b":[1,null,true]}'
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON"):
            canonical({"a": bad})
