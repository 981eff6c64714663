"""What a user learns about a compile: records, explain, the log, dumps, and the replay of a failed one."""

import json
import logging
import os
import re
import shlex
import subprocess
import sys

import kerf
import pytest
import torch
from kerf import _core, debug, fx_import, opt, sizes
from torch._dynamo.exc import BackendCompilerFailed


def _row_softmax(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    scores = x * scale
    return torch.softmax(scores, -1)


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(16, 64)
        self.norm = torch.nn.BatchNorm1d(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.norm(self.layer(x)), -1)


# Records


def test_record_of_a_fused_kernel():
    torch.compile(_row_softmax, backend="kerf")(torch.randn(32, 64), torch.randn(64))
    (record,) = kerf.compilations()
    assert record.target.startswith("cpu (")
    assert (record.kernels, record.unique_kernels, record.externs) == (1, 1, ())
    (kernel,) = record.kernel_records
    x, scale = 32 * 64 * 4, 64 * 4
    assert (kernel.bytes_read, kernel.bytes_written) == (x + scale, x)
    assert record.bytes == {"kernels": 2 * x + scale, "library": 0, "other_externs": 0}
    assert record.peak_bytes >= x
    assert any("scores = x * scale" in line for line in kernel.sources)
    assert any("torch.softmax(scores, -1)" in line for line in kernel.sources)
    whys = [why for _, why in kernel.members]
    assert "the first of the group" in whys
    assert any("never in memory" in why for why in whys)


def test_seconds_have_every_phase_and_a_total():
    torch.compile(_row_softmax, backend="kerf")(torch.randn(32, 64), torch.randn(64))
    (record,) = kerf.compilations()
    assert tuple(record.seconds) == debug.PHASES
    assert all(seconds >= 0 for seconds in record.seconds.values())
    phases = sum(seconds for phase, seconds in record.seconds.items() if phase != "total")
    assert 0.5 * record.seconds["total"] <= phases <= record.seconds["total"] * 1.001
    assert record.seconds["build"] > record.seconds["codegen"] > 0


def test_equal_kernels_count_once():
    torch.compile(lambda a, b: (torch.exp(a), torch.exp(b) @ b), backend="kerf")(
        torch.randn(128, 128), torch.randn(128, 128)
    )
    (record,) = kerf.compilations()
    assert record.kernels == len(record.kernel_records)
    assert 1 <= record.unique_kernels <= record.kernels


def test_bytes_are_of_the_traced_sizes():
    compiled = torch.compile(lambda x: torch.exp(x) + 1, backend="kerf", dynamic=True)
    compiled(torch.randn(300, 200))
    (record,) = kerf.compilations()
    assert record.bytes["kernels"] == 2 * 300 * 200 * 4
    assert record.peak_bytes >= 300 * 200 * 4
    (kernel,) = record.kernel_records
    assert kernel.bytes_written == 300 * 200 * 4


def test_a_gather_moves_no_more_than_it_reads():
    torch.compile(lambda t, i: t[i] + 1, backend="kerf")(torch.randn(10000, 16), torch.arange(4))
    (record,) = kerf.compilations()
    assert record.bytes["kernels"] == (4 * 16 * 4) * 2 + 4 * 8


def test_adding_stores_read_too():
    torch.compile(lambda t, i: t.index_put((i,), t[:4] * 2, accumulate=True), backend="kerf")(
        torch.randn(100, 16), torch.arange(4)
    )
    (record,) = kerf.compilations()
    rows, index = 4 * 16 * 4, 4 * 8
    adding = record.kernel_records[-1]
    assert (adding.bytes_read, adding.bytes_written) == (2 * rows + index, rows)


def test_library_calls_by_design_and_calls_without_a_lowering():
    def function(x: torch.Tensor, weight: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, ...]:
        image = torch.nn.functional.conv2d(x, weight)
        attended = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        return image, attended, q @ q.mT, torch.lgamma(q), torch.sort(q)[0]

    inputs = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3), torch.randn(2, 2, 8, 16)
    torch.compile(function, backend="kerf")(*inputs)
    (record,) = kerf.compilations()
    reasons = {extern.op.split(".")[1]: extern for extern in record.externs}
    assert reasons["convolution"].reason == "convolution: library call by design"
    assert reasons["bmm"].reason == "matrix product: library call by design"
    attention = next(extern for op, extern in reasons.items() if "attention" in op)
    assert attention.reason == "attention: library call by design"
    assert "no lowering for aten.sort" in reasons["sort"].reason
    for extern in record.externs:
        assert "test_reports.py" in extern.source
        assert extern.is_library == ("by design" in extern.reason)
        assert extern.bytes > 0
    assert "scaled_dot_product_attention(q, q, q)" in attention.source
    elements = sum(tensor.numel() for tensor in (*inputs[:2], torch.empty(2, 4, 6, 6)))
    assert reasons["convolution"].bytes == 4 * elements
    assert record.bytes["library"] == sum(e.bytes for e in record.externs if e.is_library)
    assert record.bytes["other_externs"] == sum(e.bytes for e in record.externs if not e.is_library)


@pytest.mark.parametrize("op", ["aten.lgamma.default", "aten.cummax.default", "aten.upsample_linear1d.vec"])
def test_no_library_call_by_likeness_of_names(op):
    assert not _core.is_library_call(op)
    assert _core.is_library_call("aten._scaled_mm.default")


def test_source_has_every_stage():
    torch.compile(_row_softmax, backend="kerf", dynamic=True)(torch.randn(32, 64), torch.randn(64))
    (record,) = kerf.compilations()
    text = record.source()
    for stage in ("import", "lower", "fuse_kernels", "schedule_kernels", "codegen", "plan"):
        assert re.search(rf"^# \d\d-{stage}$", text, re.MULTILINE)
    assert "softmax" in record.graph_text
    if _core.code_generator() != "interpreter":
        assert "define" in text


def test_to_dict_is_plain():
    torch.compile(_Model(), backend="kerf")(torch.randn(8, 16)).sum().backward()
    for record in kerf.compilations():
        plain = json.loads(json.dumps(record.to_dict()))
        assert plain["name"] == record.name
        assert plain["bytes"] == record.bytes
        assert plain["externs"][0]["reason"] == record.externs[0].reason


def test_a_graph_that_torch_runs_has_a_record():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch.compile(lambda x: (x @ x).nonzero() + 1, backend="kerf")(torch.eye(4))
    (record,) = kerf.compilations()
    assert record.target == "torch"
    assert record.kernels == 0
    assert record.bytes["library"] == 3 * 64
    assert record.bytes["kernels"] == 0
    assert "nonzero" in record.source()
    kerf.explain()


def test_source_of_a_module_without_a_line():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Softmax(-1))
    torch.compile(model, backend="kerf")(torch.randn(2, 4))
    (record,) = kerf.compilations()
    assert record.externs[0].source == "module 0 (Linear)"
    assert record.kernel_records[0].sources == ("module 1 (Softmax)",)


def test_reset_forgets():
    torch.compile(lambda x: x + 1, backend="kerf")(torch.ones(3))
    kerf.reset()
    assert kerf.compilations() == []


# explain


def test_explain_of_a_model(capsys):
    model = _Model()
    inputs = torch.randn(8, 16)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_state = torch.get_rng_state()
    kerf.explain(model, inputs)
    text = capsys.readouterr().out
    assert "graph 0 forward, cpu" in text
    assert "graph 0 backward, cpu" in text
    assert "never in memory" in text
    assert "matrix product: library call by design" in text
    assert "test_reports.py" in text
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(random_state, torch.get_rng_state())
    assert max(map(len, text.splitlines())) <= 140


def test_explain_again_and_of_a_compiled_model(capsys):
    compiled = torch.compile(_Model(), backend="kerf")
    compiled(torch.randn(8, 16))
    for _ in range(10):  # more than the recompiles that Dynamo allows of one function
        kerf.explain(compiled, x=torch.randn(8, 16))
        assert "backward" in capsys.readouterr().out


def test_explain_of_nothing(capsys):
    kerf.explain()
    assert "nothing was compiled" in capsys.readouterr().out


# The log


def test_log(caplog):
    with caplog.at_level(logging.DEBUG, logger="kerf"):
        torch.compile(lambda x: torch.sort(torch.exp(x))[0], backend="kerf")(torch.randn(5))
    text = caplog.text
    assert "1 kernels (1 unique), 1 externs" in text
    assert "aten.sort.default is not compiled: no lowering" in text


def test_log_from_the_environment():
    script = "import torch; torch.compile(lambda x: x + 1, backend='kerf')(torch.ones(3))"
    environment = os.environ | {"KERF_LOG": "loud"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert "kerf: KERF_LOG=loud is unknown: debug, info, warning or error; info is used" in done.stderr
    assert "kerf: graph 0 inference: " in done.stderr


# Dumps


def test_dumps_of_forward_and_backward(tmp_path):
    torch.compile(_Model(), backend="kerf", options={"dump": str(tmp_path)})(
        torch.randn(8, 16)
    ).sum().backward()
    forward, backward = sorted(tmp_path.iterdir())
    assert forward.name.endswith("-forward")
    assert backward.name.endswith("-backward")
    stages = [path.name.removesuffix(".txt") for path in sorted(backward.iterdir())]
    assert [stage[:2] for stage in stages] == [f"{i:02}" for i in range(len(stages))]
    assert stages[0] == "00-import"
    assert stages[-1].endswith("-plan")


def test_dumps_replay(tmp_path, capsys):
    """Each stage's text, run through the next pass, is the next stage's text."""
    torch.compile(_row_softmax, backend="kerf", options={"dump": str(tmp_path)}, dynamic=True)(
        torch.randn(32, 64), torch.randn(64)
    )
    (folder,) = tmp_path.iterdir()
    paths = sorted(path for path in folder.iterdir() if path.name[3:-4] not in ("codegen", "plan"))
    for path, following in zip(paths[:-2], paths[1:-1], strict=True):
        assert opt.main([f"--passes={following.name[3:-4]}", str(path)]) == 0
        got = capsys.readouterr().out
        assert opt.main(["--passes=roundtrip", str(following)]) == 0
        assert got == capsys.readouterr().out, following.name
    assert opt.main(["--passes=compile", str(paths[0])]) == 0
    assert capsys.readouterr().out.startswith("plan")


def test_nothing_is_overwritten(tmp_path):
    for _ in range(2):
        torch._dynamo.reset()
        kerf.reset()
        torch.compile(lambda x: x + 1, backend="kerf", options={"dump": str(tmp_path)})(torch.ones(3))
    assert len(list(tmp_path.iterdir())) == 2


def test_dumps_that_cannot_be_written(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    options = {"dump": str(tmp_path / "file")}
    for _ in range(2):
        torch._dynamo.reset()
        result = torch.compile(lambda x: x + 1, backend="kerf", options=options)(torch.ones(3))
        assert torch.equal(result, torch.full((3,), 2.0))
    assert caplog.text.count("no stages are dumped") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_dumps_on_a_full_disk(tmp_path, caplog, monkeypatch):
    def full(parent: str, kind: str) -> str:
        (tmp_path / "00-import.txt").symlink_to("/dev/full")
        return str(tmp_path)

    monkeypatch.setattr(debug, "dump_folder", full)
    result = torch.compile(lambda x: x + 1, backend="kerf", options={"dump": "x"})(torch.ones(3))
    assert torch.equal(result, torch.full((3,), 2.0))
    assert "stages are not dumped: cannot write" in caplog.text


# Replay of a failed compile


def _command(error: BaseException) -> list[str]:
    (line,) = [line for line in str(error).splitlines() if line.startswith("This compile is replayed by: ")]
    return shlex.split(line.removeprefix("This compile is replayed by: "))


def _failing(function, *inputs, **options) -> BaseException:
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(function, backend="kerf", options=options)(*inputs)
    return caught.value.inner_exception


def _every_input_is_the_first(monkeypatch) -> str:
    real = fx_import._Importer.input
    monkeypatch.setattr(fx_import._Importer, "input", lambda self, x, _, ends: real(self, x, 0, ends))
    return "in pass import"


def _sizes_of_absent_dimensions(monkeypatch) -> str:
    real = sizes.SizeTable.add_argument

    def add_argument(self, value, position, dim):
        real(self, value, position, dim + 7)

    monkeypatch.setattr(sizes.SizeTable, "add_argument", add_argument)
    return "in pass make_plan"


@pytest.mark.parametrize("fault", [_every_input_is_the_first, _sizes_of_absent_dimensions])
def test_failed_compile_is_replayed(monkeypatch, tmp_path, capsys, fault):
    where = fault(monkeypatch)
    x = torch.ones(3, 5)
    torch._dynamo.mark_dynamic(x, 0)
    error = _failing(lambda x, y: torch.sort(x + y)[0], x, torch.ones(5), dump=str(tmp_path))
    assert isinstance(error, kerf.InternalError)
    assert where in str(error)
    monkeypatch.undo()
    what = str(error).splitlines()[0]
    assert opt.main(_command(error)[3:]) == 1
    assert what in capsys.readouterr().err
    (folder,) = tmp_path.iterdir()
    (file,) = folder.glob("kerf-failed-*.txt")
    assert what in file.read_text()
    assert "aten.sort" in file.read_text()


def test_failed_import_is_replayed(monkeypatch):
    """The fault: a call is given an argument that its schema does not allow."""
    real = fx_import._Importer.schema_arguments

    def wrong(self, node):
        arguments, keyword_only = real(self, node)
        return [arguments[0], "no number", *arguments[2:]], keyword_only

    monkeypatch.setattr(fx_import._Importer, "schema_arguments", wrong)
    error = _failing(lambda x: torch.exp(x).sum(0), torch.ones(3, 4))
    assert isinstance(error, kerf.InternalError)
    monkeypatch.undo()
    assert "aten." in str(error)
    done = subprocess.run(_command(error), capture_output=True, text=True)  # as the user would
    assert done.returncode == 1
    assert str(error).splitlines()[0] in done.stderr
    os.remove(_command(error)[-1])


def test_failed_compile_with_no_place_for_the_file(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    error = debug.with_replay(kerf.InternalError("what"), "compile", "graph", str(tmp_path / "file"))
    assert isinstance(error, kerf.InternalError)
    assert str(error).startswith("what\n(the graph could not be written for a replay: ")


# python -m kerf.opt


def test_opt_lists_and_runs_passes(capsys, tmp_path):
    assert opt.main(["--list"]) == 0
    assert "fuse_kernels" in capsys.readouterr().out
    torch.compile(_row_softmax, backend="kerf")(torch.randn(32, 64), torch.randn(64))
    path = tmp_path / "graph.txt"
    path.write_text(kerf.compilations()[0].graph_text)
    assert opt.main(["--passes=expand_composites,lower,fuse_kernels", str(path)]) == 0
    assert capsys.readouterr().out.startswith("program")
    assert opt.main(["--passes=nothing", str(path)]) == 1
    assert "no pass 'nothing'" in capsys.readouterr().err
    assert opt.main([str(tmp_path / "absent")]) == 1
    assert "absent" in capsys.readouterr().err


def test_profile_counts_every_step_of_every_call() -> None:
    torch._dynamo.reset()
    kerf.reset()
    layer = torch.nn.Linear(16, 16)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(layer(x), -1) + 1

    compiled = torch.compile(function, backend="kerf")
    x = torch.randn(8, 16)
    with torch.no_grad():
        compiled(x)
        with kerf.profile() as profile:
            for _ in range(3):
                compiled(x)
        compiled(x)
    (record,) = kerf.compilations()
    ours = [step for step in profile.steps if step.graph == record.name]
    assert sorted(id(step.what) for step in ours) == sorted(
        id(what) for what in (*record.kernel_records, *record.externs)
    )
    assert all(step.calls == 3 and step.seconds > 0 for step in ours)
    assert [step.is_library for step in ours].count(True) == 1
    assert "aten.addmm" in str(profile)


def test_profile_starts_anew() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x * 2 + 1, backend="kerf")
    x = torch.randn(8)
    counts = []
    for _ in range(2):
        with kerf.profile() as profile:
            compiled(x)
        counts.append([step.calls for step in profile.steps])
    assert counts == [[1], [1]]
