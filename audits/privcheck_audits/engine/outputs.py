"""Return values, prints, log records, warnings and written files of an agent or a function, compared bit for bit.

`read_outputs` reads everything that an agent returns, field by field as bytes: fields of subclasses and undeclared
attributes too, so that new fields are compared automatically. A value of a type that cannot be read exactly counts as
different from everything, even from itself, so that it is never considered private.

`Said` captures the side outputs. None of them passes a channel, so that all must be functions of the billboard. A
user-written function may reveal beside its output only what the output reveals: `hear_samplers` runs it once at a time
on two neighbours. A text that always accompanies one output on D, with a different text on D′, depends on the data.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import sys
import threading
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures import OwnMechanism

Read = Mapping[str, bytes | None]  # what stands at each place; None where it cannot be read
_EXACT: Final = (bool, int, float, complex, str, bytes, type(None))  # whose `repr` says them bit for bit
_DEEPEST: Final = 20  # containers in each other; one that contains itself is deeper


def read_outputs(value: object) -> Read:
    """Read the values at all places of an output.

    Args:
        value: Dataclasses, mappings, lists, tuples, arrays and plain values, nested.

    Returns:
        By place, such as `diagnostics['visits']`, type and content; the order of keys and the sign of zero count.
    """
    return dict(_walk(value, "", 0))


def find_differences(one: Read, other: Read) -> frozenset[str]:
    """Find the places at which two outputs differ, or cannot be read."""
    return frozenset(
        place for place in one.keys() | other.keys() if one.get(place) is None or one.get(place) != other.get(place)
    )


def list_fields(read: Read) -> tuple[str, ...]:
    """List the fields that were read, each once, without their nested places."""
    names = (place.partition("[")[0].partition(".")[0] for place in read)
    return tuple(dict.fromkeys(name for name in names if name))


def _walk(value: Any, place: str, depth: int) -> Iterator[tuple[str, bytes | None]]:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}".encode()
    if depth > _DEEPEST:
        yield place, None
    elif kind in _EXACT:
        yield place, name + b" " + repr(value).encode("utf-8", "surrogatepass")
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        said = f" {array.dtype.str} {array.shape} ".encode()
        yield place, None if array.dtype.hasobject else name + said + array.tobytes()
    elif isinstance(value, Mapping):
        yield place, name + repr(list(value)).encode("utf-8", "surrogatepass")
        for key in value:
            inside = f"{place}[{key!r}]" if place or type(key) is not str else key
            yield from _walk(value[key], inside, depth + 1)
    elif isinstance(value, tuple | list):
        yield place, name + b" %d" % len(value)
        for index, item in enumerate(value):
            yield from _walk(item, f"{place}[{index}]", depth + 1)
    elif is_dataclass(value):
        yield place, name
        for field in _attributes(value):
            yield from _walk(getattr(value, field, None), f"{place}.{field}" if place else field, depth + 1)
    else:
        yield place, None


def _attributes(value: Any) -> list[str]:
    """List a dataclass's fields and its further attributes."""
    slots = (slot for kind in type(value).__mro__ for slot in _slots(kind))
    declared = (field.name for field in fields(value))
    return list(dict.fromkeys((*declared, *slots, *getattr(value, "__dict__", ()))))


def _slots(kind: type) -> tuple[str, ...]:
    named = kind.__dict__.get("__slots__", ())
    return tuple(slot for slot in ((named,) if isinstance(named, str) else named) if not slot.startswith("__"))


# names that no field of what an agent hands back has
PRINTED: Final = "printed lines"
LOGGED: Final = "log records"
WARNED: Final = "shown warnings"
WRITTEN: Final = "written files"
_STREAMS: Final = ("standard output", "standard error")  # of what is printed
TURN: Final = threading.RLock()  # streams, loggers and what modules keep are the process's: one agent runs at a time
_COMPILER: Final = "numba"  # at level DEBUG it says what it compiles, once a process and at length
_LISTENERS: dict[int, Said] = {}  # by thread, at most one


class Said:
    """Recorder of the side outputs of one run of an agent.

    Log records of all loggers are captured on creation, for all levels and handlers, without their time. A digest of
    all outputs is kept. Not captured: output to file descriptors that bypasses `sys.stdout` and `sys.stderr`, output of
    other processes and threads, and writes to files that were opened before the capture.
    """

    def __init__(self) -> None:
        self._digests = {place: hashlib.sha256() for place in (*_STREAMS, LOGGED, WARNED)}
        self._files: dict[str, str] = {}  # digests by path
        self._skipped: dict[str, int] = {}  # of a file that is appended to, what stood there before this turn

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Capture all side outputs within the context; they are not passed on."""
        _install()
        with TURN, ExitStack() as stack:
            streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogatepass") for _ in range(2)]
            stack.enter_context(redirect_stdout(streams[0]))
            stack.enter_context(redirect_stderr(streams[1]))
            warned = stack.enter_context(warnings.catch_warnings(record=True))  # each as if for the first time
            stack.enter_context(_every_record(self))
            for path in self._skipped:
                self._skipped[path] = _length(path)
            _LISTENERS[threading.get_ident()] = self
            try:
                yield
            finally:
                del _LISTENERS[threading.get_ident()]
                for name, stream in zip(_STREAMS, streams, strict=True):
                    stream.seek(0)
                    self._note(name, stream.read())
                for each in warned or ():
                    self._note(WARNED, f"{each.category.__name__}: {each.message}")
                for path in self._files:
                    self._files[path] = self._digest(path)

    def read(self) -> Mapping[str, object]:
        """Read the captured outputs, by place, as `privcheck_audits.engine.outputs.read_outputs` takes them."""
        left = {path: digest for path, digest in self._files.items() if digest}
        digests = {place: digest.hexdigest() for place, digest in self._digests.items()}
        printed = {name: digests.pop(name) for name in _STREAMS}
        return {PRINTED: printed, **digests, WRITTEN: left}

    def hear_file(self, path: str, *, appends: bool = False) -> None:
        """Note that a file or folder is about to be written; a compiler's cache is ignored."""
        if path not in self._files and "__pycache__" not in path:
            self._files[path] = ""
            if appends:
                self._skipped[path] = _length(path)

    def hear_record(self, record: logging.LogRecord) -> None:
        """Note a log record, without its time."""
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a message that does not fit its arguments is no error in logging
            message = repr((record.msg, record.args))
        self._note(LOGGED, f"{record.name} {record.levelname} {message}")

    def _note(self, place: str, text: str) -> None:
        if text:
            self._digests[place].update(text.encode("utf-8", "surrogatepass") + b"\0")

    def _digest(self, path: str) -> str:
        """Digest of the run's output at a path; empty if there is none."""
        file, before = Path(path), ""
        if file.is_dir():
            return "folder"
        if not file.is_file():
            return ""
        content = file.read_bytes()
        if path in self._skipped:
            content, before = content[self._skipped[path] :], self._files[path]
            if not content:
                return before
        return hashlib.sha256(before.encode() + content).hexdigest()


def describe_moved(places: Collection[str], handed: str) -> str:
    """Describe the outputs that one user's data changed.

    Args:
        places: Places among the agent's returned values and its side outputs.
        handed: Words for the returned values.
    """
    said = sorted(place for place in places if is_said(place))
    back = sorted(place for place in places if not is_said(place))
    words = [f"{handed}: {', '.join(back)}"] if back else []
    words += [f"the agent's output depends on data that no release covers: {', '.join(said)}"] if said else []
    return "; ".join(words)


def is_said(place: str) -> bool:
    """Whether a place is a side output, and not a returned value."""
    return place.partition("[")[0] in {PRINTED, LOGGED, WARNED, WRITTEN}


def _length(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


@contextmanager
def _every_record(said: Said) -> Iterator[None]:
    """Capture every log record of any logger, and keep it from the handlers of the process."""
    root, compiler, make = logging.getLogger(), logging.getLogger(_COMPILER), logging.getLogRecordFactory()
    level, compilers, handlers = root.level, compiler.level, root.handlers

    def hear(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        said.hear_record(record)
        return record

    logging.setLogRecordFactory(hear)
    root.handlers = [logging.NullHandler()]
    compiler.setLevel(max(compilers, logging.WARNING))
    root.setLevel(1)
    try:
        yield
    finally:
        root.setLevel(level)
        compiler.setLevel(compilers)
        root.handlers = handlers
        logging.setLogRecordFactory(make)


_HOOKED: list[bool] = []


def _install() -> None:
    """Install the audit hook that reports files opened for writing; it cannot be removed, only idle."""
    with TURN:
        if not _HOOKED:
            sys.addaudithook(_hear_files)
            _HOOKED.append(True)


def _hear_files(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in {"open", "os.rename", "os.mkdir"}:
        return
    said = _LISTENERS.get(threading.get_ident())
    if said is None:
        return
    place = arguments[1] if event == "os.rename" else arguments[0]
    flags = arguments[2] if event == "open" else os.O_WRONLY
    if isinstance(place, str | bytes | os.PathLike) and flags & (os.O_WRONLY | os.O_RDWR):
        said.hear_file(str(Path(os.fsdecode(place)).absolute()), appends=bool(flags & os.O_APPEND))


_RUNS: Final = 64  # on each of two neighbours
_PAIRS: Final = 4
_AGAIN: Final = 3  # so often an output has to come, with the same words each time, before it accuses

Heard = Mapping[bytes, list[Mapping[str, object]]]  # by output, what was said beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidBeside:
    """Finding about the side outputs of one function.

    Attributes:
        name: Name of the function.
        places: Side channels that reveal more than the output.
        words: The neighbours; empty if the leak is not certain.
    """

    name: str
    places: tuple[str, ...]
    words: str = ""


def hear_samplers(declaration: Declaration, values: Mapping[str, Fraction], seed: int) -> SaidBeside | None:
    """First function with side outputs that reveal more than its output; certain leaks come before doubtful ones."""
    doubted: SaidBeside | None = None
    for one in _mechanisms(declaration):
        at = one.at(values)
        pairs = islice(one.pairs(declaration.relation, values)[::2], _PAIRS)  # each stands there in both orders
        for known in pairs:
            ours, theirs = (_hear(one, data, at, seed) for data in known.data)
            if places := _list_told(ours, theirs):
                return SaidBeside(name=one.name, places=places, words=known.words)
            doubted = doubted or _doubt(one.name, ours, theirs)
    return doubted


def _mechanisms(declaration: Declaration) -> Iterator[OwnMechanism]:
    return (one for one in declaration.releases if isinstance(one, OwnMechanism))


def _hear(one: OwnMechanism, data: Any, at: Mapping[str, float], seed: int) -> Heard:
    """Side outputs of runs, by output; the random draws are the same on all data."""
    heard = defaultdict[bytes, list[Mapping[str, object]]](list)
    for run in range(_RUNS):
        said = Said()
        with said.listen():
            output = one.draw(np.random.default_rng((seed, run)), data, 1, at)
        heard[output.tobytes()].append(said.read())
    return heard


def _list_told(ours: Heard, theirs: Heard) -> tuple[str, ...]:
    """Side channels that always differ between D and D′ beside the same output."""
    found = set()
    for output in ours.keys() & theirs.keys():
        first, second = ours[output], theirs[output]
        for place in first[0]:
            texts = [[said[place] for said in heard] for heard in (first, second)]
            steady = all(len(each) >= _AGAIN and all(text == each[0] for text in each) for each in texts)
            if steady and texts[0][0] != texts[1][0]:
                found.add(place)
    return tuple(sorted(found))


def _doubt(name: str, ours: Heard, theirs: Heard) -> SaidBeside | None:
    """Doubt about side channels with varying content; None if their content is constant or follows the output."""
    said = [each for heard in (ours, theirs) for texts in heard.values() for each in texts]
    told = tuple(sorted(place for place in said[0] if any(each[place] != said[0][place] for each in said)))
    return SaidBeside(name=name, places=told) if told and not _follows_outputs(ours, theirs, told) else None


def _follows_outputs(ours: Heard, theirs: Heard, places: tuple[str, ...]) -> bool:
    """Whether the side outputs are a function of the output, and outputs recur on both data."""
    common = ours.keys() & theirs.keys()
    if not common:
        return False
    groups = ([*ours.get(output, ()), *theirs.get(output, ())] for output in {*ours, *theirs})
    return all(each[place] == texts[0][place] for texts in groups for each in texts for place in places)
