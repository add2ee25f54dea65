"""Publish a policy with a card.

A policy may be handed on if its noise was drawn for a release, exactly and from the
operating system's entropy. `publish` judges the run again, and writes a folder with the
policy, its guarantee and a page for people.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import privcheck

river = {"env": "riverswim", "H": 4, "S": 4, "n": 2_000, "rho": "1/50"}
with TemporaryDirectory() as folder:
    run, public = Path(folder) / "run", Path(folder) / "public"
    privcheck.run("dp-apvi", noise="release", out=run, **river)
    privcheck.publish(run, out=public, learned_for="swimmers in a small river")

    print(*sorted(path.name for path in public.iterdir()))
    print((public / "card.md").read_text(encoding="utf-8").splitlines()[2])
    promise = json.loads((public / "guarantee.json").read_text(encoding="utf-8"))
    cost = promise["cost"]
    print(f"ε = {cost['epsilon']:.3f} at δ = {cost['delta']}")
    print(
        f"a guess about one person is right with {promise['guessed_right']:.1%} at most"
    )
