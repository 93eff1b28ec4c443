"""A fork has the conversation at the point, or is refused by name: of every odd file, and of the sample sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clew import NotFound, Session, Store, UsageError
from clew.defaults import sample_dir
from clew.engines.contract import LogKey
from clew.engines.files import FilesEngine
from clew.engines.memory import MemoryEngine
from clew.engines.sqlite import SqliteEngine
from clew.forks.places import _quick_head
from odd_files import SUBJECTS
from stores import ticking

KEY = LogKey("-home-a-project", "00000000-0000-4000-8000-00000000000f")
ROW_LATER = {
    "a kept row that comes again on the turn",
    "a local command written before its answer, newer",
    "a local command written before its answer, older",
    "a row of the answer beside the chain, a sidechain row of it on the chain",
    "a row of the answer beside the chain, earlier in the file",
    "a row of the answer hung on much later",
    "a row beside the chain before both rows of its answer",
    "a row beside the chain before rows with a prompt",
    "a row beside the chain before rows with a result",
    "an answered call of the answer beside the chain, before the others",
    "an answer whose rows stand on both sides of a compaction",
    "calls beside each other on the prompt, a head record on the other",
    "one message id in answers of two branches, the older pointed at",
    "one message id in the calls of two branches",
    "the note of a compaction lists a row and one that comes later behind it",
    "three rows of one answer, each on the prompt",
    "two calls in two rows, a result long after without a parent",
    "two local commands written before their answer",
}
"""Rows in an order in which none is appended, and points in the middle of an answer that is on no chain: what belongs
to the point stands behind it. The fork has the conversation as it was when the row of the point was the last.
"""


def sessions_of(subject: str) -> Iterator[tuple[str, Store, Session]]:
    for name, content in SUBJECTS[subject].items():
        engine = MemoryEngine()
        engine.extend(KEY, [content], start=0, make=True)
        store = Store(engine, clock=ticking())
        yield name, store, store.session(KEY.session)


def said(session: Session, at: str | None = None) -> object:
    return [(message.role, message.content) for message in session.messages(at)]


def points_of(session: Session) -> list[str | None]:
    return [None, *(uuid for uuid in session.tree.records if uuid)]


def fork_or_none(session: Session, at: str | None) -> Session | None:
    """None where it is refused, which says what to do."""
    with suppress(UsageError, NotFound):
        return session.fork(at, kind="attached")
    return None


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_fork_of_an_odd_file_has_the_conversation_or_is_refused(subject: str) -> None:
    wrong, forks = set(), 0
    for name, store, session in sessions_of(subject):
        for at in points_of(session):
            child = fork_or_none(session, at)
            if child is None:
                continue
            forks += 1
            # At the head up_to= leaves out what is put back behind it; a fork there has it, as the session itself.
            wanted = [said(session, at), *([said(session)] if at == session.head.uuid else [])]
            if said(Store(store.engine, clock=ticking()).session(child.id)) not in wanted:
                wrong.add(name)
    assert forks > 10
    assert wrong <= ROW_LATER


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_head_by_the_last_rows_is_the_head(subject: str) -> None:
    for name, store, session in sessions_of(subject):
        head = _quick_head(store.engine, KEY, ())
        assert head in (None, session.head.uuid), name


def test_forks_of_real_sessions_have_their_conversation(tmp_path: Path) -> None:
    sample = FilesEngine(sample_dir())
    store = Store(SqliteEngine(tmp_path / "s.db", durability="none"), clock=ticking())
    refused = forks = 0
    for stat in sample.list():
        store.engine.extend(stat.key, [line.data for line in sample.read(stat.key)], start=0)
        session = store.session(stat.key.session)
        for at in points_of(session):
            for parent in (session, store.session(session.id)):
                child = fork_or_none(parent, at)
                refused, forks = refused + (child is None), forks + (child is not None)
                assert child is None or said(store.session(child.id)) == said(session, at)
    assert forks > 20 * refused > 0
