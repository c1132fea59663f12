"""The script of checks for jobs of CI, with a stand-in for h3sim, and the container that has it."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tools" / "container"


@pytest.mark.parametrize(
    ("arguments", "code", "runs"),
    [
        ("-u https://h/x -2 haproxy", 0, ["prioritization-test https://h/x --like haproxy"]),
        (
            "-u https://h/x -2 haproxy -3 quic-go,quiche -k -d ./bad",
            1,
            [
                "prioritization-test https://h/x --like haproxy --insecure",
                "prioritization-test https://h/x --http3 --like quic-go,quiche --insecure",
                "conform -- ./bad",
            ],
        ),
        ("-2 haproxy", 2, []),
        ("-u https://h/x", 2, []),
        ("-x", 2, []),
    ],
)
def test_the_checks_end_with_the_worst_exit_code(
    tmp_path: Path, arguments: str, code: int, runs: list[str]
) -> None:
    stand_in = tmp_path / "h3sim"
    stand_in.write_text('#!/bin/sh\ncase "$*" in *bad*) exit 1 ;; esac\n', "utf-8")
    stand_in.chmod(0o755)
    found = subprocess.run(
        ["/bin/sh", str(FOLDER / "checks.sh"), *arguments.split()],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == code
    assert re.findall(r"^== h3sim (.*)$", found.stdout, re.MULTILINE) == runs


def test_the_container_installs_extras_that_there_are() -> None:
    (extras,) = re.findall(r"\[([a-z,]+)\]", (FOLDER / "Dockerfile").read_text("utf-8"))
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    assert {*extras.split(",")} <= {*setup["options.extras_require"]}
