"""A fork by copy says what its parent says, at the head and at every point, whatever the log looks like."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clew.engines.contract import LogKey
from clew.engines.memory import MemoryEngine
from clew.errors import UsageError
from clew.session import Session
from odd_files import SUBJECTS, damaged, generated
from odd_files.rows import SESSION
from stores import store_on

KEY = LogKey("-p", SESSION)
NEW = "ffffffff-0000-4000-8000-000000000001"
# Cut in the middle of parallel calls that no client writes so: a result hangs on no row of its answer, or a sidechain
# row stands in one. The fork puts the rows in one line, where such a result is no longer found beside the chain.
LOST_IN_LINE = {
    ("parallel: a row of the answer beside the chain, a sidechain row of it on the chain", "00000008"),
    ("parallel: a result that hangs on the prompt of its call", "00000009"),
    ("seed 11", "00000008"),
}


def session_of(content: bytes) -> Session:
    engine = MemoryEngine()
    engine.extend(KEY, [content], start=0)
    return store_on(engine).session_on(engine, KEY)


def said(session: Session, at: str | None = None) -> list[tuple[str, object]]:
    return [(message.role, message.content) for message in session.messages(at)]


def files_of(subject: str) -> Iterator[tuple[str, bytes]]:
    if subject == "generated":
        yield from ((f"seed {seed}", generated.session(seed)) for seed in range(1, 80))
    elif subject == "damaged":
        yield from ((f"damaged, seed {seed}", damaged.session(seed)) for seed in range(40))
    else:
        yield from ((f"{subject}: {name}", content) for name, content in SUBJECTS[subject].items() if content)


def points(session: Session) -> Iterator[str | None]:
    yield None
    yield from (uuid for uuid in session.tree.records if uuid and not set(uuid) & {":", " "})


@pytest.mark.parametrize("subject", [*SUBJECTS, "generated", "damaged"])
@pytest.mark.parametrize("new_ids", [False, True], ids=["same ids", "new ids"])
def test_a_fork_says_what_its_parent_says_at_every_point(subject: str, new_ids: bool) -> None:
    wrong, count = [], 0
    for name, content in files_of(subject):
        parent = session_of(content)
        for at in points(parent):
            try:
                fork = parent.fork(at, new_ids=new_ids)
            except UsageError as error:
                if at is None and (not parent.head.refused and parent.messages()):
                    wrong.append(f"{name} was refused: {error}")
                continue
            count += 1
            if said(fork) != said(parent, at) and (name, (at or "")[:8]) not in LOST_IN_LINE:
                wrong.append(f"{name} at {at}")
            if new_ids:
                assert not {*fork.tree.records} & {uuid for uuid in parent.tree.records if uuid}, name
    assert not wrong, "\n".join(wrong[:20])
    assert count > 60


def test_rows_of_a_fork_have_the_bytes_of_their_parent() -> None:
    for name, content in files_of("generated"):
        parent = session_of(content)
        if parent.head.uuid is None:
            continue
        fork = parent.fork(id=NEW)
        for row in fork.records():
            before = parent.tree.records.get(row.uuid or "")
            if before is not None and row.parent_uuid == (before.parent_uuid or None):
                was = (before.session_id or "none").encode()
                assert row.raw.replace(b'"%s"' % fork.id.encode(), b'"%s"' % was).rstrip() == before.raw.rstrip(), name
