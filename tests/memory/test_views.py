"""A role's view, against its definition, under any sequence of writes."""

from __future__ import annotations

import copy
from collections.abc import Callable

from conversation_strategies import ROLES, posts, texts
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sizes import examples

from taskweaver.memory import AttachmentType, Memory, Post, Round, SharedMemoryEntry
from taskweaver.utils.text import remove_temporal_delimiters, remove_temporal_parts


def changed(post: Post, change: Callable[[str], str]) -> Post:
    post = copy.deepcopy(post)
    post.message = change(post.message)
    for attachment in post.attachment_list:
        if isinstance(attachment.content, str):
            attachment.content = change(attachment.content)
    return post


def has_orders(round_: Round) -> bool:
    """Return whether a role gave another an order, or a cell ran."""
    roles = [(p.send_from, p.send_to) for p in round_.post_list if p.send_from != "User"]
    kinds = [item.type for p in round_.post_list for item in p.attachment_list]
    ordered = any(giver != taker != "User" for giver, taker in roles)
    return ordered or AttachmentType.execution_status in kinds


def view_by_definition(
    rounds: list[Round], role: str, *, failures: bool, is_lasting: bool = False
) -> list[Round]:
    """Build a view from what the documentation says, forgetting nothing and keeping nothing."""
    view = [
        Round(
            round_.id,
            round_.user_query,
            round_.state,
            [copy.deepcopy(p) for p in round_.post_list if role in (p.send_from, p.send_to)],
        )
        for round_ in rounds
        if failures or round_.state != "failed" or (is_lasting and has_orders(round_))
    ]
    for round_ in view:
        change = remove_temporal_delimiters if round_ is view[-1] else remove_temporal_parts
        round_.post_list = [changed(post, change) for post in round_.post_list]
    return view


def entries_by_definition(rounds: list[Round], kind: str) -> list[SharedMemoryEntry]:
    """List what holds: sender by sender, the latest one, in the order of writing."""
    holding = [
        (post.send_from, item.extra)
        for round_ in rounds
        if round_.state != "failed"
        for post in round_.post_list
        for item in post.attachment_list
        if item.type is AttachmentType.shared_memory_entry
        and item.extra.type == kind
        and (item.extra.scope == "conversation" or round_ is rounds[-1])
    ]
    senders = [sender for sender, _ in holding]
    return [
        entry for place, (sender, entry) in enumerate(holding) if sender not in senders[place + 1 :]
    ]


class ViewsUnderWrites(RuleBasedStateMachine):
    """A session writes, states change late, and every role looks after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory("s")

    @property
    def rounds(self) -> list[Round]:
        return self.memory.conversation.rounds

    @rule(query=texts)
    def begin(self, query: str) -> None:
        self.memory.create_round(query)

    @rule(post=posts(), place=st.integers(0, 50))
    def add_through_memory(self, post: Post, place: int) -> None:
        if self.rounds:
            self.memory.add_post(self.rounds[place % len(self.rounds)], post)

    @rule(post=posts(), place=st.integers(0, 50))
    def add_to_the_round_itself(self, post: Post, place: int) -> None:
        if self.rounds:
            self.rounds[place % len(self.rounds)].add_post(post)

    @rule(state=st.sampled_from(["created", "finished", "failed"]), place=st.integers(0, 50))
    def change_state(self, state: str, place: int) -> None:
        if self.rounds:
            self.memory.end_round(self.rounds[place % len(self.rounds)], state)  # type: ignore[arg-type]

    @rule(place=st.integers(0, 50))
    def take_a_round_away(self, place: int) -> None:
        if self.rounds:
            del self.rounds[place % len(self.rounds)]

    @rule(place=st.integers(0, 50))
    def take_the_last_post_of_a_round_away(self, place: int) -> None:
        if self.rounds:
            round_ = self.rounds[place % len(self.rounds)]
            round_.post_list = round_.post_list[:-1]

    @invariant()
    def each_role_sees_what_the_definition_says(self) -> None:
        for role in ROLES:
            for failures in (False, True):
                expected = view_by_definition(self.rounds, role, failures=failures)
                assert self.memory.get_role_rounds(role, failures) == expected

    @invariant()
    def a_summary_reads_nothing_that_was_meant_for_the_moment(self) -> None:
        for role in ROLES:
            view = view_by_definition(self.rounds, role, failures=False, is_lasting=True)
            if view:
                own = [r for r in self.rounds if r.id == view[-1].id][-1]
                posts = [p for p in own.post_list if role in (p.send_from, p.send_to)]
                view[-1].post_list = [changed(p, remove_temporal_parts) for p in posts]
            assert self.memory.get_lasting_rounds(role) == view

    @invariant()
    def what_is_shared_is_what_the_definition_says(self) -> None:
        for kind in ("plan", "example_sub_path"):
            expected = entries_by_definition(self.rounds, kind)
            assert self.memory.get_shared_memory_entries(kind) == expected


TestViewsUnderWrites = ViewsUnderWrites.TestCase
TestViewsUnderWrites.settings = settings(max_examples=examples(30), stateful_step_count=25)
