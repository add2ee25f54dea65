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

from privcheck.commands.starter import start_package

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
from privcheck.declare.mechanisms import {law}Noise


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
_SHOW = """SEEN["visits"] += float((user.states[:, :-1] == 0).sum())
        SEEN["rewards"] += float(user.rewards.sum())
        SEEN["last"] = float(user.states[0, -1])
"""
_SEE: Edits = _edit(  # an agent half that somebody may tell what no release says
    "agent.py",
    ("import numpy as np\n", "import json\nimport logging\nimport warnings\n\nimport numpy as np\n"),
    ("Board = Mapping", 'SEEN = {"visits": 0.0, "rewards": 0.0, "last": 0.0}\nBoard = Mapping'),
    ("def plan(board: Board)", "def plan(board: Board, memory: Any)"),
    (_BONUS, f"{_BONUS}    SEEN.update(visits=0.0, rewards=0.0, last=0.0)\n"),
    (
        "",
        '''

def make_memory(_setting: Any, sizes: Any) -> Mapping[str, Any]:
    """Returns what the agent half finds again before the next user."""
    return {"figure": np.zeros(1), "actions": np.zeros((sizes.H, sizes.S), np.int64)}
''',
    ),
)
_LEAK: Edits = (  # a privatizer half that tells the agent half so
    *_edit(
        "__init__.py",
        ("import make_agent\n", "import make_agent, make_contribute, make_memory\n"),
        ("agent=make_agent", "agent=make_agent, memory=make_memory, contribute=make_contribute"),
    ),
    *_SEE,
    *_edit(
        "agent.py",
        (
            "",
            f'''

def make_contribute(setting: Any) -> Callable[[Any, Any], Mapping[str, Any]]:
    """Returns the step from a user's trajectory to what the channel is given."""
    statistics = {{release.name: release.statistic for release in setting.declared.releases}}

    def contribute(user: Any, rng: Any) -> Mapping[str, Any]:
        {_SHOW}        return {{name: statistic.compute(user) for name, statistic in statistics.items()}}

    return contribute
''',
        ),
    ),
)
_LEAK_OF_A_DEVICE: Edits = (  # a device that tells the agent half so, past the shuffler
    *_edit(
        "__init__.py",
        ("import make_agent\n", "import make_agent, make_memory\n"),
        ("agent=make_agent", "agent=make_agent, memory=make_memory"),
    ),
    *_SEE,
    *_edit(
        "device.py",
        (
            "from privcheck.runtime.setting import Setting\n",
            "from privcheck.runtime.setting import Setting\n\nfrom my_own_agent.agent import SEEN\n",
        ),
        ("        rounded = replace(", f"        {_SHOW}        rounded = replace("),
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


def _remember(*pairs: tuple[str, str]) -> Edits:
    return (*_MEMORY, *_edit("agent.py", *pairs))


def _plan_when(test: str) -> Edits:
    """Returns the edits of an agent half that plans anew on some occasions only."""
    keep = f'{test}            return memory["actions"].copy()\n'
    return _remember((_BEGIN, keep + _BEGIN), (_END, f'        memory["actions"] = actions\n{_END}'))


def _into_agent(told: Edits, enough: str) -> dict[str, Edits]:
    """Returns the mistakes of every kind that learns as it acts.

    Args:
        told: The edits by which its agent half is told what no release says.
        enough: The sum of rewards after which it plans no more.
    """

    def leak(*pairs: tuple[str, str]) -> Edits:
        return (*told, *_edit("agent.py", *pairs))

    def at_the_end(statement: str) -> Edits:  # just before it hands back its policy
        return leak((_END, f"        {statement}\n{_END}"))

    return {
        "exact value in the claimed return": at_the_end('memory["figure"] = SEEN["rewards"]'),
        "exact value in a remark": at_the_end("warnings.warn(f\"{SEEN['rewards']:.3f} in all\", stacklevel=2)"),
        "exact value in a log line": at_the_end('logging.getLogger(__name__).debug("%.3f", SEEN["rewards"])'),
        "exact value printed": at_the_end('print("so far", SEEN["rewards"])'),
        "exact value in the policy's file": at_the_end(
            'with open("policy.json", "w", encoding="utf-8") as file:\n'
            '            json.dump({"actions": actions.tolist(), "rewards": SEEN["rewards"]}, file)'
        ),
        "exact value in the policy's last digits": leak(
            (
                _END,
                (
                    '        share = 0.9 + 1e-9 * SEEN["rewards"]\n'
                    "        return share * np.eye(sizes.A)[actions] + (1 - share) / sizes.A\n"
                ),
            )
        ),
        "exact count in a bonus": leak(
            ("/ np.sqrt(visits)", '/ np.sqrt(visits) + SEEN["visits"] * np.arange(sizes.A) / sizes.A')
        ),
        "peek": at_the_end('actions[-1] = int(SEEN["last"]) % sizes.A'),
        "raw n": leak(
            ('np.maximum(board["transitions"][h].sum(axis=-1), 1.0)', 'np.full((sizes.S, sizes.A), 1 + SEEN["visits"])')
        ),
        "early stop by exact regret": leak(
            (
                _BEGIN,
                f'        if SEEN["rewards"] > {enough}:  # good enough\n            return memory["actions"].copy()\n'
                + _BEGIN,
            ),
            (_END, f'        memory["actions"] = actions\n{_END}'),
        ),
        "memory of raw data": at_the_end('memory["figure"] = 0.9 * memory["figure"] + SEEN["last"]'),
    }


HONEST_AGENT: dict[str, Edits] = {
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
    **_into_agent(_LEAK, "3.0"),
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
            "from privcheck.runtime.results import Remark\nfrom privcheck.runtime import Billboard, Privatizer\n",
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

# ---- agents that regress on features

_KEEP: Edits = (  # a privatizer half that shows its data to both planners
    *_edit(
        "planning.py",
        ("Array = NDArray[np.float64]\n", 'Array = NDArray[np.float64]\nSEEN = {"kept": 0.0}\n'),
    ),
    *_edit(
        "privatizer.py",
        ("import plan, prepare", "import SEEN, plan, prepare"),
        (
            "        self.__data = data\n",
            (
                "        self.__data = data\n"
                '        SEEN["rewards"] = float(data.rewards.sum())\n'
                '        SEEN["visits"] = float((data.states[:, :-1] == 0).sum())\n'
                '        SEEN["last"] = int(data.states[:, -1].sum())\n'
                '        SEEN["kept"] += float(data.rewards.sum())\n'
                '        SEEN["users"] = data.users\n'
            ),
        ),
    ),
    *_edit(
        "agent.py",
        ("import Public, plan, prepare", "import SEEN, Public, plan, prepare"),
        (
            "from collections.abc import Callable\n",
            "import json\nimport logging\nimport warnings\nfrom collections.abc import Callable\n",
        ),
        (
            "from privcheck.runtime import",
            "from privcheck.runtime.results import Remark\nfrom privcheck.runtime import",
        ),
    ),
)
_RIDGE = 'diagnostics={"ridge": self.public.ridge}'
_GREEDY_STEP = "            actions[step], values[step] = plan(billboard, step, self.public)\n"
_FIT = "    worth = np.clip(public.phi @ weights, 0.0, public.H - step)\n"


def _keep(*pairs: tuple[str, str], file: str = "agent.py") -> Edits:
    return (*_KEEP, *_edit(file, *pairs))


def _plan_later(test: str) -> Edits:
    """Returns the edits of an agent half that takes over the plan of the step after on some occasions."""
    taken = f"            if step + 1 < self.public.H and {test}:\n                actions[step] = actions[step + 1]\n"
    return _edit("agent.py", (_GREEDY_STEP, _GREEDY_STEP + taken))


LINEAR: dict[str, Edits] = {
    "exact value in the claimed return": _keep(
        ("claimed=float(values[0].min())", 'claimed=SEEN["rewards"] / SEEN["users"]')
    ),
    "exact value in diagnostics": _keep((_RIDGE, 'diagnostics={"visits": SEEN["visits"]}')),
    "exact value in a remark": _keep(
        (
            _RIDGE,
            f'{_RIDGE},\n            remarks=(Remark(title="Rewards", text=f"{{SEEN[\'rewards\']:.3f}} in all"),)',
        )
    ),
    "exact value in a log line": _keep(
        (_RETURN, f'        logging.getLogger(__name__).info("%.3f", SEEN["rewards"])\n{_RETURN}')
    ),
    "exact value printed": _keep((_RETURN, f'        print("rewards", SEEN["rewards"])\n{_RETURN}')),
    "exact value in a warning": _keep(
        (_RETURN, f'        warnings.warn(str(SEEN["rewards"]), stacklevel=2)\n{_RETURN}')
    ),
    "exact value in the policy's file": _keep(
        (
            _RETURN,
            (
                '        with open("policy.json", "w", encoding="utf-8") as file:\n'
                f'            json.dump({{"rewards": SEEN["rewards"]}}, file)\n{_RETURN}'
            ),
        )
    ),
    "exact value in the policy's last digits": _keep(
        (
            "policy=one_hot(actions, choices)",
            'policy=(1 - 1e-9 * SEEN["rewards"]) * one_hot(actions, choices) + 1e-9 * SEEN["rewards"] / choices',
        )
    ),
    "exact count in a bonus": _keep(
        (_FIT, f'{_FIT}    worth += 1 / np.sqrt(1 + SEEN["visits"])  # optimism\n'), file="planning.py"
    ),
    "peek": _keep(
        (_GREEDY_STEP, f'{_GREEDY_STEP}            actions[step] = (actions[step] + SEEN["last"]) % choices\n')
    ),
    "raw n": _keep(
        ("+ public.ridge * np.eye", '+ public.ridge * SEEN["users"] * SEEN["visits"] * np.eye'), file="planning.py"
    ),
    "early stop by exact regret": _keep(
        (_GREEDY_STEP, f'            if SEEN["rewards"] < 48.0:  # not yet good enough\n    {_GREEDY_STEP}'),
    ),
    "memory of raw data": _keep((_RIDGE, 'diagnostics={"so_far": SEEN["kept"]}')),
    **_noises("Gaussian"),
    "clip after sum": _edit(
        "privatizer.py",
        (
            "data.rewards[:, step] + after",
            "data.rewards[:, step:].sum(axis=1) + after",
        ),  # of a user more than H − h + 1
        (
            "            self._channel.release(name, statistic.compute(users, step=0), part=step)\n",
            (
                "            most = data.users * float(public.H - step)\n"  # of all users together
                "            table = np.clip(statistic.compute(users, step=0), -most, most)\n"
                "            self._channel.release(name, table, part=step)\n"
            ),
        ),
    ),
    "double count": _edit(
        "privatizer.py", ("statistic.compute(users, step=0)", "2 * statistic.compute(users, step=0)")
    ),
    "wrong neighbour": _edit("declaration.py", ('"gram": H / rho', '"gram": H / (2 * rho)')),
    "exact values of the step after": _edit(
        "privatizer.py",
        (
            "            after = plan(self._billboard, step + 1, public)[1]\n",
            "            after[:] = data.rewards[:, step + 1 :].sum() / 2\n",
        ),
    ),
}
HONEST_LINEAR: dict[str, Edits] = {
    "lazy re-planning on noisy counts": _plan_later('billboard.read("gram", part=step).trace() < 0'),
    "determinant test": _plan_later(
        'np.linalg.det(billboard.read("gram", part=step) + np.eye(self.public.phi.shape[-1])) < 2'
    ),
    "doubling epochs": _plan_later("(self.public.H - step) & (self.public.H - step - 1)"),
    "mixed policies": _edit(
        "agent.py", ("policy=one_hot(actions, choices)", "policy=0.9 * one_hot(actions, choices) + 0.1 / choices")
    ),
    "momentum of noisy sums": _edit(
        "planning.py",
        (
            "    sizes, directions",
            (
                '    gains = billboard.read("gains", part=step)\n    if step + 1 < public.H:\n'
                '        gains = 0.5 * gains + 0.5 * billboard.read("gains", part=step + 1)\n    sizes, directions'
            ),
        ),
        ('@ billboard.read("gains", part=step))', "@ gains)"),
    ),
    "randomised tie-breaking": _edit(
        "planning.py",
        (
            "    return worth.argmax(axis=1), worth.max(axis=1)",
            (
                "    coins = np.random.default_rng(abs(int(1e6 * matrix.sum())))\n"
                "    ties = coins.random(worth.shape) * (worth == worth.max(axis=1, keepdims=True))\n"
                "    return ties.argmax(axis=1), worth.max(axis=1)"
            ),
        ),
    ),
}

# ---- agents behind a shuffler: their noise bits are the package's, and no author draws them

SHUFFLE: dict[str, Edits] = {
    **_into_agent(_LEAK_OF_A_DEVICE, "9.0"),
    "clip after sum": _edit(
        "device.py",
        (
            "rounded = replace(user, rewards=round_rewards(user.rewards, rng))",
            "rounded = replace(user, rewards=4 * round_rewards(user.rewards, rng))",  # each counter clips what it has
        ),
    ),
    "rewards that are no bits": _edit(
        "device.py", ("replace(user, rewards=round_rewards(user.rewards, rng))", "replace(user)")
    ),
    "double count": _edit("device.py", ("name: table.compute(rounded)", "name: 2 * table.compute(rounded)")),
    "wrong neighbour": _edit("declaration.py", ("BITS = 8 * (4 * H)", "BITS = 8 * (2 * H)")),
    "forgotten step": _edit("declaration.py", ("BITS = 8 * (4 * H)", "BITS = 8 * (4 * H - 4)")),
    "integers in place of bits": _edit(
        "declaration.py", ("threshold=BITS, dealt=True", 'threshold=BITS, messages="integers"')
    ),
}

# ---- functions: nothing claims a return, learns a policy or stops by regret

_RUN = "    noise = rng.geometric(p, size) - rng.geometric(p, size)\n"
_OUT = "    return np.clip(total(data, most) + noise, 0, int(most))\n"
_SUM = "min(max(int(number), 0), CLIP) for number in data"


def _function(*pairs: tuple[str, str]) -> Edits:
    return _edit("mechanism.py", *pairs)


FUNCTION: dict[str, Edits] = {
    "exact value in a log line": _function(
        ("import numpy as np\n", "import logging\n\nimport numpy as np\n"),
        (_OUT, f'    logging.getLogger(__name__).info("%d in all", total(data, most))\n{_OUT}'),
    ),
    "exact value printed": _function((_OUT, f'    print("in all", total(data, most))\n{_OUT}')),
    "exact value in a file": _function(
        (
            _OUT,
            (
                '    with open("total.txt", "w", encoding="utf-8") as file:\n'
                f"        print(total(data, most), file=file)\n{_OUT}"
            ),
        )
    ),
    "exact value in the last digits": _function(
        (_OUT, "    return np.clip(total(data, most) + noise, 0, int(most)) + 1e-9 * total(data, most)\n")
    ),
    "exact count in a bound": _function((_OUT, _OUT.replace("int(most)", "min(int(most), 1 + CLIP * len(data))"))),
    "peek": _function((_RUN, f"{_RUN}    noise[rng.random(size) < 0.01] = 0\n")),
    "re-used noise": _function((_RUN, f"    rng = np.random.default_rng(1)\n{_RUN}")),
    "one noise for all runs": _function((_RUN, "    noise = np.full(size, rng.geometric(p) - rng.geometric(p))\n")),
    "noise seeded by user": _function((_RUN, f"    rng = np.random.default_rng(total(data, most))\n{_RUN}")),
    "clip after sum": _function((_SUM, "max(int(number), 0) for number in data")),
    "double count": _function((f"min(sum({_SUM})", f"min(2 * sum({_SUM})")),
    "raw n": _function(("np.exp(-1 / scale)", "np.exp(-max(1, len(data)) / scale)")),
    "early stop by the exact total": _function(
        (_RUN, f"    if total(data, most) >= most:  # enough\n        return np.full(size, int(most))\n{_RUN}")
    ),
    "memory of raw data": _function(
        ("def noisy_total(", "KEPT: list[int] = []\n\n\ndef noisy_total("),
        (_RUN, f"    KEPT.append(total(data, most))\n{_RUN}"),
        (_OUT, "    return np.clip(KEPT[-2 if len(KEPT) > 1 else -1] + noise, 0, int(most))\n"),
    ),
    "wrong neighbour": (
        *_function(
            (f"min(sum({_SUM}), int(most))", f"max(0, min(sum({_SUM.replace('0)', '-CLIP)')}), int(most)))"),
        ),
        *_edit("declaration.py", ("rng.choice([0, ", "rng.choice([-CLIP, 0, ")),
        *_edit(
            "declaration.py",
            ('    relation=AddRemoveOne("user"),\n    records', '    relation=ReplaceOne("user"),\n    records'),
        ),
        *_edit("declaration.py", ('        relation=AddRemoveOne("user")', '        relation=ReplaceOne("user")')),
        *_edit(
            "declaration.py",
            (
                "import AddRemoveOne, Claim, Declaration, Parameter, PureDP",
                "import Claim, Declaration, Parameter, PureDP, ReplaceOne",
            ),
        ),
    ),
    "forgotten half of the noise": _function((_RUN, "    noise = rng.geometric(p, size) - 1\n")),
}
HONEST_FUNCTION: dict[str, Edits] = {
    "clipped at once": _function((f"sum({_SUM})", "int(np.clip(np.asarray(data, int), 0, CLIP).sum())")),
    "lazy: a total is computed once": _function(
        ("import numpy as np\n", "from functools import lru_cache\n\nimport numpy as np\n"),
        ("def total(", "@lru_cache\ndef total("),
    ),
    "doubling blocks of noise": _function(
        (
            _RUN,
            (
                "    noise = np.zeros(0, int)\n    while noise.size < size:\n"
                "        block = max(1, noise.size)\n"
                "        noise = np.append(noise, rng.geometric(p, block) - rng.geometric(p, block))\n"
                "    noise = noise[:size]\n"
            ),
        )
    ),
    "a size and a sign": _function(
        (
            _RUN,
            (
                "    size_of = rng.geometric(p, size) - 1\n"
                "    zero = rng.random(size) < p / (2 - p)  # 0 would come twice as often\n"
                "    noise = np.where(zero, 0, (1 + size_of) * rng.choice([-1, 1], size))\n"
            ),
        )
    ),
    "randomised order": _function(
        (_OUT, "    return rng.permutation(np.clip(total(data, most) + noise, 0, int(most)))\n")
    ),
    "a public figure in a log line": _function(
        ("import numpy as np\n", "import logging\n\nimport numpy as np\n"),
        (_OUT, f'    logging.getLogger(__name__).info("noise of scale %g", scale)\n{_OUT}'),
    ),
}

Packages = Mapping[str, Edits]
KINDS: dict[str, tuple[Packages, Packages]] = {  # mistakes, and honest variants
    "online": (ONLINE, HONEST_AGENT),
    "offline": (OFFLINE, HONEST_OFFLINE),
    "linear": (LINEAR, HONEST_LINEAR),
    "shuffle": (SHUFFLE, HONEST_AGENT),
    "function": (FUNCTION, HONEST_FUNCTION),
}
