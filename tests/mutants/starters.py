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


def _edit(file: str, *pairs: tuple[str, str]) -> Edits:
    return tuple(Edit(file, old, new) for old, new in pairs)


def _draw_otherwise(law: str, scale: str, body: str) -> Edits:
    """Returns the edits of a declaration whose noise is drawn otherwise than its law says.

    Args:
        law: The mechanism that is declared.
        scale: What its noise calls its spread.
        body: Of the method that adds noise.
    """
    text = f"""import numpy as np
from privcheck.mechanisms import {law}Noise


class OwnNoise({law}Noise):
    def add(self, value, rng):
{body}


class Own({law}):
    def at(self, values):
        return OwnNoise({scale}=super().at(values).{scale})


{law} = Own


def declare("""
    return _edit("declaration.py", ("def declare(", text))


def _noises(law: str) -> dict[str, Edits]:
    """Returns the mistakes of a noise law, `draw` of which is the sampler of NumPy."""
    scale, draw = "scale", law.lower() if law == "Laplace" else "normal"
    own = f"        return value + own.{draw}(0, self.scale, value.shape)"
    return {
        "re-used noise": _draw_otherwise(law, scale, f"        own = np.random.default_rng(1)\n{own}"),
        "noise seeded by user": _draw_otherwise(
            law, scale, f"        own = np.random.default_rng(int(1000 * np.abs(value).sum()))\n{own}"
        ),
        "forgotten node": _draw_otherwise(
            law,
            scale,
            "        kept = np.ones(value.shape)\n        kept.flat[0] = 0.0  # the counters begin with the second\n"
            f"        return value + kept * rng.{draw}(0, self.scale, value.shape)",
        ),
    }


CLIP = "np.minimum(data.rewards[:, h], float(CAP))"
ADD = f"            np.add.at(table[row], cells, {CLIP})\n"
COUNTED = {  # mistakes in the statistic that two kinds share
    "double count": _edit("statistic.py", (ADD, ADD + ADD)),
    "wrong neighbour": _edit("statistic.py", ("(2 if isinstance(relation, ReplaceOne) else 1) * H", "H")),
}

# ---- agents that learn as they act

_BONUS = '    bonus = float(setting.options["bonus"])\n'
_LEAK: Edits = (  # a privatizer half that tells the agent half what no release says
    *_edit(
        "__init__.py",
        ("import make_agent\n", "import make_agent, make_contribute, make_memory\n"),
        ("agent=make_agent", "agent=make_agent, memory=make_memory, contribute=make_contribute"),
    ),
    *_edit(
        "agent.py",
        ("import numpy as np\n", "import json\nimport logging\nimport warnings\n\nimport numpy as np\n"),
        ("Board = Mapping", 'SEEN = {"visits": 0.0, "rewards": 0.0, "last": 0.0}\nBoard = Mapping'),
        ("def plan(board: Board)", "def plan(board: Board, memory: Any)"),
        (_BONUS, f"{_BONUS}    SEEN.update(visits=0.0, rewards=0.0, last=0.0)\n"),
        (
            "",
            '''

def make_contribute(setting: Any) -> Callable[[Any, Any], Mapping[str, Any]]:
    """Returns the step from a user's trajectory to what the channel is given."""
    statistics = {release.name: release.statistic for release in setting.declared.releases}

    def contribute(user: Any, rng: Any) -> Mapping[str, Any]:
        SEEN["visits"] += float((user.states[:, :-1] == 0).sum())
        SEEN["rewards"] += float(user.rewards.sum())
        SEEN["last"] = float(user.states[0, -1])
        return {name: statistic.compute(user) for name, statistic in statistics.items()}

    return contribute


def make_memory(_setting: Any, sizes: Any) -> Mapping[str, Any]:
    """Returns what the agent half finds again before the next user."""
    return {"figure": np.zeros(1), "actions": np.zeros((sizes.H, sizes.S), np.int64)}
''',
        ),
    ),
)
_MEMORY: Edits = (  # what an honest agent half may keep
    *_edit(
        "__init__.py",
        ("import make_agent\n", "import make_agent, make_memory\n"),
        ("agent=make_agent", "agent=make_agent, memory=make_memory"),
    ),
    *_edit(
        "agent.py",
        ("def plan(board: Board)", "def plan(board: Board, memory: Any)"),
        (
            "",
            '''

def make_memory(_setting: Any, sizes: Any) -> Mapping[str, Any]:
    """Returns what the agent half finds again before the next user."""
    sums = np.zeros((sizes.H, sizes.S, sizes.A))
    return {"figure": np.zeros(1), "planned": np.full(1, -np.inf), "actions": sums.argmax(axis=-1), "sums": sums}
''',
        ),
    ),
)
_END = "        return actions\n"
_BEGIN = "        actions, after = "


def _leak(*pairs: tuple[str, str]) -> Edits:
    return (*_LEAK, *_edit("agent.py", *pairs))


def _leak_at_the_end(statement: str) -> Edits:
    """Returns the edits of an agent half that does something else just before it hands back its policy."""
    return _leak((_END, f"        {statement}\n{_END}"))


def _remember(*pairs: tuple[str, str]) -> Edits:
    return (*_MEMORY, *_edit("agent.py", *pairs))


def _plan_when(test: str) -> Edits:
    """Returns the edits of an agent half that plans anew on some occasions only."""
    keep = f'{test}            return memory["actions"].copy()\n'
    return _remember((_BEGIN, keep + _BEGIN), (_END, f'        memory["actions"] = actions\n{_END}'))


_INTO_AGENT: dict[str, Edits] = {  # of every kind that learns as it acts
    "exact value in the claimed return": _leak_at_the_end('memory["figure"] = SEEN["rewards"]'),
    "exact value in a remark": _leak_at_the_end("warnings.warn(f\"{SEEN['rewards']:.3f} in all\", stacklevel=2)"),
    "exact value in a log line": _leak_at_the_end('logging.getLogger(__name__).debug("%.3f", SEEN["rewards"])'),
    "exact value printed": _leak_at_the_end('print("so far", SEEN["rewards"])'),
    "exact value in the policy's file": _leak_at_the_end(
        'with open("policy.json", "w", encoding="utf-8") as file:\n'
        '            json.dump({"actions": actions.tolist(), "rewards": SEEN["rewards"]}, file)'
    ),
    "exact value in the policy's last digits": _leak(
        (
            _END,
            (
                '        share = 0.9 + 1e-9 * SEEN["rewards"]\n'
                "        return share * np.eye(sizes.A)[actions] + (1 - share) / sizes.A\n"
            ),
        )
    ),
    "exact count in a bonus": _leak(
        ("/ np.sqrt(visits)", '/ np.sqrt(visits) + SEEN["visits"] * np.arange(sizes.A) / sizes.A')
    ),
    "peek": _leak_at_the_end('actions[-1] = int(SEEN["last"]) % sizes.A'),
    "raw n": _leak(
        ('np.maximum(board["transitions"][h].sum(axis=-1), 1.0)', 'np.full((sizes.S, sizes.A), 1 + SEEN["visits"])')
    ),
    "early stop by exact regret": _leak(
        (
            _BEGIN,
            '        if SEEN["rewards"] > 3.0:  # good enough\n            return memory["actions"].copy()\n' + _BEGIN,
        ),
        (_END, f'        memory["actions"] = actions\n{_END}'),
    ),
    "memory of raw data": _leak_at_the_end('memory["figure"] = 0.9 * memory["figure"] + SEEN["last"]'),
}
_HONEST_AGENT: dict[str, Edits] = {
    "lazy re-planning on noisy counts": _plan_when(
        '        now = board["transitions"].sum()\n'
        '        if now >= memory["planned"][0] + 1.0:\n'
        '            memory["planned"] = now\n'
        "        else:\n"
    ),
    "determinant test": _plan_when(
        '        gram = np.diag(np.maximum(board["transitions"].sum(axis=-1), 1.0).ravel())\n'
        "        now = np.linalg.slogdet(gram)[1]\n"
        '        if now > memory["planned"][0] + np.log(2):\n'
        '            memory["planned"] = now\n'
        "        else:\n"
    ),
    "doubling epochs": _plan_when(
        '        memory["figure"] += 1.0\n        if np.log2(memory["figure"][0]) % 1 > 0:\n'
    ),
    "mixed policies": _edit("agent.py", (_END, "        return 0.9 * np.eye(sizes.A)[actions] + 0.1 / sizes.A\n")),
    "momentum of noisy sums": _remember(
        (_BEGIN, f'        memory["sums"] = 0.9 * memory["sums"] + 0.1 * board["rewards"]\n{_BEGIN}'),
        ('(board["rewards"][h] +', '(memory["sums"][h] +'),
    ),
    "randomised tie-breaking": _remember(
        (
            "actions[h], after = worth.argmax(axis=1), worth.max(axis=1)",
            (
                "ties = memory.rng.random(worth.shape) * (worth == worth.max(axis=1, keepdims=True))\n"
                "            actions[h], after = ties.argmax(axis=1), worth.max(axis=1)"
            ),
        )
    ),
}
ONLINE: dict[str, Edits] = {
    **_INTO_AGENT,
    **_noises("Laplace"),
    "clip after sum": (
        *_edit("statistic.py", (CLIP, "data.rewards[:, h]")),
        *_edit("agent.py", ('board["rewards"][h] +', 'np.minimum(board["rewards"][h], visits / 2) +')),
    ),
    **COUNTED,
    "forgotten level": _edit("declaration.py", ("tree_levels(K - 1))", "tree_levels(K - 1) - 1)")),
}

# ---- agents that learn from a dataset

_HOLD: Edits = (  # a privatizer half that shows its data to the agent half
    *_edit(
        "__init__.py",
        ("import make_agent\n", "import hold, make_agent\n"),
        ("OfflineAgent(make=make_agent)", "OfflineAgent(make=make_agent, privatizer=hold)"),
    ),
    *_edit(
        "agent.py",
        ("import math\n", "import json\nimport logging\nimport math\nimport warnings\n"),
        (
            "from privcheck.runtime import Billboard\n",
            "from privcheck.results import Remark\nfrom privcheck.runtime import Billboard, Privatizer\n",
        ),
        (
            "",
            '''

SEEN = {}


def hold(data, declaration, channel):
    """Returns the privatizer half."""
    SEEN["rewards"] = float(data.rewards.sum())
    SEEN["visits"] = float((data.states[:, :-1] == 0).sum())
    SEEN["last"] = int(data.states[:, -1].sum())
    SEEN["users"] = data.users
    return Privatizer(data, declaration, channel)
''',
        ),
    ),
)
_RETURN = "        return Learnt(\n"
_DIAGNOSTICS = 'diagnostics={"noise_of_a_count": self.noise}'
_VISITS = "np.maximum(transitions.sum(axis=-1), 1.0)"
_GREEDY = "return worth.argmax(axis=1), worth.max(axis=1)"


def _hold(*pairs: tuple[str, str]) -> Edits:
    return (*_HOLD, *_edit("agent.py", *pairs))


OFFLINE: dict[str, Edits] = {
    "exact value in the claimed return": _hold(
        ("claimed=float(values[0].min())", 'claimed=SEEN["rewards"] / SEEN["users"]'),
    ),
    "exact value in diagnostics": _hold((_DIAGNOSTICS, 'diagnostics={"visits": SEEN["visits"]}')),
    "exact value in a remark": _hold(
        (
            _DIAGNOSTICS,
            (
                f"{_DIAGNOSTICS},\n            "
                'remarks=(Remark(title="Rewards", text=f"{SEEN[\'rewards\']:.3f} in all"),)'
            ),
        ),
    ),
    "exact value in a log line": _hold(
        (_RETURN, f'        logging.getLogger(__name__).info("%.3f", SEEN["rewards"])\n{_RETURN}')
    ),
    "exact value printed": _hold((_RETURN, f'        print("rewards", SEEN["rewards"])\n{_RETURN}')),
    "exact value in a warning": _hold(
        (_RETURN, f'        warnings.warn(str(SEEN["rewards"]), stacklevel=2)\n{_RETURN}')
    ),
    "exact value in the policy's file": _hold(
        (
            _RETURN,
            (
                '        with open("policy.json", "w", encoding="utf-8") as file:\n'
                f'            json.dump({{"rewards": SEEN["rewards"]}}, file)\n{_RETURN}'
            ),
        )
    ),
    "exact value in the policy's last digits": _hold(
        (
            "policy=one_hot(np.stack(actions), rewards.shape[1])",
            (
                'policy=(1 - 1e-9 * SEEN["rewards"]) * one_hot(np.stack(actions), rewards.shape[1])'
                ' + 1e-9 * SEEN["rewards"] / rewards.shape[1]'
            ),
        )
    ),
    "exact count in a bonus": _hold(("1 / np.sqrt(visits)", '1 / np.sqrt(1 + SEEN["visits"])')),
    "peek": _hold((_GREEDY, 'return (worth.argmax(axis=1) + SEEN["last"]) % worth.shape[1], worth.max(axis=1)')),
    "raw n": _hold((_VISITS, 'np.full(rewards.shape, 1 + SEEN["visits"])')),
    "early stop by exact regret": _hold(
        (
            "        for h in reversed(range(self.H)):\n",
            "        for h in reversed(range(self.H)):\n            rough = SEEN['rewards'] > 12.5  # good enough\n",
        ),
        (
            "            actions.insert(0, actions_of_step)\n",
            "            actions.insert(0, 0 * actions_of_step if rough else actions_of_step)\n",
        ),
    ),
    "memory of raw data": _hold(
        ("SEEN = {}", 'SEEN = {"kept": 0.0}'),
        (
            '    SEEN["users"] = data.users\n',
            '    SEEN["users"] = data.users\n    SEEN["kept"] += float(data.rewards.sum())\n',
        ),
        (_DIAGNOSTICS, 'diagnostics={"so_far": SEEN["kept"]}'),
    ),
    **_noises("Gaussian"),
    "clip after sum": _edit(
        "statistic.py",
        (CLIP, "data.rewards[:, h]"),
        (
            "        return table if step is None else table[0]\n",
            (
                "        table = np.minimum(table, data.users * float(CAP))\n"  # of all users together
                "        return table if step is None else table[0]\n"
            ),
        ),
    ),
    **COUNTED,
}
_SEEDED = "np.random.default_rng(abs(int(1e6 * transitions.sum())))"
_WORTH = "        worth = np.clip(worth, 0.0, self.H - h)\n"
HONEST_OFFLINE: dict[str, Edits] = {
    "lazy re-planning on noisy counts": _edit(
        "agent.py",
        (
            "            done()\n",
            (
                "            if len(actions) > 1 and transitions.sum() < 0:  # too little for a plan of its own\n"
                "                actions[0] = actions[1]\n            done()\n"
            ),
        ),
    ),
    "determinant test": _edit(
        "agent.py",
        (
            "            done()\n",
            (
                "            gram = np.diag(np.maximum(transitions.sum(axis=-1), 1.0).ravel())\n"
                "            if len(actions) > 1 and np.linalg.slogdet(gram)[1] < np.log(2):\n"
                "                actions[0] = actions[1]\n            done()\n"
            ),
        ),
    ),
    "doubling epochs": _edit(
        "agent.py",
        (
            "            done()\n",
            (
                "            if len(actions) > 1 and len(actions) & (len(actions) - 1):  # plans at 1, 2, 4, … steps\n"
                "                actions[0] = actions[1]\n            done()\n"
            ),
        ),
    ),
    "mixed policies": _edit(
        "agent.py",
        (
            "policy=one_hot(np.stack(actions), rewards.shape[1])",
            "policy=0.9 * one_hot(np.stack(actions), rewards.shape[1]) + 0.1 / rewards.shape[1]",
        ),
    ),
    "momentum of noisy sums": _edit(
        "agent.py",
        (
            "        actions, values, after = [], [], np.zeros(1)\n",
            "        actions, values, after, slow = [], [], np.zeros(1), 0.0\n",
        ),
        (
            "            actions_of_step, after",
            "            rewards = slow = 0.5 * slow + 0.5 * rewards\n            actions_of_step, after",
        ),
    ),
    "randomised tie-breaking": _edit(
        "agent.py",
        (
            _GREEDY,
            (
                f"ties = {_SEEDED}.random(worth.shape) * (worth == worth.max(axis=1, keepdims=True))\n"
                "        return ties.argmax(axis=1), worth.max(axis=1)"
            ),
        ),
    ),
}

Packages = Mapping[str, Edits]
KINDS: dict[str, tuple[Packages, Packages]] = {  # mistakes, and honest variants
    "online": (ONLINE, _HONEST_AGENT),
    "offline": (OFFLINE, HONEST_OFFLINE),
}
