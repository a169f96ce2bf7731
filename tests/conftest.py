"""What holds for all tests."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The clock that a module chose (`scenes.virtual_time`) goes before the one that the plugin gives to every test."""
    for item in items:
        item.own_markers.extend(list(item.iter_markers("trio")))
