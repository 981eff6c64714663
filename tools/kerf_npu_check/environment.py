"""What the levels run in: pinned packages of PyPI, one program of Debian, a C library and a stub of our own.

All lies in one folder, `~/.cache/kerf/npu-check` or KERF_NPU_CHECK_DIR, and nothing outside of it is changed:
triton-ascend has the import name of triton.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

INSTALL_LINE = "kerf npu-check --install"
WORKERS = Path(__file__).parent / "workers"

_TRITON = ("triton-ascend==3.2.0", "pybind11==3.1.0", "torch==2.13.0", "numpy==2.3.5", "llvmlite==0.50.0")
_BISHENGIR = ("ascendnpu-ir==1.2.0",)
_MLIR = "mlir-19-tools"
# CPython releases that all of these have wheels for.
_PYTHONS = ((3, 10), (3, 11))

# Also where the library itself calls nothing of it: compiled kernels do.
_LIBM = ("-Wl,--no-as-needed", "-lm")

# bishengir-compile asks its last stage, which is closed, for a version in this form and then for a file.
_HIVMC = """#!/bin/sh
[ "$1" = --version ] && { echo "hivmc 1.2.0 (8796a8ac1508 2026-07-29)"; exit 0; }
while [ $# -gt 0 ]; do
  [ "$1" = -o ] && : > "$2"
  shift
done
"""


class InstallError(Exception):
    """A part could not be installed; the message says which command failed and what it said."""


def home() -> Path:
    chosen = os.environ.get("KERF_NPU_CHECK_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache/kerf/npu-check"


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment of a child process: without what would lead its Python to other packages."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TRITON_", "VIRTUAL_ENV"))}
    return kept | extra


class Part(NamedTuple):
    """One thing to install, and what it costs in megabytes."""

    name: str
    what: str
    pins: str
    download: int
    disk: int
    proof: str  # what is there in the home when the part is
    install: Callable[[Path], None]

    def stamp(self) -> Path:
        return home() / f"{self.name}.installed"

    def installed(self) -> bool:
        stamp = self.stamp()
        return stamp.is_file() and stamp.read_text() == self.pins and (home() / self.proof).exists()


# Where things are once installed, relative to the home.
PYTHON = "triton/bin/python"
COMPILERS = "bishengir/ascendnpuir/bin"  # bishengir-compile, bishengir-opt
PROGRAMS = "bin"  # mlir-translate, the stub of hivmc
TRANSLATE = "bin/mlir-translate"
SHIM = "shim.so"


# How each part comes


def _run(command: Iterable[str | Path], **options: object) -> None:
    words = [str(word) for word in command]
    result = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean_environment(), **options
    )
    if result.returncode:
        said = "\n".join(result.stdout.strip().splitlines()[-12:])
        raise InstallError(f"{' '.join(words)}\nfailed with status {result.returncode}:\n{said}")


def _find_python() -> str:
    """A Python that the packages have wheels for; Kerf's own may be newer."""
    names = [sys.executable, *(f"python{major}.{minor}" for major, minor in reversed(_PYTHONS))]
    question = "import ensurepip, sys; print(*sys.version_info[:2])"
    for name in names:
        try:
            asked = subprocess.run([name, "-c", question], capture_output=True, text=True)
        except OSError:
            continue
        if asked.returncode == 0 and tuple(map(int, asked.stdout.split())) in _PYTHONS:
            return name
    wanted = " or ".join(f"{major}.{minor}" for major, minor in _PYTHONS)
    raise InstallError(f"triton-ascend 3.2.0 has wheels for Python {wanted} (with venv); none is in PATH")


def _pip(*arguments: str | Path) -> None:
    _run([home() / PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments])


def _install_triton(root: Path) -> None:
    shutil.rmtree(root / "triton", ignore_errors=True)
    _run([_find_python(), "-m", "venv", root / "triton"])
    _pip(*_TRITON)


def _install_bishengir(root: Path) -> None:
    shutil.rmtree(root / "bishengir", ignore_errors=True)
    _pip("--no-deps", "--target", root / "bishengir", *_BISHENGIR)


def _install_translate(root: Path) -> None:
    """The one program, out of the package and without installing it; it needs libllvm19, as Kerf does."""
    program = root / TRANSLATE
    if not program.exists():
        if not shutil.which("apt-get"):
            raise InstallError(f"this is no Debian system: put mlir-translate of MLIR 19 at {program}")
        with tempfile.TemporaryDirectory() as folder:
            _run(["apt-get", "-q", "download", _MLIR], cwd=folder)
            _run(["dpkg", "-x", next(Path(folder).glob("*.deb")), folder])
            shutil.copy(Path(folder) / "usr/lib/llvm-19/bin/mlir-translate", program)
    _run([program, "--version"])


def _install_own(root: Path) -> None:
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise InstallError("no C compiler (cc, gcc or clang) is in PATH")
    _run([compiler, "-O2", "-shared", "-fPIC", "-o", root / SHIM, WORKERS / "shim.c", *_LIBM])
    for name in ("hivmc", "hivmc-a5"):
        (root / PROGRAMS / name).write_text(_HIVMC)
        (root / PROGRAMS / name).chmod(0o755)


_OWN_SOURCES = _HIVMC + platform.machine() + (WORKERS / "shim.c").read_text()
_OWN_PINS = hashlib.sha256(_OWN_SOURCES.encode()).hexdigest()
PARTS = (
    Part("triton", "triton-ascend, torch, numpy", " ".join(_TRITON), 260, 1300, PYTHON, _install_triton),
    Part("bishengir", "ascendnpu-ir", " ".join(_BISHENGIR), 161, 533, COMPILERS, _install_bishengir),
    Part("translate", f"of Debian's {_MLIR}", _MLIR, 51, 23, TRANSLATE, _install_translate),
    Part("own", "a C library and a stub of hivmc", _OWN_PINS, 0, 1, SHIM, _install_own),
)
NEEDS = {
    "L1": ("triton",),
    "L2": ("triton",),
    "L2b": ("triton", "bishengir", "translate", "own"),
    "L3": ("triton", "bishengir", "own"),
}


def missing(level: str) -> list[str]:
    """Names of the parts that `level` lacks."""
    here = {part.name for part in PARTS if part.installed()}
    return [name for name in NEEDS.get(level, ()) if name not in here]


def install(tell: Callable[[str], None]) -> None:
    """Installs what is not there yet; `tell` gets a line a part. Raises InstallError."""
    root = home()
    (root / PROGRAMS).mkdir(parents=True, exist_ok=True)
    with open(root / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two installations at once would mix their files
        for part in PARTS:
            if part.installed():
                tell(f"{part.name}: there ({part.what})")
                continue
            tell(f"{part.name}: {part.what}; {part.download} MB to load, {part.disk} MB on disk ...")
            part.stamp().unlink(missing_ok=True)
            part.install(root)
            part.stamp().write_text(part.pins)
    tell(f"installed in {root}")
