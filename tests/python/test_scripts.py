"""The checks of the repository: each accepts a clean tree and fails on a violation."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))

import run_tests  # noqa: E402


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def check(script: str, root: Path) -> subprocess.CompletedProcess:
    return subprocess.run([str(SCRIPTS / script), str(root)], capture_output=True, text=True, check=False)


LAYERS = {
    "core/base/check.h": "#pragma once\n",
    "core/sym/expr.h": '#include "base/check.h"\n',
    "core/target/artifact.h": '#include "sym/expr.h"\n',
    "core/loop/kernel.h": '#include <vector>\n#include "sym/expr.h"\n',
    "core/axis/cut.h": '#include "loop/kernel.h"\n',
    "core/graph/graph.h": '#include "sym/expr.h"\n',
    "core/sched/tile.h": '#include "axis/cut.h"\n',
    "core/codegen/compile.h": '#include "loop/kernel.h"\n',
    "core/codegen/llvm/emit.cpp": '#include <llvm/IR/Module.h>\n#include "codegen/compile.h"\n',
    "core/runtime/plan.h": '#include "target/artifact.h"\n',
    "core/driver/compile.h": '#include "runtime/plan.h"\n#include "graph/graph.h"\n',
    "bindings/host.cpp": '#include <nanobind/nanobind.h>\n#include "host.h"\n#include "driver/compile.h"\n',
    "bindings/host.h": "#include <Python.h>\n",
    "tests/unit/sched/tile_test.cpp": '#include "cases.h"\n#include "sched/tile.h"\n',
}


def test_layers_accept_the_table(tmp_path):
    result = check("check_layers.py", write(tmp_path, LAYERS))
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("core/base/bad.h", '#include "sym/expr.h"', "base may not include sym"),
        ("core/graph/bad.h", '#include "loop/kernel.h"', "graph may not include loop"),
        ("core/loop/bad.h", '#include "graph/graph.h"', "loop may not include graph"),
        ("core/axis/bad.h", '#include "sched/tile.h"', "axis may not include sched"),
        ("core/codegen/llvm/bad.cpp", '#include "sched/tile.h"', "codegen/llvm may not include sched"),
        (
            "core/codegen/vm/bad.h",
            '#include "codegen/llvm/emit.cpp"',
            "codegen/vm may not include codegen/llvm",
        ),
        ("core/runtime/bad.h", '#include "loop/kernel.h"', "runtime may not include loop"),
        ("core/runtime/cpu/bad.h", "#  include <loop/kernel.h>", "runtime may not include loop"),
        ("core/sched/bad.cpp", "#include <llvm/IR/Module.h>", "only codegen/llvm may include llvm/"),
        ("core/driver/bad.cpp", "#include <Python.h>", "only bindings may include Python.h"),
        ("bindings/bad.cpp", "#include <torch/torch.h>", "only nobody may include torch/"),
        ("bindings/bad.cpp", '#include "sched/tile.h"', "bindings may not include sched"),
        ("core/sym/bad.cpp", '#include "expr.h"', "expr.h is not a file under core/"),
        ("core/misc/bad.h", "", "misc is not in the table"),
    ],
)
def test_layers_refuse(tmp_path, name, line, words):
    result = check("check_layers.py", write(tmp_path, LAYERS | {name: line + "\n"}))
    assert result.returncode == 1
    assert f"{name}:1: " in result.stdout
    assert words in result.stdout


def test_layers_refuse_an_empty_tree(tmp_path):
    assert check("check_layers.py", tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("name", "lines", "status", "words"),
    [
        ("core/a/b.cpp", 500, 0, ""),
        ("core/a/b.cpp", 501, 0, "worth a talk"),
        ("core/a/b.cpp", 1001, 1, "over the limit of 1000"),
        ("tests/unit/a.py", 1001, 1, "over the limit of 1000"),
        ("core/a/b.h", 251, 0, "worth a talk"),
        ("core/a/b.h", 401, 1, "over the limit of 400"),
        ("core/a/b.def", 5000, 0, ""),
        ("tests/golden/a.txt", 5000, 0, ""),
    ],
)
def test_sizes_of_files(tmp_path, name, lines, status, words):
    result = check("check_sizes.py", write(tmp_path, {name: "//\n" * lines, "core/x.cpp": "\n"}))
    assert result.returncode == status
    assert words in result.stdout
    assert (f"{name}: {lines} lines" in result.stdout) == bool(words)


@pytest.mark.parametrize(("files", "status"), [(5, 0), (8, 1)])
def test_size_of_the_python_package(tmp_path, files, status):
    package = {f"python/kerf/m{i}.py": "#\n" * 490 for i in range(files)}
    result = check("check_sizes.py", write(tmp_path, package))
    assert result.returncode == status
    assert ("python/ in all" in result.stdout) == bool(status)


def tracked(root: Path, files: dict[str, str]) -> Path:
    write(root, files | {".clang-format": (ROOT / ".clang-format").read_text()})
    (root / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("core/a.cpp", "int twice(int x) { return 2 * x; }\n", 0),
        ("core/a.cpp", "int twice( int x ){return 2*x;}\n", 1),
        ("core/a.h", "#pragma once\nint  twice(int x);\n", 1),
        ("python/a.py", 'GREETING = "hello"\n', 0),
        ("python/a.py", "GREETING = 'hello'\n", 1),
        ("python/a.py", "import os\n", 1),
    ],
)
def test_format(tmp_path, name, text, status):
    result = check("check_format.sh", tracked(tmp_path, {name: text}))
    assert result.returncode == status, result.stdout + result.stderr
    assert "1 files" in result.stdout


REPORT = """<testsuite>
<testcase name="a" status="run"><system-out>test cases: 9 |  9 passed | 0 failed |</system-out></testcase>
<testcase name="b" status="fail"><system-out>test cases:  3 |  1 passed | 2 failed |</system-out></testcase>
<testcase name="c" status="fail"><system-out>Segmentation fault</system-out></testcase>
<testcase name="d" status="run"><system-out>20 passed, 0 failed</system-out></testcase>
<testcase name="e" status="fail"><system-out>test cases: 4 | 4 passed | 0 failed |</system-out></testcase>
<testcase name="f" status="run"><system-out>nothing said</system-out></testcase>
</testsuite>"""


def test_summary_counts_the_cases_of_each_program():
    cases = run_tests.ElementTree.fromstring(REPORT).iter("testcase")
    counts = [tuple(run_tests.count_program(case)) for case in cases]
    assert counts == [(9, 0), (1, 2), (0, 1), (20, 0), (4, 1), (1, 0)]
