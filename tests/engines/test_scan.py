"""Lines that hold some bytes: every way of finding them finds the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.engines import scan
from clew.engines.contract import Engine, LogKey
from clew.engines.files import FilesEngine
from clew.engines.filesystem import OsFileSystem
from clew.engines.wrap.scratch import Scratch
from clew.errors import NotFound
from clew.records.line import Line

NEEDLE = b'Title"'
PIECES = st.sampled_from([b'Title"', b"Titl", b'e"', b"\n", b"x" * 9, b"\r\n", b'"T', b"\0", b'TitleTitle"'])


def keys_of(engine: Engine) -> list[LogKey]:
    return [stat.key for stat in engine.list()]


def as_read(engine: Engine, keys: list[LogKey]) -> list[list[tuple[bytes, int]]]:
    return [[(line.data, line.position) for line in engine.read(key) if NEEDLE in line.data] for key in keys]


def found_in(engine: Engine, keys: list[LogKey]) -> list[list[tuple[bytes, int]]]:
    found = dict(engine.lines_with(keys, NEEDLE))
    assert list(found) == keys
    return [[(line.data, line.position) for line in lines_of(found[key])] for key in keys]


def lines_of(found: object) -> list[Line]:
    assert isinstance(found, list | tuple)
    return [*found]


def put(root: Path, number: int, raw: bytes) -> None:
    folder = root / "projects" / "-p"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl").write_bytes(raw)


@pytest.mark.parametrize("has_memmem", [True, False])
@given(pieces=st.lists(PIECES, max_size=60), chunk=st.integers(1, 40), most=st.integers(1, 200))
def test_a_search_of_the_bytes_finds_the_lines_that_reading_finds(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], chunk: int, most: int, has_memmem: bool
) -> None:
    root = tmp_path_factory.mktemp("scan")
    put(root, 1, b"".join(pieces))
    engine = FilesEngine(root, line_bytes_max=most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "CHUNK_BYTES", chunk)
        if not has_memmem:
            patch.setattr(scan, "_memmem", lambda: None)
        assert found_in(engine, keys_of(engine)) == as_read(engine, keys_of(engine))


def test_many_files_are_searched_by_several_threads_and_come_in_the_order_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "FILES_A_THREAD", 2)
    for number in range(40):
        put(tmp_path, number, b"x\n" * number + b'{"customTitle":"%d"}\n' % number + b"y" * number)
    engine = FilesEngine(tmp_path)
    keys = keys_of(engine)[::-1]
    assert found_in(engine, keys) == as_read(engine, keys)
    assert all(len(lines) == 1 for lines in found_in(engine, keys))


def test_a_log_that_is_gone_is_told_and_the_others_are_searched(tmp_path: Path) -> None:
    put(tmp_path, 1, b'"customTitle"\n')
    engine = FilesEngine(tmp_path)
    gone = LogKey("-p", "gone")
    found = dict(engine.lines_with([gone, *keys_of(engine)], NEEDLE))
    assert isinstance(found[gone], NotFound)
    assert len(lines_of(found[keys_of(engine)[0]])) == 1


def test_what_was_changed_in_memory_is_searched_there(tmp_path: Path) -> None:
    put(tmp_path, 1, b'{"customTitle":"a"}\n')
    put(tmp_path, 2, b'{"customTitle":"b"}\n')
    engine = Scratch(FilesEngine(tmp_path))
    keys = keys_of(engine)
    engine.extend(keys[0], [b'{"aiTitle":"c"}\n'], start=20)
    assert found_in(engine, keys) == as_read(engine, keys)
    assert [len(lines) for lines in found_in(engine, keys)] == [2, 1]


def test_a_line_longer_than_the_buffer_is_found_whole(tmp_path: Path) -> None:
    long = b"x" * 3 * scan.CHUNK_BYTES
    put(tmp_path, 1, b"a\n" + long + NEEDLE + long + b"\nb\n")
    engine = FilesEngine(tmp_path)
    assert found_in(engine, keys_of(engine)) == as_read(engine, keys_of(engine))
    results = scan.lines_with(OsFileSystem(), [engine.where(keys_of(engine)[0])], NEEDLE, line_bytes_max=len(long))
    assert results == [[]]
