"""The reference pages say what the code does."""

from __future__ import annotations

import inspect

import pytest

from lamina import errors
from tools import reference

CODED = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.LaminaError) and kind is not errors.LaminaError
]


@pytest.mark.parametrize("name", sorted(reference.pages()))
def test_a_generated_page_is_current(name: str):
    page = reference.REFERENCE / name

    assert page.is_file(), "run `make docs`"
    assert page.read_text(encoding="utf-8") == reference.pages()[name], "run `make docs`"


def test_every_error_has_a_code_of_its_own():
    codes = [kind.code for kind in CODED]

    assert sorted(codes) == sorted(set(codes))


def test_every_error_says_what_it_means():
    assert [kind.__name__ for kind in CODED if not kind.__doc__] == []
