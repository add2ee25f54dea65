"""How to call a function under audit, read from its signature, and the runs that a call returns.

A call asks for many runs, `(dataset, size, rng)`, or for one, `(dataset, rng)`. Arguments besides the dataset are
recognised by name, or by position if there are exactly three positional arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, Literal, NoReturn

import numpy as np

from privcheck.errors import ParameterError
from privcheck_audits.blackbox.canonical import CallError, Form, Raised, array_of, canonical

_SIZES: Final = frozenset(
    ("size", "n", "runs", "trials", "number", "repeats", "samples", "batch", "batch_size", "num_samples", "n_samples")
)
_GENERATORS: Final = frozenset(("rng", "generator", "gen", "prng", "random", "random_generator"))
_SEEDS: Final = frozenset(("seed", "random_seed", "random_state"))
_SEED_BITS: Final = 31
_BYTES: Final = 8  # of a number; longer ones have padding that means nothing
_WHOLE: Final = 3  # arguments of a function that is called for many runs

Role = Literal["size", "rng", "seed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A function under audit and how to call it.

    Attributes:
        mechanism: The function.
        takes: Arguments after the dataset: name (empty if positional) and role.
        single: Whether each call asks for one run, even if the function could return many.
        catch: Whether an exception counts as the output of a run.
        columns: Whether a call for many runs returns columns: a tuple with an array for each number of a run.
    """

    mechanism: Callable[..., Any]
    takes: tuple[tuple[str, Role], ...]
    single: bool
    catch: bool
    columns: bool = False

    @property
    def many(self) -> bool:
        """Whether the function can return many runs in one call."""
        return any(role == "size" for _, role in self.takes)

    @property
    def seeded(self) -> bool:
        """Whether the function takes its randomness from the audit."""
        return any(role != "size" for _, role in self.takes)

    def runs(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` runs: an array with one row per run, or a list of frozen outputs.

        Frozen outputs are numbers, copied arrays or canonical forms, since a function may reuse its buffers.

        Raises:
            CallError: The return value is not `size` runs.
            Exception: Raised by the function, if a call asks for many runs or exceptions are not outputs.
        """
        if not self.single:
            return self.batch(self._call(dataset, size, rng), size)
        return [self._one(dataset, rng) for _ in range(size)]

    def batch(self, given: Any, size: int) -> Any:
        """Runs in the return value of one call for many runs.

        Raises:
            CallError: The return value is not `size` runs.
        """
        found = _regular(_rows(given, size, columns=self.columns))
        if isinstance(found, np.ndarray) and type(found) is np.ndarray and found.dtype.kind in "biuf":
            return found
        return [self._freeze(each) for each in found]

    def _call(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        placed: list[Any] = []
        named: dict[str, Any] = {}
        for name, role in self.takes:
            value = size if role == "size" else rng if role == "rng" else int(rng.integers(1 << _SEED_BITS))
            if name:
                named[name] = value
            else:
                placed.append(value)
        return self.mechanism(dataset, *placed, **named)

    def _one(self, dataset: Any, rng: np.random.Generator) -> Any:
        try:
            given = self._call(dataset, 1, rng)
        except (MemoryError, CallError):  # what cannot be judged is no output
            raise
        except Exception as error:
            if not self.catch:
                raise
            return canonical(Raised.of(error))
        if self.many:
            (found,) = _rows(given, 1, columns=self.columns)
            return self._freeze(found)
        return self._freeze(given)

    def _freeze(self, given: Any) -> Any:
        if given is None or type(given) in (float, int, bool):
            return given
        if isinstance(given, np.generic) and given.dtype.kind in "biuf":
            return given
        if type(given) is np.ndarray and given.dtype.kind in "biuf":
            return given.copy()
        return canonical(given, catch=self.catch)


def read_signature(mechanism: Callable[..., Any], *, one_at_a_time: bool | None, catch: bool) -> Caller:
    """Read from the signature how to call the function.

    Args:
        mechanism: The function.
        one_at_a_time: Whether a call asks for one run; None to read it from the signature.
        catch: Whether exceptions are outputs.

    Raises:
        ParameterError: The argument is not a function, or its signature is ambiguous or contradicts `one_at_a_time`.
    """
    given: object = mechanism
    if not callable(given):
        wanted = "a function (dataset, size, rng) or (dataset, rng)"
        raise ParameterError(f"mechanism: expected {wanted}, got {given!r}", name="mechanism", given=given)
    if inspect.iscoroutinefunction(mechanism) or inspect.isasyncgenfunction(mechanism):
        _refuse(mechanism, "is asynchronous; wrap it in a function that runs it to its end")
    takes = _takes(mechanism, one_at_a_time=one_at_a_time)
    sized = any(role == "size" for _, role in takes)
    if one_at_a_time is False and not sized:
        _refuse(mechanism, "does not take the number of runs, so one_at_a_time=False cannot be")
    return Caller(mechanism=mechanism, takes=takes, single=bool(one_at_a_time) or not sized, catch=catch)


def _takes(mechanism: Callable[..., Any], *, one_at_a_time: bool | None) -> tuple[tuple[str, Role], ...]:
    whole: tuple[tuple[str, Role], ...] = (("", "rng"),) if one_at_a_time else (("", "size"), ("", "rng"))
    try:
        every = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):  # a builtin: called as documented
        return whole
    placed = [each for each in every if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if any(each.kind == each.VAR_POSITIONAL for each in every) and len(placed) < _WHOLE:
        return whole[max(0, len(placed) - 1) :] if placed else whole
    if not placed:
        _refuse(mechanism, "takes no dataset")
    others = [each for each in every if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)][1:]
    roles = [(each, _role(each.name)) for each in others]
    if len(roles) == _WHOLE - 1 and all(_placed(each) and _needed(each) for each in others):
        roles = _by_place(mechanism, roles, one_at_a_time=one_at_a_time)
    elif len(needed := [each for each in others if _needed(each)]) == 1 and _role(needed[0].name) is None:
        if one_at_a_time is None:
            _refuse(mechanism, f"takes “{needed[0].name}”, which is neither called `rng` nor `size`")
        roles = [(each, ("rng" if one_at_a_time else "size") if each is needed[0] else role) for each, role in roles]
    unknown = [each.name for each, role in roles if role is None and _needed(each)]
    if unknown:
        _refuse(mechanism, f"takes {', '.join(unknown)}; bind all arguments other than dataset, size and rng")
    found: list[tuple[str, Role]] = []
    by_place = True
    for each, role in roles:
        by_place = by_place and _placed(each) and role is not None
        if role is not None:
            found.append(("" if by_place else each.name, role))
    return tuple(found)


def _by_place(
    mechanism: Callable[..., Any],
    roles: list[tuple[inspect.Parameter, Role | None]],
    *,
    one_at_a_time: bool | None,
) -> list[tuple[inspect.Parameter, Role | None]]:
    """Roles of exactly two required arguments after the dataset."""
    (first, one), (second, other) = roles
    if one in ("rng", "seed") and other in (None, "size"):
        return [(first, one), (second, "size")]
    if one == other and one is not None:
        _refuse(mechanism, f"takes both {first.name} and {second.name}")
    if one_at_a_time and one is None and other is None:
        _refuse(mechanism, f"takes {first.name} and {second.name} besides the dataset, and one_at_a_time=True")
    return [(first, "size"), (second, other or "rng")]


def _role(name: str) -> Role | None:
    plain = name.lower().strip("_")
    return "size" if plain in _SIZES else "rng" if plain in _GENERATORS else "seed" if plain in _SEEDS else None


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def _placed(parameter: inspect.Parameter) -> bool:
    return parameter.kind is not parameter.KEYWORD_ONLY


def _refuse(mechanism: Callable[..., Any], problem: str) -> NoReturn:
    wanted = (
        "expected (dataset, size, rng) for many runs per call, or (dataset, rng) for one; choose with "
        "one_at_a_time=True or False, and bind everything else with functools.partial or a lambda"
    )
    name = getattr(mechanism, "__qualname__", type(mechanism).__qualname__)
    raise ParameterError(f"mechanism: {name} {problem}; {wanted}", name="mechanism", given=mechanism)


def _rows(given: Any, size: int, *, columns: bool) -> Any:
    """Array with one row per run, or list of runs.

    Raises:
        CallError: The return value is neither.
    """
    if (
        isinstance(given, tuple)
        and type(given) is tuple
        and (columns or len(given) != size)
        and _all_sized(given, size)
    ):
        return list(zip(*(list(_rows(each, size, columns=False)) for each in given), strict=True))
    if isinstance(given, Mapping):
        if len(given) == 0 or not _all_sized(given.values(), size):
            raise CallError(_wanted(given, size, "; a function that answers once a call takes (dataset, rng)"))
        parts = [list(_rows(each, size, columns=False)) for each in given.values()]
        return [dict(zip(given, row, strict=True)) for row in zip(*parts, strict=True)]
    frame = _records(given)
    if frame is not None:
        given = frame
    elif isinstance(given, Iterator):
        given = list(islice(given, size + 1))
        if len(given) > size:
            raise CallError(f"returned a generator of more than {size} runs; expected exactly {size}")
    elif not isinstance(given, np.ndarray) and hasattr(given, "__array__"):
        given = array_of(given)
    if isinstance(given, np.ndarray):
        if given.ndim == 0 or given.shape[0] != size:
            raise CallError(_wanted(given, size, f", {given.dtype} values of shape {given.shape}"))
        return given
    if (
        isinstance(given, str | bytes | set | frozenset)
        or not hasattr(given, "__len__")
        or not hasattr(given, "__iter__")
    ):
        raise CallError(_wanted(given, size, "; a function that answers once a call takes (dataset, rng)"))
    if len(given) != size:
        raise CallError(_wanted(given, size, f" of length {len(given)}"))
    return given if isinstance(given, list) else list(given)


def _records(given: Any) -> list[Any] | None:
    """Rows of a data frame, table or series; None for other types."""
    room = type(given).__module__.partition(".")[0]
    if room == "pandas" and hasattr(given, "to_dict"):
        return list(given.to_dict("records") if hasattr(given, "columns") else given)
    if room == "polars" and hasattr(given, "to_dicts"):
        return list(given.to_dicts())
    if room == "pyarrow" and hasattr(given, "to_pylist"):
        return list(given.to_pylist())
    return None


def _regular(found: Any) -> Any:
    """Array of runs that are equally long lists of floats; other runs unchanged."""
    if isinstance(found, list) and found and type(found[0]) is list and found[0] and set(map(type, found)) == {list}:
        lengths, kinds = set(map(len, found)), set(map(type, chain.from_iterable(found)))
        if len(lengths) == 1 and kinds == {float}:
            return np.array(found)
    return found


def _all_sized(parts: Any, size: int) -> bool:
    return all(
        hasattr(each, "__len__") and not isinstance(each, str | bytes | Mapping) and len(each) == size for each in parts
    )


def _wanted(given: Any, size: int, more: str) -> str:
    return (
        f"returned a {type(given).__name__}{more}; expected {size} runs: a list of {size} outputs of any kind, or an "
        f"array of shape ({size},) or ({size}, …)"
    )


def as_numbers(found: Any) -> tuple[np.ndarray[Any, Any], tuple[str, ...]] | None:
    """Runs as an array of numbers with a description of their type; None if they are of several kinds or not numeric.

    Args:
        found: Runs from `Caller.runs`.
    """
    if isinstance(found, np.ndarray):
        rows = found.astype(np.float64) if found.dtype.itemsize > _BYTES else found
        return (rows, ("array", str(found.dtype), str(found.shape[1:]))) if found.size else None
    kinds = set(map(type, found))
    kind = kinds.pop()
    if kinds or kind is Form or kind is type(None):
        return None
    if kind is np.ndarray:
        laws = {(each.dtype, each.shape) for each in found}
        rows = np.stack(found) if len(laws) == 1 else np.zeros(0)
        return (rows, ("list of array", str(rows.dtype), str(rows.shape[1:]))) if rows.size else None
    rows = np.asarray(found)
    exact = rows.dtype == np.int64 if kind is int else rows.dtype.kind in "biuf"
    return (rows, ("list", kind.__name__, "()")) if exact else None
