"""The check of the answers of one branch of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.cells import has_run, ran_code
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Evidence, Round, RoundAnswer, file_notes
from taskweaver.role.situation import Situations
from taskweaver.session.answers.claims import Claim, claims_in
from taskweaver.session.answers.outcomes import USER, Library, Outcomes, SupportingText

MAX_EVIDENCE = 500
"""Most numbers of one answer whose places are kept."""

_POSTS_LEFT = 3
"""Posts a correction takes at most: the note, an order and its report come before the answer."""
_PERCENT = {"%", "percent", "per cent", "pct", "Prozent"}
_MOST_SHARES = 40
_NO_ANSWER = frozenset({"Clarification", "AdditionalInformation", "SecurityRisks"})


def unsupported_note(numbers: Sequence[str]) -> str:
    """Return the warning that stands below an answer with unsupported numbers."""
    return f"not found in any result of this session: {', '.join(numbers)}"


def verify(answer: str, sources: Sequence[SupportingText] | Library) -> RoundAnswer:
    """Find each figure of an answer in some texts, given in the order of preference.

    Returns:
        The answer with the place of each figure, and the figures that stand nowhere.
    """
    library = sources if isinstance(sources, Library) else Library(sources)
    evidence: list[Evidence] = []
    unsupported: dict[str, None] = {}
    known: dict[Claim, list[Evidence]] = {}
    for claim in claims_in(answer):
        if claim not in known:
            known[claim] = _find(claim, library)
        evidence += known[claim]
    for claim, found in known.items():
        if not found and not (claim.is_points and _is_difference(claim, known)):
            unsupported[claim.text] = None
    kept = tuple(dict.fromkeys(evidence))[:MAX_EVIDENCE]
    return RoundAnswer(answer, kept, tuple(unsupported), is_checked=bool(known))


def _is_difference(claim: Claim, known: Mapping[Claim, Sequence[Evidence]]) -> bool:
    """Return whether a number of percentage points lies between two percentages of the answer."""
    shares = [one.plain[0].value for one, found in known.items() if found and one.unit in _PERCENT]
    pairs = combinations(shares[:_MOST_SHARES], 2)
    differences = [abs(first - second) for first, second in pairs]
    return any(
        abs(difference - reading.value) <= reading.step
        for difference in differences
        for reading in claim.plain
    )


def _find(claim: Claim, library: Library) -> list[Evidence]:
    found = library.find(claim)
    if found is not None:
        return [found]
    parts = [_find(part, library) for part in claim.parts]
    return [item for part in parts for item in part] if parts and all(parts) else []


@dataclass(slots=True)
class AnswerCheck:
    """Checks the leader's answers against the outcomes of the conversation.

    `leader` is the alias of the role that answers the user, `situations` what its prompts show
    beside the posts. Without room below `max_posts` for a correction none is asked.
    """

    memory: Memory
    leader: str
    max_posts: int
    situations: Situations
    _outcomes: Outcomes = field(default_factory=Outcomes)
    _newest: tuple[tuple[str, str], RoundAnswer] | None = None

    def doubts(self, post: Post) -> list[str]:
        """Return the numbers of an answer that its author is asked to correct; see `AnswerReview`.

        The author is asked once in a round.
        """
        posts = self.memory.conversation.rounds[-1].post_list
        was_asked = any(item.get_attachment(AttachmentType.answer_check) for item in posts)
        if was_asked or len(posts) + _POSTS_LEFT >= self.max_posts:
            return []
        return list(self._verified(post).unsupported_numbers)

    def mark(self, post: Post) -> tuple[str, ...]:
        """Attach the result of the check to an answer.

        Returns:
            The numbers that stand in no outcome.
        """
        answer = self._verified(post)
        if answer.is_checked:
            unsupported = answer.unsupported_numbers
            text = f"in no outcome: {', '.join(unsupported)}" if unsupported else "supported"
            found = Attachment.create(AttachmentType.answer_check, text, extra=answer.finding())
            post.add_attachment(found)
        return answer.unsupported_numbers

    def _verified(self, post: Post) -> RoundAnswer:
        """Return an answer with its findings; those of `doubts` serve `mark` right after."""
        if self._newest is not None and self._newest[0] == (post.id, post.message):
            return self._newest[1]
        rounds = self.memory.conversation.rounds
        found = RoundAnswer(post.message)
        if _is_checkable(post) and concerns_data(rounds):
            found = verify(
                post.message, self._outcomes.library(rounds, self.leader, self.situations.text)
            )
        self._newest = (post.id, post.message), found
        return found


def concerns_data(rounds: Sequence[Round]) -> bool:
    """Return whether a conversation has data: a cell ran, or a file came with a request."""
    return any(map(ran_code, rounds)) or any(file_notes(round_.user_query) for round_ in rounds)


def _is_checkable(post: Post) -> bool:
    """Return whether a post answers in words of a model: no report, no question to the user."""
    is_question = post.last(AttachmentType.stop).strip() in _NO_ANSWER
    return post.send_to == USER and not is_question and not has_run(post)
