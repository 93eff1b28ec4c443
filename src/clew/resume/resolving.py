"""From a text to a session: the resolvers are asked in their order, and the first that does not decline has the word.

docs/design/0016-finding-a-session.md says what the client does with the same texts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TypeAlias, cast

from clew.errors import Ambiguous, NotFound, UsageError
from clew.plugins import entry_points_of, function_of
from clew.resume.answers import Answer, Resolved, Unclear
from clew.resume.look import Look, folded
from clew.resume.resolvers.table import ENTRY_POINTS, LAST, RESOLVERS
from clew.session import Session

Resolver: TypeAlias = Callable[[str, Look], Answer]

TEXT_CHARACTERS_MAX = 100_000
"""No title, path or id is longer; a longer text is no name but a mistake."""


def resolve(text: str, look: Look) -> Resolved:
    """What the text names. Where that is not one session, the answer is of the kind `picker` and says why.

    Raises `NotFound` where the text is of a form that a resolver has to itself, such as `tag:…`, and nothing answers to
    it, and `UsageError` for what can name nothing.
    """
    if not text.strip():
        raise UsageError("an empty text names no session", hint="give an id; `clew ls` shows them")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise UsageError(f"{text[:40]!r}… with {len(text):,} characters names no session", hint="`clew ls` shows ids")
    answer = asked(text, look)
    if isinstance(answer, Unclear):
        return Resolved(
            "picker", query=text, candidates=answer.candidates, hint=answer.hint, is_ambiguous=True,
            why=answer.why if answer.why.startswith(text) else f"{_shown(text)} is ambiguous: {answer.why}",
        )  # fmt: skip
    return answer or _nothing(text, look)


def asked(text: str, look: Look, *, without: Collection[str] = ()) -> Answer:
    """The first answer; None when all of them decline. Those named `without` are not asked."""
    for name, resolver in _in_order():
        if name not in without:
            answer = resolver()(text, look)
            if answer is not None:
                return answer
    return None


def only(resolved: Resolved, *, told: Sequence[str] | None = None) -> Session:
    """The session. Raises `Ambiguous` or `NotFound` with the candidates, and `UsageError` for one that is elsewhere."""
    if resolved.session is not None:
        return resolved.session
    if resolved.kind == "remote":
        raise UsageError(f"{_shown(resolved.url or '')} is not in this store", hint="fetch it, then name its file")
    names = [each.name for each in resolved.candidates] if told is None else told
    kind = Ambiguous if resolved.is_ambiguous else NotFound
    raise kind(resolved.why, hint=resolved.hint, candidates=names)


def _nothing(text: str, look: Look) -> Resolved:
    """What nobody answered to, with the sessions here whose titles hold it."""
    wanted = folded(text)
    near = look.candidates(stat for stat, title in look.titles() if title and wanted in folded(title))
    hint = "the path of a session ends in .jsonl" if "/" in text else look.hint
    why = f"no session has an id that begins with {_shown(text)}, nor just that title"
    return Resolved("picker", query=text, candidates=near, hint=hint if not near else "name one by its id", why=why)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")


def _in_order() -> Iterator[tuple[str, Callable[[], Resolver]]]:
    """By name, each with what loads it."""
    for name, place in RESOLVERS.items():
        yield name, partial(_ours, place)
    for name in entry_points_of(ENTRY_POINTS):
        yield name, partial(_theirs, name)
    for name, place in LAST.items():
        yield name, partial(_ours, place)


@cache
def _ours(place: str) -> Resolver:
    module, _, name = place.partition(":")
    return cast(Resolver, getattr(import_module(module), name))


def _theirs(name: str) -> Resolver:
    return cast(Resolver, function_of(ENTRY_POINTS, name))
