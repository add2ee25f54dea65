"""Packages that `privcheck new` writes, edited as their authors are likely to: mistakes, and honest variants.

An edit is of the package's text, and an old text that is not there once is an error, so that no mutant is a starter
that was left as it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from privcheck.commands.starting import start_package

NAME = "my-own-agent"
PACKAGE = "my_own_agent"


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a file of the package.

    Attributes:
        file: Its name below the package.
        old: What stands there once; empty to append.
        new: What stands there instead.
    """

    file: str
    old: str
    new: str


Edits = tuple[Edit, ...]


def write_package(place: Path, kind: str, edits: Edits) -> dict[str, str]:
    """Writes a starter of a kind, edits it and registers it; returns the environment in which it is found.

    Raises:
        AssertionError: What an edit replaces does not stand there exactly once.
    """
    start_package(NAME, kind, place / "package")
    for edit in edits:
        file = place / "package" / "src" / PACKAGE / edit.file
        text = file.read_text(encoding="utf-8")
        assert not edit.old or text.count(edit.old) == 1, f"{edit.file} has {text.count(edit.old)} of {edit.old!r}"
        file.write_text(text.replace(edit.old, edit.new) if edit.old else text + edit.new, encoding="utf-8")
    metadata = place / "site" / f"{PACKAGE}-0.1.0.dist-info"  # as an editable install has it
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 0.1.0\n", encoding="utf-8")
    entries = f"[privcheck.algorithms]\n{NAME} = {PACKAGE}:ALGORITHM\n"
    (metadata / "entry_points.txt").write_text(entries, encoding="utf-8")
    paths = [str(place / "package" / "src"), str(place / "site"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_check(place: Path, environment: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Returns what `privcheck check` says of a package, as JSON on its standard output."""
    command = [sys.executable, "-m", "privcheck", "check", NAME, "--out", str(place / "report"), "--json", *options]
    return subprocess.run(command, cwd=place, env=dict(environment), capture_output=True, text=True, check=False)


def read_found(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Returns the first part of a check that objects, and why; empty where none does."""
    try:
        said = json.loads(done.stdout)
    except json.JSONDecodeError:
        return "crash", (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
    if "error" in said:
        return f"refusal ({said['error']})", said["message"]
    if said["verify"]["verdict"] != "holds":
        findings = [finding["message"] for finding in said["verify"]["findings"]]
        return f"verify: {said['verify']['verdict']}", (findings or [said["verify"]["sentence"]])[0]
    views = sorted(said["audit"]["views"].items(), key=lambda item: item[1]["verdict"] != "violation")
    for name, view in views:
        if view["verdict"] != "consistent":
            why = view["witness"] if view["verdict"] == "violation" else view["evidence"].get("doubt", "")
            return f"{name}: {view['verdict']}", why
    return ("", "") if done.returncode == 0 else ("exit code", str(done.returncode))


# ---- agents that learn as they act

_LEAK: Edits = (  # a privatizer half that tells the agent half what no release says
    Edit("__init__.py", "import make_agent\n", "import make_agent, make_contribute\n"),
    Edit("__init__.py", "agent=make_agent)", "agent=make_agent, contribute=make_contribute)"),
    Edit("agent.py", "Board = Mapping", 'SEEN = {"visits": 0.0, "rewards": 0.0, "last": 0.0}\nBoard = Mapping'),
    Edit(
        "agent.py",
        "",
        '''

def make_contribute(setting: Any) -> Callable[[Any], Mapping[str, Any]]:
    """Returns the step from a user's trajectory to what the channel is given."""
    statistics = {release.name: release.statistic for release in setting.declared.releases}

    def contribute(user: Any) -> Mapping[str, Any]:
        SEEN["visits"] += float((user.states[:, :-1] == 0).sum())
        SEEN["rewards"] += float(user.rewards.sum())
        SEEN["last"] = float(user.states[0, -1])
        return {name: statistic.compute(user) for name, statistic in statistics.items()}

    return contribute
''',
    ),
)
_BLANK = Edit("agent.py", '    bonus = float(setting.options["bonus"])\n', '    bonus = float(setting.options["bonus"])\n    SEEN.update(visits=0.0, rewards=0.0, last=0.0)\n')  # fmt: skip  # noqa: E501
_MEMORY: Edits = (  # what an agent half may keep
    Edit("agent.py", "def plan(board: Board)", "def plan(board: Board, memory: Any)"),
    Edit("agent.py", "", '''

def make_memory(_setting: Any, sizes: Any) -> Mapping[str, Any]:
    """Returns what the agent half finds again before the next user."""
    sums = np.zeros((sizes.H, sizes.S, sizes.A))
    return {"figure": np.zeros(1), "planned": np.full(1, -np.inf), "actions": sums.argmax(axis=-1), "sums": sums}
'''),
)  # fmt: skip
_PLAIN = Edit("__init__.py", "agent=make_agent", "agent=make_agent, memory=make_memory")
_IMPORT = Edit("__init__.py", "import make_agent", "import make_agent, make_memory")


def _remembering(*edits: Edit, leak: bool = False) -> Edits:
    """Returns the edits of a package with a memory, and with a privatizer half that leaks into the agent half."""
    if not leak:
        return (*_MEMORY, _IMPORT, _PLAIN, *edits)
    both = Edit("__init__.py", "import make_agent, make_contribute", "import make_agent, make_contribute, make_memory")
    return (*_LEAK, _BLANK, *_MEMORY, both, _PLAIN, *edits)


def _at_the_end(statement: str) -> Edit:
    """Returns the edit that does something with the policy before it is handed back."""
    return Edit("agent.py", "        return actions, after\n" if False else "        return actions\n", f"{statement}        return actions\n")  # fmt: skip  # noqa: E501


def _leaking(*edits: Edit) -> Edits:
    return (*_LEAK, _BLANK, *edits)


def _drawing(body: str) -> Edits:
    """Returns the edits of a Laplace law that draws otherwise than it says."""
    law = f'''

class Own(Laplace):
    """Laplace noise, drawn our own way."""

    def add(self, value, rng):
{body}
'''
    return (
        Edit("declaration.py", "import Claim,", "import Laplace as _  # noqa: F401\nfrom privcheck import Claim,"),
        Edit("declaration.py", "def declare(", f"{law.lstrip()}\n\ndef declare("),
        Edit("declaration.py", 'Laplace(scale=NOISE["rewards"])', 'Own(scale=NOISE["rewards"])'),
        Edit("declaration.py", 'Laplace(scale=NOISE["transitions"])', 'Own(scale=NOISE["transitions"])'),
    )


_COUNT = "        visits = "
ONLINE: dict[str, Edits] = {
    "exact value in the estimate": _remembering(
        _at_the_end('        memory["figure"] = SEEN["rewards"]\n'), leak=True
    ),
    "exact value in a remark": _leaking(
        Edit("agent.py", "import numpy as np\n", "import warnings\n\nimport numpy as np\n"),
        _at_the_end('        warnings.warn(f"users got {SEEN[\'rewards\']:.3f} in all", stacklevel=2)\n'),
    ),
    "exact value in a log line": _leaking(
        Edit("agent.py", "import numpy as np\n", "import logging\n\nimport numpy as np\n"),
        _at_the_end('        logging.getLogger(__name__).info("%.3f so far", SEEN["rewards"])\n'),
    ),
    "exact value printed": _leaking(_at_the_end('        print("so far", SEEN["rewards"])\n')),
    "exact value in the policy's file": _leaking(
        Edit("agent.py", "import numpy as np\n", "import json\n\nimport numpy as np\n"),
        _at_the_end(
            '        with open("policy.json", "w", encoding="utf-8") as file:\n'
            '            json.dump({"actions": actions.tolist(), "rewards": SEEN["rewards"]}, file)\n'
        ),
    ),
    "exact value in the last digits of the policy": _leaking(
        Edit(
            "agent.py",
            "        return actions\n",
            '        share = 0.9 + 1e-9 * SEEN["rewards"]\n'
            "        return share * np.eye(sizes.A)[actions] + (1 - share) / sizes.A\n",
        )
    ),
    "exact count in a bonus": _leaking(
        Edit("agent.py", "/ np.sqrt(visits)", '/ np.sqrt(visits) + SEEN["visits"] * np.arange(sizes.A) / sizes.A')
    ),
    "peek": _leaking(_at_the_end('        actions[-1] = int(SEEN["last"]) % sizes.A\n')),
    "re-used noise": _drawing("        return value + np.random.default_rng(1).laplace(0, float(self.scale), value.shape)"),
    "noise seeded by user": _drawing(
        "        own = np.random.default_rng(int(1000 * np.abs(value).sum()))\n"
        "        return value + own.laplace(0, float(self.scale), value.shape)"
    ),
    "clip after sum": (
        Edit("statistic.py", "np.minimum(data.rewards[:, h], float(CAP))", "data.rewards[:, h]"),
        Edit("agent.py", 'board["rewards"][h] +', 'np.minimum(board["rewards"][h], visits / 2) +'),
    ),
    "double count": (
        Edit(
            "statistic.py",
            "            np.add.at(table[row], cells, np.minimum(data.rewards[:, h], float(CAP)))\n",
            "            np.add.at(table[row], cells, np.minimum(data.rewards[:, h], float(CAP)))\n"
            "            np.add.at(table[row], cells, np.minimum(data.rewards[:, h], float(CAP)))\n",
        ),
    ),
    "raw n": _leaking(
        Edit("agent.py", 'np.maximum(board["transitions"][h].sum(axis=-1), 1.0)', 'np.full((sizes.S, sizes.A), 1 + SEEN["visits"])')
    ),
    "early stop by exact regret": _leaking(
        Edit("agent.py", "    def plan(", "    kept: dict[str, Any] = {}\n\n    def plan("),
        Edit(
            "agent.py",
            "        return actions\n",
            '        if "last" in kept and SEEN["rewards"] > 3.0:  # good enough\n'
            '            return kept["last"]\n'
            '        kept["last"] = actions\n'
            "        return actions\n",
        ),
    ),
    "memory of raw data": _remembering(_at_the_end('        memory["figure"] = 0.9 * memory["figure"] + SEEN["last"]\n'), leak=True),
    "wrong neighbour": (Edit("statistic.py", "(2 if isinstance(relation, ReplaceOne) else 1) * H", "H"),),
    "forgotten node": _drawing(
        "        first = not np.asarray(value).any()\n"
        "        return value + (0.0 if first else 1.0) * rng.laplace(0, float(self.scale), value.shape)"
    ),
    "forgotten level": (Edit("declaration.py", "maximum(1, tree_levels(K - 1))", "maximum(1, tree_levels(K - 1) - 1)"),),
}
HONEST_ONLINE: dict[str, Edits] = {
    "lazy re-planning on noisy counts": _remembering(
        Edit(
            "agent.py",
            "        actions, after = ",
            '        now = board["transitions"].sum()\n'
            '        if now < memory["planned"][0] + 1.0:\n'
            '            return memory["actions"].copy()\n'
            '        memory["planned"] = now\n'
            "        actions, after = ",
        ),
        _at_the_end('        memory["actions"] = actions\n'),
    ),
    "determinant test": _remembering(
        Edit(
            "agent.py",
            "        actions, after = ",
            '        gram = np.diag(np.maximum(board["transitions"].sum(axis=-1), 1.0).ravel())\n'
            "        now = np.linalg.slogdet(gram)[1]\n"
            '        if now <= memory["planned"][0] + np.log(2):\n'
            '            return memory["actions"].copy()\n'
            '        memory["planned"] = now\n'
            "        actions, after = ",
        ),
        _at_the_end('        memory["actions"] = actions\n'),
    ),
    "doubling epochs": _remembering(
        Edit(
            "agent.py",
            "        actions, after = ",
            '        memory["figure"] += 1.0\n'
            '        if np.log2(memory["figure"][0]) % 1 > 0:\n'
            '            return memory["actions"].copy()\n'
            "        actions, after = ",
        ),
        _at_the_end('        memory["actions"] = actions\n'),
    ),
    "mixed policies": (
        Edit(
            "agent.py",
            "        return actions\n",
            "        return 0.9 * np.eye(sizes.A)[actions] + 0.1 / sizes.A\n",
        ),
    ),
    "momentum of noisy sums": _remembering(
        Edit(
            "agent.py",
            "        actions, after = ",
            '        memory["sums"] = 0.9 * memory["sums"] + 0.1 * board["rewards"]\n        actions, after = ',
        ),
        Edit("agent.py", '(board["rewards"][h] +', '(memory["sums"][h] +'),
    ),
    "randomised tie-breaking": _remembering(
        Edit(
            "agent.py",
            "actions[h], after = worth.argmax(axis=1), worth.max(axis=1)",
            "ties = memory.rng.random(worth.shape) * (worth == worth.max(axis=1, keepdims=True))\n"
            "            actions[h], after = ties.argmax(axis=1), worth.max(axis=1)",
        ),
    ),
}

KINDS: dict[str, tuple[Mapping[str, Edits], Mapping[str, Edits]]] = {"online": (ONLINE, HONEST_ONLINE)}
