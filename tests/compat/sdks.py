"""The Agent SDKs, where `make compat` put them."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest


def python_sdk() -> Any:
    """The module `claude_agent_sdk`. What it brings along stands behind our own libraries on the path."""
    place = os.environ.get("CLEW_AGENT_SDK")
    if not place:
        pytest.skip("CLEW_AGENT_SDK names no Agent SDK: `make compat` installs one and sets it")
    if place not in sys.path:
        sys.path.append(place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("claude_agent_sdk")


def node_sdk() -> Path:
    """The directory of the Agent SDK for TypeScript."""
    place = os.environ.get("CLEW_AGENT_SDK_NODE")
    if not place:
        pytest.skip("CLEW_AGENT_SDK_NODE names no Agent SDK: `make compat` installs one and sets it")
    return Path(place)
