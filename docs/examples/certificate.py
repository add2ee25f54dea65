"""Check a proof without trusting privcheck.

DP-APVI's claim holds for all parameters, and the verdict is written as a certificate. A
program of the standard library alone follows the proof and accepts it, and rejects the
same proof for half of the noise.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def run(*arguments):
    command = [sys.executable, "-m", *arguments]
    ended = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    print(ended.stdout.splitlines()[0])


with TemporaryDirectory() as folder:
    file = Path(folder) / "dp-apvi.json"
    run("privcheck", "verify", "dp-apvi", "--certificate", str(file))
    run("privcheck_check", str(file))

    proof = json.loads(file.read_text(encoding="utf-8"))
    noise = proof["declared"]["releases"][0]["mechanism"]
    noise["variance"] = ["/", noise["variance"], 2]
    text = json.dumps(proof["declared"], sort_keys=True, separators=(",", ":"))
    proof["digest"] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    file.write_text(json.dumps(proof), encoding="utf-8")
    run("privcheck_check", str(file))
