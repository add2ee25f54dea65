"""Work trees of git to review changes in, and what SARIF has to have."""

from __future__ import annotations

import json
import os
import re
import subprocess

QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
WHO = {f"GIT_{role}_{part}": "a@b" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
WHEN = {f"GIT_{role}_DATE": "2026-11-29T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}  # so that hashes are the same


def git(folder, *words):
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **QUIET, **WHO, **WHEN},
    )
    return done.stdout.strip()


def write(folder, texts):
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def make(folder, texts):
    """Returns a work tree with one commit on `main`, on a branch of its own."""
    write(folder, texts)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base")
    git(folder, "switch", "-q", "-c", "change")
    return folder


def commit(folder, texts):
    write(folder, texts)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


def require(value, **kinds):
    """Checks the types of the properties that a SARIF object has to have; others may be there too."""
    assert isinstance(value, dict)
    for name, kind in kinds.items():
        assert isinstance(value.get(name), kind), (name, value)


def check_sarif(text):
    """Checks what the standard's schema requires of the objects that are used, and what code scanning needs of them."""
    log = json.loads(text)
    require(log, version=str, runs=list)
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    (run,) = log["runs"]
    require(run, tool=dict, results=list)
    require(run["tool"]["driver"], name=str, version=str, rules=list)
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        require(rule, id=str, shortDescription=dict, defaultConfiguration=dict)
        require(rule["shortDescription"], text=str)
        assert rule["defaultConfiguration"]["level"] in {"none", "note", "warning", "error"}
    assert len({rule["id"] for rule in rules}) == len(rules)
    for one in run["invocations"]:
        require(one, executionSuccessful=bool)
    for result in run["results"]:
        require(result, ruleId=str, ruleIndex=int, level=str, message=dict, locations=list, partialFingerprints=dict)
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"].strip()
        (location,) = result["locations"]
        place = location["physicalLocation"]
        require(place["artifactLocation"], uri=str, uriBaseId=str)
        assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", place["artifactLocation"]["uri"])
        assert not place["artifactLocation"]["uri"].startswith("/")
        assert place["region"]["startLine"] >= 1
        assert all(isinstance(one, str) for one in result["partialFingerprints"].values())
    return run
