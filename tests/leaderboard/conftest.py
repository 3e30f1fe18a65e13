import pytest

from tests.support.results import printed_numbers


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """The printed numbers of COMPARED."""
    return printed_numbers(tmp_path, monkeypatch)
