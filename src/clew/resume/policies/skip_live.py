"""Without sessions that a running client holds: it has a head of its own and would not see what another one adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.resume.choosing import Asked, Contender


def skip_live(contenders: Iterable[Contender], asked: Asked) -> Iterator[Contender]:
    """Whoever runs when the first is asked for counts."""
    live = asked.look.store.engine.live_sessions()
    yield from asked.unless(contenders, lambda each: "Claude Code is running it" if each.id in live else None)
