"""All 716 states at H = 20 on the declared path: 257 million noisy counts in less than 2 GB."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json
from pathlib import Path
from privcheck.runtime import registry
from privcheck.declare.declaration import resolve
from privcheck.runtime.results import RunRequest
from privcheck.runtime.setting import Setting

data = registry.environment("icu-sepsis").sample({"n": 20_000, "H": 20, "S": 716}, 0)
algorithm = registry.algorithm("dp-apvi")
declaration = algorithm.declare({})
result = algorithm.learn_from(
    RunRequest(
        setting=Setting(
            declaration=declaration,
            values=declaration.values({"H": 20, "S": 716, "A": 25}),
            options=resolve(algorithm.options, {}, owner="dp-apvi"),
        ),
        data=data,
    )
)
# not ru_maxrss, which a child starts with at its parent's
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({
    "gigabytes": int(peak.split()[1]) * 1024 / 1e9,
    "value": result.returns[0],
    "shape": result.policy.shape,
    "entries": len(result.ledger.entries),
}))
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is there on Linux only")
def test_716_states() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=900)
    found = json.loads(done.stdout)
    assert found["gigabytes"] < 2
    assert found["shape"] == [20, 716, 25]
    assert found["entries"] == 40
    assert 0 < found["value"] < 0.7923
