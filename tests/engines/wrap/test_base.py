"""A wrapper passes on everything that the contract has, as it was given."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from clew.engines.contract import Capabilities, Engine, Problem
from clew.engines.memory import MemoryEngine
from clew.engines.wrap.base import Call, Wrapper

DATA = {"capabilities", "problems", "url"}
NOTHING = {"close", "flush", "link"}
"""What answers with nothing."""


def methods_of(contract: type) -> set[str]:
    return {name for name in dir(contract) if not name.startswith("_")} - DATA


def not_passed_on(contract: type, wrapper: type) -> set[str]:
    """Methods of the contract that the wrapper answers without asking the engine inside."""
    return {name for name in methods_of(contract) if name not in vars(wrapper)}


class Recorder(MemoryEngine):
    """Notes what it is asked."""

    capabilities = Capabilities(search=True)
    url = "recorder:"
    problems = (Problem("a", "b"),)

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: dict[str, object] = {}

    def __getattribute__(self, name: str) -> Any:
        if name in methods_of(Engine):

            def noted(*given: Any, **named: Any) -> object:
                self.asked.append((name, given, named))
                return self.answers.setdefault(name, None if name in NOTHING else object())

            return noted
        return super().__getattribute__(name)


@pytest.mark.parametrize("name", sorted(methods_of(Engine)))
def test_a_call_goes_inside_with_all_that_was_given_and_its_answer_comes_out(name: str) -> None:
    inner = Recorder()
    parameters = [*inspect.signature(getattr(Engine, name)).parameters.values()][1:]
    given = [[object()] for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    named = {each.name: object() for each in parameters if each.kind is each.KEYWORD_ONLY}
    answer = getattr(Wrapper(inner), name)(*given, **named)
    assert inner.asked == [(name, tuple(given), named)]
    assert answer is inner.answers[name]


@pytest.mark.parametrize("name", sorted(methods_of(Engine)))
def test_a_method_is_called_as_the_contract_says(name: str) -> None:
    assert inspect.signature(getattr(Wrapper, name)) == inspect.signature(getattr(Engine, name))


def test_nothing_of_the_contract_is_answered_by_its_defaults() -> None:
    assert not_passed_on(Engine, Wrapper) == set()


def test_a_method_that_is_new_in_the_contract_is_found() -> None:
    class Grown(Engine):
        def vacuum(self) -> None:
            """What a later contract may have."""

    assert not_passed_on(Grown, Wrapper) == {"vacuum"}


def test_what_an_engine_says_of_itself_is_what_its_wrapper_says() -> None:
    inner = Recorder()
    wrapper = Wrapper(inner)
    assert [getattr(wrapper, name) for name in sorted(DATA)] == [getattr(inner, name) for name in sorted(DATA)]


def test_every_call_goes_through_one_place_that_knows_which_may_change_something() -> None:
    seen: list[Call] = []

    class Seeing(Wrapper):
        def _call(self, call: Call, do: Any) -> Any:
            seen.append(call)
            return do()

    wrapper = Seeing(Recorder())
    for name in sorted(methods_of(Engine)):
        parameters = [*inspect.signature(getattr(Engine, name)).parameters.values()][1:]
        given = [[object()] for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        getattr(wrapper, name)(*given, **{each.name: object() for each in parameters if each.kind is each.KEYWORD_ONLY})
    assert [call.method for call in seen] == sorted(methods_of(Engine))
    assert {call.method for call in seen if call.is_change} == {
        "alone", "append", "bring_back", "delete", "delete_blob", "extend", "free_aside", "link", "put", "replace",
            "set_aside",
    }  # fmt: skip
