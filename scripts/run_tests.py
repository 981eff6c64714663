#!/usr/bin/env python3
"""Runs every test and check of the built project and ends with one line, `N passed, N failed`, that counts
them all: doctest cases, golden files, Python tests, and each check as one.

A part that fails does not stop the others. Exit status 0 means that everything ran and passed.
"""

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CHECKS = ("scripts/check_layers.py", "scripts/check_sizes.py", "scripts/check_format.sh")

DOCTEST = re.compile(r"test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed")
GOLDEN = re.compile(r"(\d+) passed, (\d+) failed")


class Count(NamedTuple):
    passed: int = 0
    failed: int = 0

    def __add__(self, other):
        return Count(self.passed + other.passed, self.failed + other.failed)


def run(command: list[str], **environment: str) -> bool:
    print(f"\n== {' '.join(command)}", flush=True)
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode == 0


def count_program(case: ElementTree.Element) -> Count:
    """The cases of one C++ test program by its own words; one that died is a failure by itself."""
    output = case.findtext("system-out") or ""
    words = DOCTEST.search(output) or GOLDEN.search(output)
    count = Count(int(words[1]), int(words[2])) if words else Count()
    good = case.get("status") == "run"
    if not good and count.failed == 0:
        return count + Count(0, 1)
    return count if words else Count(1, 0)


def run_ctest(report: Path) -> Count:
    everything = ["--test-output-size-passed", "10000000", "--test-output-size-failed", "10000000"]
    ok = run(["ctest", "--preset", "release", "--output-junit", str(report), *everything])
    if not report.exists():
        return Count(0, 1)
    count = sum(map(count_program, ElementTree.parse(report).iter("testcase")), Count())
    return count if ok or count.failed else count + Count(0, 1)


def run_pytest(report: Path) -> Count:
    ok = run([sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"])
    if not report.exists():
        return Count(0, 1)
    suites = list(ElementTree.parse(report).iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return Count(total - failed - skipped, failed if ok or failed else 1)


def run_check(script: str) -> Count:
    return Count(1, 0) if run([str(ROOT / script)]) else Count(0, 1)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        parts = [run_ctest(Path(folder) / "ctest.xml"), run_pytest(Path(folder) / "pytest.xml")]
    parts += [run_check(script) for script in CHECKS]
    total = sum(parts, Count())
    print(f"\n{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed or 0 in (sum(parts[0]), sum(parts[1])) else 0


if __name__ == "__main__":
    sys.exit(main())
