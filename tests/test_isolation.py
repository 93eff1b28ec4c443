"""The tests themselves touch neither the person's files nor the network; these show that the guard stands."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest


def test_the_home_of_a_test_is_not_the_home_of_the_person(tmp_path_factory: pytest.TempPathFactory) -> None:
    names = [name for name in os.environ if name.startswith(("XDG_", "CLAUDE_"))]
    assert len(names) == 5
    assert tmp_path_factory.getbasetemp() in Path.home().parents
    assert all(Path.home() in Path(os.environ[name]).parents for name in names)


def test_a_config_directory_starts_empty(config_dir: Path) -> None:
    assert os.environ["CLAUDE_CONFIG_DIR"] == str(config_dir)
    assert list(config_dir.iterdir()) == []


def test_another_machine_cannot_be_reached() -> None:
    with socket.socket() as stream, pytest.raises(AssertionError, match="no network"):
        stream.connect(("192.0.2.1", 80))
    with socket.socket(type=socket.SOCK_DGRAM) as datagram, pytest.raises(AssertionError, match="no network"):
        datagram.sendto(b"", ("192.0.2.1", 53))
    with pytest.raises(AssertionError, match="no network"):
        socket.getaddrinfo("example.invalid", 80)


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("localhost", port)) as client:
            assert client.getpeername()[1] == port
