"""Worker processes: requests out, answers in, a line of JSON each. One that dies costs one answer."""

import json
import os
import select
import signal
import subprocess
import tempfile
from typing import Any

from kerf_npu_check.environment import PROGRAMS, PYTHON, WORKERS, clean_environment, home

Answer = dict[str, Any]


class Worker:
    """One process; it starts at the first request, and again after it died."""

    def __init__(self, interpreter: bool) -> None:
        path = f"{home() / PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}"
        self._environment = clean_environment(PATH=path, TRITON_DISABLE_LINE_INFO="1", OMP_NUM_THREADS="1")
        if interpreter:
            self._environment["TRITON_INTERPRET"] = "1"
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115

    def ask(self, request: dict[str, Any], limit: float) -> Answer:
        """The answer, or else a verdict that says how the process ended. `limit` is in seconds."""
        process = self._process = self._process or self._start()
        try:
            print(json.dumps(request), file=process.stdin, flush=True)
            late = not select.select([process.stdout], [], [], limit)[0]
            line = "" if late else process.stdout.readline()
        except BrokenPipeError:
            late, line = False, ""
        if line:
            return json.loads(line)
        if not late:
            process.wait()
        self.close()
        ending = f"gave no answer within {limit:.0f} s" if late else self._ending(process.returncode)
        return {"verdict": "fail", "message": f"the process {ending}"}

    def close(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._process = None

    def _start(self) -> subprocess.Popen[str]:
        self._errors.seek(0)
        self._errors.truncate()
        return subprocess.Popen(
            [home() / PYTHON, WORKERS / "serve.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=self._environment,
        )

    def _ending(self, status: int) -> str:
        if status == -signal.SIGSEGV:
            return "died of SIGSEGV: it touched memory outside of its buffers, or wrote to an input"
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        words = f": {lines[-1]}" if lines else ""
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"ended with {name}{words}"
