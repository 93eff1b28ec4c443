"""Whatever is forked, appended, branched and truncated in whatever order, each session has what a plain list says."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew import Session, Store
from stores import ENGINES, store_on, ticking

Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "say", "branch", "truncate", "fork", "fork at", "fork cold", "fork inherited"]),
        st.integers(0, 30),
        st.integers(0, 60),
    ),
    min_size=1,
    max_size=25,
)


class Told(msgspec.Struct):
    """A session in the model: its conversation, and every row that can be reached in it with the way to it."""

    session: Session
    chain: list[str] = []
    ways: dict[str, list[str]] = {}
    order: list[str] = []
    """Its rows as they stand, the inherited ones first."""

    def say(self, at: list[str]) -> None:
        """A prompt that hangs on the last of `at`, and an answer."""
        said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
        parent = at[-1] if at else None
        done = self.session.append_many(said) if at == self.chain else self.session.append_many(said, parent=parent)
        self.chain = at
        for uuid in done.uuids:
            assert uuid is not None
            self.chain = [*self.chain, uuid]
            self.ways[uuid] = self.chain
            self.order.append(uuid)

    def forked(self, session: Session, at: str) -> Told:
        """What a fork there begins with: everything that stands before the row, and the way to it."""
        order = self.order[: self.order.index(at) + 1]
        return Told(session, self.ways[at], {uuid: self.ways[uuid] for uuid in order}, order)


def cold(store: Store, session: Session) -> Session:
    return Store(store.engine, clock=ticking()).session(session.id)


def done(store: Store, told: list[Told], step: Step) -> None:
    what, which, row = step
    one = told[which % len(told)]
    at = one.order[row % len(one.order)]
    if what in ("branch", "truncate") and len(one.ways[at]) % 2:
        # Under a prompt that has an answer already the client puts that one back beside the chain.
        at = one.chain[-1]
    if what == "say":
        one.say(one.chain)
    elif what == "branch":
        one.say(one.ways[at])
    elif what == "truncate":
        cold(store, one.session).append({"type": "last-prompt", "leafUuid": at, "explicit": True})
        one.chain = one.ways[at]
    elif what == "fork":
        told.append(one.forked(one.session.fork(kind="attached"), one.chain[-1]))
    elif what == "fork cold":
        session = cold(store, one.session).fork(kind="attached")
        told.append(one.forked(session, one.chain[-1]))
    else:
        at = one.order[row % 3 % len(one.order)] if what == "fork inherited" else at
        told.append(one.forked(one.session.fork(at, kind="attached"), at))


def chain_of(session: Session) -> list[str | None]:
    return [record.uuid for record in session.chain().records]


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
@settings(max_examples=60)
@given(steps=STEPS)
def test_each_session_has_what_a_plain_list_says(engine: str, steps: list[Step]) -> None:
    with TemporaryDirectory() as place, store_on(ENGINES[engine](Path(place))) as store:
        told = [Told(store.create("/home/a/project"))]
        told[0].say([])
        for step in steps:
            done(store, told, step)
        for one in told:
            again, _ = cold(store, one.session), one.session.refresh()
            assert chain_of(again) == chain_of(one.session) == one.chain
            assert [record.uuid for record in again.records() if record.uuid] == one.order
            assert again.fork_point is None or len(again.fork_point.lineage) < len(told)
