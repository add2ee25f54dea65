"""A command on a terminal, where progress bars tick."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

import pytest


@pytest.mark.slow
def test_ticking_bars_are_not_taken_for_what_an_agent_prints(tmp_path):
    # of `make demo` with fewer trials: most of its lockstep passes while what the agent prints is captured
    command = [sys.executable, "-m", "privcheck", "check", "dp-apvi", "--data", "icu-sepsis", "--trials", "1000"]
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (24, 100))  # without a size a bar has no room
    with subprocess.Popen([*command, "--replicates", "1"], stdin=its, stdout=its, stderr=its, cwd=tmp_path) as running:
        os.close(its)
        told = bytearray()
        while part := _read(ours):
            told += part
    os.close(ours)
    said = told.decode("utf-8", "replace")
    assert running.returncode == 0, said
    assert "HOLDS" in said
    assert "\r" in said.replace("\r\n", "\n")  # a bar was drawn


def _read(device):
    """What a terminal's other side wrote; nothing once it is closed, which Linux reports as an error."""
    try:
        return os.read(device, 1 << 16)
    except OSError:
        return b""
