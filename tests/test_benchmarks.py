"""The benchmarks run, on tiny sizes. How long anything took is never asserted: that is for `make bench`."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

import clew
from benchmarks.__main__ import main
from benchmarks.corpus import write_many, write_one
from benchmarks.harness import MEGABYTES, Bench, Goal, Measured, run_child, table
from benchmarks.table import SUBJECTS
from clew.transcript.health import examine

ROOT = Path(__file__).resolve().parent.parent
HARNESS = {"__init__", "__main__", "corpus", "harness", "table"}
"""Files of `benchmarks/` that are no subjects."""
TINY = ["--rounds", "1", "--rows", "60", "--megabytes", "0.2", "--appends", "8"]


def test_every_subject_has_a_line_in_the_table_and_every_line_a_subject() -> None:
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - HARNESS
    assert {place.partition(":")[0] for place in SUBJECTS.values()} == {f"benchmarks.{name}" for name in files}


def test_all_subjects_are_measured_in_one_run_and_told_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(TINY)
    lines = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == [
        "what", "ours", "baseline", "ratio", "goal", "met",
    ]  # fmt: skip
    assert len({len(line) for line in lines}) == 1
    for what in ("decode", "chain and messages", "peak memory", "import clew", "clew --help"):
        assert any(line.startswith(f"| {what}") for line in lines)


def test_a_corpus_made_elsewhere_stands_in_for_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_many(tmp_path, size=300_000)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl"))
    bench = Bench(tmp_path / "run", corpus=tmp_path)
    assert bench.one_session() == bench.many_sessions() == tmp_path
    main(["streaming", "--corpus", str(tmp_path), "--rounds", "1"])
    assert f"streaming {size / 1e6:.0f} MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["speed"], "there is no subject speed: choose from decoding"),
        (["--corpus", "/nowhere"], "/nowhere is no config directory"),
        (["--rounds", "0"], "--rounds 0: at least one is needed"),
    ],
)
def test_a_bad_call_says_what_is_wrong(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err


def test_the_ratio_is_of_the_best_values_and_decides_where_the_goal_is_one() -> None:
    half = Measured("half", [0.3, 0.1], [0.4, 0.2, 0.9], "raw", Goal(0.7, of_ratio=True))
    assert (half.ratio, half.is_met) == (0.5, True)
    assert Measured("too much", [61e6], goal=Goal(60e6), unit=MEGABYTES).is_met is False
    assert Measured("just enough", [60e6], goal=Goal(60e6), unit=MEGABYTES).is_met is True
    assert Measured("without a goal", [1.0]).is_met is None
    assert table([half]).splitlines()[2] == (
        "| half | 100.0 (200.0) ms | 200.0 (400.0) ms raw | 0.50x | <= 0.70x | yes |"
    )


def test_every_work_is_measured_once_a_round_and_one_round_is_not_counted(tmp_path: Path) -> None:
    done: list[str] = []
    taken = Bench(tmp_path, rounds=2).seconds(ours=lambda: done.append("ours"), raw=lambda: done.append("raw"))
    assert done == ["ours", "raw"] * 3
    assert [len(values) for values in taken.values()] == [2, 2]


def test_processor_time_is_that_of_the_work_and_of_its_children_alone(tmp_path: Path) -> None:
    bench, script = Bench(tmp_path, rounds=1), "sum(range(300_000))"
    taken = bench.processor_seconds(waits=lambda: Event().wait(0.2), works=lambda: run_child("-c", script))
    assert taken["waits"][0] < 0.1
    assert taken["works"][0] > 0.001


def test_the_generated_sessions_are_whole_and_the_same_every_time(tmp_path: Path) -> None:
    write_one(tmp_path / "a", rows=2_000)
    write_one(tmp_path / "b", rows=2_000)
    (one,), (two,) = (sorted((tmp_path / name).rglob("*.jsonl")) for name in "ab")
    assert one.read_bytes() == two.read_bytes()
    session = clew.open(tmp_path / "a").latest()
    chain = session.chain()
    assert not session.malformed
    assert not examine(session.rows())
    assert session.head.why == "the head record"
    # A long chain, with branches beside it and parallel results put back into it.
    assert 0.5 < len(chain.records) / len(session.tree.records) < 1
    assert chain.put_back
    assert 1_000 < one.stat().st_size / 2_000 < 1_600


def test_many_sessions_have_the_size_that_was_asked_for(tmp_path: Path) -> None:
    write_many(tmp_path, size=1_000_000)
    sizes = sorted(path.stat().st_size for path in tmp_path.glob("projects/*/*.jsonl"))
    assert 0.9e6 < sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl")) < 1.5e6
    assert sizes[-1] > 0.2e6
    assert len([*tmp_path.rglob("agent-*.jsonl")]) == len(sizes)
