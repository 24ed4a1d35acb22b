"""Every attack on the sandbox has the result that docs/security.md states for its tier and user."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from attacks import bypasses
from attacks.corpus import ATTACKS
from attacks.run import REPORT, report_of
from attacks.table import DOCUMENT, documented, expected
from attacks.users import COLUMNS, TIERS, USERS, Column, run_all

IS_LONG = os.environ.get("ATTACKS") == "all"
"""Whether all attacks are tried as both users, as `make long` does."""
BY_NAME = {attack.name: attack for attack in ATTACKS}


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, bool]]:
    """The results of the columns that are tried here, by title."""
    return run_all((column for column in COLUMNS if not why_left_out(column)), tried)


def tried(column: Column) -> list[str]:
    """Return the attacks of a column: all in a sandbox, most of those that succeed without one.

    A usual run tries the first of each kind of snippets that differ in their spelling alone.
    """
    if column.tier != "none" or IS_LONG:
        return list(BY_NAME)
    others = [a for a in ATTACKS if a.group != bypasses.GROUP or a.name.endswith(" 1")]
    return [attack.name for attack in others if not attack.guard and not attack.keys]


def why_left_out(column: Column) -> str:
    """Return why a column is not tried: `make long` tries both users, a usual run its own."""
    own = "user" if os.geteuid() else "root"
    if column.user != own and not IS_LONG:
        return "ATTACKS=all tries the other user too"
    return column.why_not()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.title)
def test_attacks_have_the_results_of_the_table(
    column: Column, found: dict[str, dict[str, bool]]
) -> None:
    plain = Column("none", column.user)
    reason = why_left_out(column) or why_left_out(plain)
    if reason:
        pytest.skip(reason)
    stated = expected()
    # Where it fails without a sandbox on this machine, its result in one proves nothing.
    unproven = {
        name
        for name, has_succeeded in found[plain.title].items()
        if BY_NAME[name].is_by_machine and has_succeeded != stated[plain.title][name]
    }
    results = found[column.title]
    wrong = {name for name in results if results[name] != stated[column.title][name]} - unproven
    told = {name: "succeeds" if results[name] else "held" for name in sorted(wrong)}
    assert not told, f"not as in tests/attacks/expected.json (make attacks writes it): {told}"


def test_attacks_are_known_to_succeed_without_a_sandbox() -> None:
    unproven, guarded = [], []
    for attack in ATTACKS:
        works = any(expected()[Column("none", user).title][attack.name] for user in USERS)
        if not works and not attack.is_by_machine and not attack.guard:
            unproven.append(attack.name)
        if works and attack.guard and attack.act is None:
            guarded.append(attack.name)
    assert not unproven, "nothing proves that these can succeed"
    assert not guarded, "these have a guard, and succeed"


def test_a_report_that_is_missing_or_cut_is_not_one_of_an_attack_that_is_held() -> None:
    assert report_of(["noise", f'{REPORT}[false, "a"]\n']) == (False, "a")
    assert report_of(["noise"]) is None
    assert report_of([f'{REPORT}[false, "']) is None


def test_the_table_has_a_row_for_each_attack() -> None:
    assert [name for name, count in Counter(a.name for a in ATTACKS).items() if count > 1] == []
    assert len({attack.slug for attack in ATTACKS}) == len(ATTACKS)
    for tier in TIERS:
        for user in USERS:
            assert list(expected()[Column(tier, user).title]) == [a.name for a in ATTACKS]


def test_the_document_shows_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf8")
    assert text == documented(expected()), "make docs writes it"
