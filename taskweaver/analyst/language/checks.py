"""Checks of a composed reading: one that answers another question than the request is refused.

Each check is a rule about readings or about the scope of phrases; none knows a table.
"""

from __future__ import annotations

from itertools import pairwise

from taskweaver.analyst.language.atoms import Atom, Fn, Keys, Look, Mark, Noun, Pick, Picture
from taskweaver.analyst.language.groups import HEADS, conjuncts
from taskweaver.analyst.language.names import core_words, is_named_after, name_words, singular
from taskweaver.analyst.language.parser import Operand
from taskweaver.analyst.language.parts import Phrases, UnfitError
from taskweaver.analyst.language.scope import LABEL_WORDS
from taskweaver.analyst.language.values import Cond
from taskweaver.analyst.readings import (
    Column,
    Comparison,
    Condition,
    GroupKey,
    Measure,
    Reading,
    Rows,
    Summary,
    TableView,
    columns_in,
    columns_of,
)

_PREPOSITIONS = frozenset("in of from on at to".split())
_JOINTS = frozenset("and or und oder vs versus with to mit zu".split())
_MOST_GROUPS, _MOST_KEYS = 25, 2
_SHORTEST_NAME = 4
_QUANTIFIERS = "only just all every always necessarily"
_SUBJECTS = frozenset("date time day year id number name".split())
_HAVE = "have has had having sell sells make makes fly flies"
_DEEDS = frozenset("sold ordered bought purchased".split())
_SOLD = frozenset("quantity qty units sales sold".split())
_DOUBTS = "is are was were do does did has have"
_PERSONAL = frozenset(
    "age sex gender salary birthday birth surname job marital married occupation employee patient "
    "passenger student customer client user person member smoker wage survived name".split()
)
_TALLIES = frozenset("freq frequency count counts n ncases".split())
_TOTALS = _TALLIES | {"total", "cases", "deaths"}
_ASKING = "who whom whose when where which what wer wem wann wo welche was"
_OF_NOTHING = "is was are were has had one ones"
_IN_IT = "there file data dataset table drin darin datei daten"
_OFTEN = frozenset({"how often", "how many times"})
_OF_SEVERAL = "count nunique std var range iqr correlation".split()
"""Functions that say nothing of one row; its mean or maximum is its value."""
_NO_NUMBER_OF_IDS = ("count", "nunique", "missing", "mode")


def check(reading: Reading, parts: Phrases) -> None:
    """Refuse a reading that is no answer to the request.

    Raises:
        UnfitError: If the reading is degenerate, or the scope of a negation is not clear.
    """
    _check_light_words(parts)
    _check_second_question(parts)
    _check_nesting(parts)
    _check_negations(parts)
    _check_counted(reading, parts)
    _check_agents(parts)
    if isinstance(reading, Summary):
        _check_keys(reading, parts)
        _check_measures(reading, parts)
        _check_time_asked(reading, parts)
        _check_rows(reading, parts)
    if isinstance(reading, Rows | TableView) and reading.where is not None:
        _check_shown(reading, parts)


# -- phrases ---------------------------------------------------------------------------------------


def _check_agents(parts: Phrases) -> None:
    """Refuse ``orders by customers from Boston`` as groups: those may be the ones who ordered."""
    words = parts.words
    phrases = [atom for atom in parts.atoms if not isinstance(atom.content, Mark)]
    for first, second in pairwise(phrases):
        if not isinstance(first.content, Keys) or not isinstance(second.content, Cond):
            continue
        last = words.lower(first.end - 1)
        names = {key.column for options in first.content.keys for key in options}
        is_own_name = any(name_words(name) == (singular(last),) for name in names)
        if (
            first.content.is_by
            and singular(last) != last
            and not is_own_name
            and words.lower(first.end) in (*_PREPOSITIONS, "with", "who", "that")
        ):
            phrase = words.raw(first.start, second.end)
            raise UnfitError(phrase, f"Say “per {singular(last)}”, or leave it out.")


def _check_light_words(parts: Phrases) -> None:
    """Refuse light words with a meaning: ``have only``, ``same``, a column of numbers."""
    words = parts.words
    numbers = {name.casefold() for name in parts.scope.columns if words.is_numeric(name)}
    for atom, mark in parts.every(Mark):
        word = parts.phrase(atom)
        is_long = len(word) >= _SHORTEST_NAME
        if is_long and word.casefold() in numbers and mark.detail != "file":
            raise UnfitError(word)
    for at in range(words.size):
        if words.lower(at) == "where" and words.says(at + 1, "does do did"):
            raise UnfitError(words.raw(at, words.size))
        if words.lower(at) == "not" and words.says(at + 1, _QUANTIFIERS):
            raise UnfitError(words.raw(at, at + 2))
    for atom, mark in parts.every(Mark):
        low = words.lower(atom.start)
        has = words.says(atom.start - 1, _HAVE) or words.says(atom.end, _HAVE)
        is_light = mark.kind in ("filler", "verb")
        if is_light and (low == "same" or (low in ("only", "just") and has)):
            raise UnfitError(parts.phrase(atom))


def _check_second_question(parts: Phrases) -> None:
    """Refuse ``the lowest score and who got it``, whose second question names no column."""
    words = parts.words
    told = [atom.start for atom in parts.atoms if not isinstance(atom.content, Mark)]
    for at in range(words.size):
        is_second = words.says(at, "and und") and words.says(at + 1, _ASKING)
        if is_second and max(told, default=0) <= at:
            raise UnfitError(words.raw(at + 1, words.size), "Ask one question at a time.")


def _check_nesting(parts: Phrases) -> None:
    """Refuse an aggregate of an aggregate: ``average of the total fare per class``."""
    for (first, outer), (second, inner) in pairwise(parts.every(Fn)):
        between = {parts.words.lower(at) for at in range(first.end, second.start)}
        is_count = {outer.function, inner.function} & {"count", "nunique"}
        if between <= {"of", "the"} and "of" in between and not is_count:
            phrase = parts.words.raw(first.start, second.end)
            raise UnfitError(phrase, "An aggregate of an aggregate is not understood.")


def _check_negations(parts: Phrases) -> None:
    """Refuse a negation before two conditions that may stand under it both."""
    for atom, cond in parts.every(Cond):
        if cond.is_negative:
            _check_opposites(parts, atom, cond)
        after, joints = _next_condition(parts, atom) if cond.is_negative else (None, set())
        if after is None or not isinstance(after.content, Cond):
            continue
        if after.content.is_negative:
            continue
        is_excluded = _is_exclusion(parts, atom) and joints <= _PREPOSITIONS and bool(joints)
        is_listed = joints in ({"and"}, {"or"}, {"to"}) and after.content.is_bare
        if (is_excluded and not after.content.is_time) or is_listed or "(" in joints:
            phrase = parts.words.raw(atom.start, after.end)
            raise UnfitError(phrase, "Say of each condition whether it is negated.")


def _check_opposites(parts: Phrases, atom: Atom, cond: Cond) -> None:
    """Refuse ``smokers and non-smokers`` as a condition: they are two groups."""
    for before, operand in parts.every(Operand):
        between = {parts.words.lower(at) for at in range(before.end, atom.start)}
        is_joined = bool(between) and between <= _JOINTS and before.end <= atom.start
        if is_joined and set(operand.names) <= _columns(cond):
            phrase = parts.words.raw(before.start, atom.end)
            raise UnfitError(phrase, f"Say “per {operand.names[0]}”.")


def _next_condition(parts: Phrases, atom: Atom) -> tuple[Atom | None, set[str]]:
    """Return the condition after a phrase, and the light words between them."""
    following = [other for other in parts.atoms if other.start >= atom.end]
    for other in following:
        if isinstance(other.content, Cond):
            between = range(atom.end, other.start)
            return other, {parts.words.lower(at) for at in between} - {"the", "a"}
        if not isinstance(other.content, Mark) or other.content.kind != "filler":
            return None, set()
    return None, set()


def _is_exclusion(parts: Phrases, atom: Atom) -> bool:
    word = parts.words.lower(atom.start)
    return not word.endswith(("not", "n't", "nicht", "never")) and word not in ("is", "are", "was")


def _columns(cond: Cond) -> set[str]:
    return {name for option in cond.options for name in columns_in(option.condition)}


def _check_counted(reading: Reading, parts: Phrases) -> None:
    """Refuse a count of a noun that is itself the value or the column of a condition.

    ``How many deaths`` of a table with a ``death_date`` is not certain to mean a value ``Death``,
    and ``how many counties in Ohio`` is no question about a county of that name.
    """
    counts = [atom for atom, fn in parts.every(Fn) if fn.function in ("count", "nunique")]
    nouns = [
        atom
        for atom in parts.atoms
        if isinstance(atom.content, Noun | Operand | Cond)
        and any(atom.start == _after_light(parts, count) for count in counts)
    ]
    starts = {0, *(atom.end for atom, _ in parts.every(Pick))}
    for atom, cond in parts.every(Cond):
        if atom.start in starts and atom.end == atom.start + 1:
            _check_head(parts, atom, cond)
    if len(nouns) > 1 and isinstance(reading, Summary) and len(reading.measures) == 1:
        raise UnfitError([parts.phrase(atom) for atom in nouns[1:]], "Ask for one number.")
    for count in [*counts, *(atom for atom, _ in parts.every(Picture))]:
        heads = [atom for atom in parts.atoms if atom.start == _after_light(parts, count)]
        for head in heads:
            if isinstance(head.content, Cond) and head.end == head.start + 1:
                _check_head(parts, head, head.content)
            is_named = bool(parts.words.columns(head.start))
            if is_named and isinstance(head.content, Cond) and _is_compared(head.content):
                raise UnfitError(parts.phrase(head), "Name the column that is compared.")
            if isinstance(head.content, Operand):
                _check_own_column(parts, head, head.content)


def _is_compared(cond: Cond) -> bool:
    """Return whether a condition compares its own noun: ``how many days were above 90``."""
    found = [option.condition for option in cond.options]
    ordered = [c for c in found if isinstance(c, Comparison) and c.operator not in ("==", "!=")]
    return bool(ordered) and not cond.is_time


def _after_light(parts: Phrases, atom: Atom) -> int:
    return parts.words.skip(atom.end, "the of different distinct")


def _check_head(parts: Phrases, head: Atom, cond: Cond) -> None:
    noun = singular(parts.words.lower(head.start))
    is_plural = noun != parts.words.lower(head.start)
    if cond.is_bare and is_plural and _is_subject(parts, noun):
        values = f"of the value `{cond.phrase}` or of all rows"
        raise UnfitError(cond.phrase, f"Say whether the number {values} is meant.")


def _is_subject(parts: Phrases, noun: str) -> bool:
    """Return whether the table is about a noun: its name, or ``death_date`` and ``death_id``."""
    names = [name_words(name) for name in parts.scope.columns]
    is_dated = any(words[0] == noun and set(words[1:]) & _SUBJECTS for words in names if words)
    return is_dated or parts.scope.is_row(noun)


def _check_own_column(parts: Phrases, head: Atom, operand: Operand) -> None:
    for atom, cond in parts.every(Cond):
        is_value = cond.is_bare and not cond.is_negative and not cond.is_list
        if is_value and _columns(cond) == set(operand.names) and atom.start > head.start:
            raise UnfitError(cond.phrase, f"It is one `{operand.names[0]}`.")


# -- groups ----------------------------------------------------------------------------------------


def _check_keys(reading: Summary, parts: Phrases) -> None:
    """Refuse groups of one row each that are counted, and groups that a condition leaves alone."""
    if len(reading.keys) > _MOST_KEYS and (reading.chart or reading.then):
        raise UnfitError([key.column for key in reading.keys], "Ask for one group at a time.")
    is_of_days = set(parts.scope.day_keys) <= set(reading.keys) and len(reading.keys) > 1
    for key in reading.keys:
        profile = parts.words.profile(key.column)
        is_whole = not key.unit and not key.part
        is_unique = is_whole and profile.distinct >= parts.scope.rows > 1
        is_counted = any(measure.function in _OF_SEVERAL for measure in reading.measures)
        is_single = is_unique and reading.where is None and len(reading.source.tables) == 1
        is_averaged = any(measure.function in ("mean", "median") for measure in reading.measures)
        is_long = is_averaged and reading.rank is None and parts.scope.rows > _MOST_GROUPS
        if is_single and (is_counted or is_long):
            raise UnfitError(key.column, f"Each `{key.column}` is in one row.")
        is_pinned = any(_is_pinned(part, key) for part in conjuncts(reading.where))
        is_pinned = is_pinned and not is_of_days
        if is_pinned and (reading.names_winner or key.column in parts.scope.time_columns):
            raise UnfitError(key.column, f"A condition leaves one `{key.column}`.")
        is_ratio = profile.kind == "number" and profile.distinct > _MOST_GROUPS
        if is_whole and is_ratio and all(m.function in ("sum", "mean") for m in reading.measures):
            raise UnfitError(key.column, f"Say “divided by {key.column}”, or name the groups.")
        if is_whole and any(columns_of(m.of) == (key.column,) for m in reading.measures):
            raise UnfitError(key.column, f"`{key.column}` is the group and its own measure.")


def _is_pinned(part: Condition, key: GroupKey) -> bool:
    """Return whether a condition leaves a single group of a key."""
    if isinstance(part, Comparison) and isinstance(part.left, Column):
        return part.left.name == key.column and part.operator == "==" and not key.part
    return False


# -- measures --------------------------------------------------------------------------------------


def _check_measures(reading: Summary, parts: Phrases) -> None:
    """Refuse numbers computed from identifiers, unless these are named exactly."""
    operands = [operand for _, operand in parts.every(Operand) if operand.distance < 2]
    named = {name for operand in operands for name in operand.names}
    for measure in reading.measures:
        if measure.of is None or measure.function in _NO_NUMBER_OF_IDS:
            continue
        for name in columns_of(measure.of):
            if name_words(name)[-1:] == ("id",) and name not in named:
                raise UnfitError(name, f"`{name}` holds identifiers.")


def _check_time_asked(reading: Summary, parts: Phrases) -> None:
    """Refuse a single value where a time is asked for: ``in which month was ... lowest``."""
    if reading.keys:
        return
    units = {atom.start for atom, noun in parts.every(Noun) if noun.kind == "unit"}
    for atom, mark in parts.every(Mark):
        if mark.kind == "when" or (mark.kind == "which" and atom.end in units):
            raise UnfitError(parts.phrase(atom), "Name the column of times that is asked for.")
        if parts.words.says(atom.start, "which") and parts.words.says(atom.end, _OF_NOTHING):
            raise UnfitError(parts.phrase(atom), "Name the rows or groups that are meant.")


def _check_rows(reading: Summary, parts: Phrases) -> None:
    """Refuse a count of all rows where the counted noun is not known to name the rows."""
    if reading.measures != (Measure("count"),):
        return
    named = {noun.kind for _, noun in parts.every(Noun)}
    tallies = _TALLIES | HEADS if "person" in named else _TALLIES
    numbers = filter(parts.words.is_numeric, parts.scope.columns)
    added = next((name for name in numbers if name.casefold() in tallies), None)
    added = None if "row" in named else added
    if added := added or _tally_of_nouns(parts):
        raise UnfitError((), f"Say whether rows are counted or `{added}` is added up.")
    if reading.then is not None:
        return
    _check_deeds(parts)
    is_bare = reading.where is None and not reading.keys
    values = [parts.phrase(atom) for atom, look in parts.every(Look) if look.view == "values"]
    if values and not reading.keys:
        raise UnfitError(values, "Name the column whose values are counted.")
    if not parts.every(Fn) and named <= {"unit"}:
        _check_amounts(parts)
    is_deed = any(mark.kind == "link" for _, mark in parts.every(Mark))
    _check_names(parts, is_bare=is_bare or is_deed)
    kinds = ("person", "thing") if is_bare and not parts.words.has(_IN_IT) else ("person",)
    nouns = [noun.word for _, noun in parts.every(Noun) if noun.kind in kinds]
    often = parts.phrases(Fn)
    if is_bare and (often := [one for one in often if one.casefold() in _OFTEN]):
        raise UnfitError(often, "Say what happens so often.")
    unknown = [word for word in nouns if not names_rows(parts, word)]
    if _PERSONAL & {word for name in parts.scope.columns for word in name_words(name)}:
        unknown = []
    if unknown:
        raise UnfitError(unknown, "It is not certain that the rows are meant.")


def _tally_of_nouns(parts: Phrases) -> str:
    """Return a column that counts what a file is named after, where its rows are other things.

    In a file of murders with a row for each state and a ``total``, no row is a murder.
    """
    scope, columns = parts.scope, parts.scope.columns.items()
    nouns = {noun.word for _, noun in parts.every(Noun) if scope.is_row(noun.word)}
    names = [n for n, one in columns if one.kind == "text" and one.distinct == scope.rows]
    own = [n for n in names if set(LABEL_WORDS) & set(name_words(n))]
    own += [n for n in names for word in nouns if is_named_after(singular(word), n)]
    if own or not (names and nouns):
        return ""
    found = (n for n, one in columns if one.kind == "integer" and n.casefold() in _TOTALS)
    return next(found, "")


def _check_amounts(parts: Phrases) -> None:
    """Refuse ``plot rain per month`` as rows of the value, where a column holds amounts of it."""
    for atom, cond in parts.every(Cond):
        words = tuple(parts.words.lower(at) for at in range(atom.start, atom.end))
        ref = parts.scope.column(words, cond.phrase) if cond.is_bare else None
        for name in ref.names if ref else ():
            if parts.words.is_numeric(name) and len(core_words(name)) == 1:
                raise UnfitError(cond.phrase, f"Say the number of rows, or the total of `{name}`.")


def _check_names(parts: Phrases, *, is_bare: bool) -> None:
    """Refuse the number of rows for things that have several rows each by their names."""
    scope = parts.scope
    texts = [name for name, column in scope.columns.items() if column.kind == "text"]
    is_dated = any(scope.columns[n].distinct * 2 < scope.rows for n in scope.time_columns)
    label = scope.label or (texts[0] if is_dated and len(texts) == 1 else "")
    has_names = label.casefold() == "name"
    is_asked = any(
        (has_names and scope.is_row(noun.word))
        or (is_bare and noun.kind in ("file", "person", "thing"))
        for _, noun in parts.every(Noun)
    )
    has_key = any(column.distinct >= scope.rows for column in scope.columns.values())
    is_repeated = bool(label) and scope.columns[label].distinct * 4 < scope.rows
    if is_asked and is_repeated and not has_key:
        raise UnfitError((), f"Say whether rows are counted or different `{label}`.")


def _check_deeds(parts: Phrases) -> None:
    """Refuse the number of rows where a deed may be counted by another column or table."""
    words, scope = parts.words, parts.scope
    deeds = {words.lower(at) for at in range(words.size)} & _DEEDS
    amounts = [name for name in scope.columns if name.casefold() in _SOLD]
    if deeds and (scope.other_nouns - scope.nouns or amounts):
        raise UnfitError(sorted(deeds), "Say which column or table counts it.")


def names_rows(parts: Phrases, word: str) -> bool:
    """Return whether a noun is in the name of the table or of one of its columns."""
    scope, noun = parts.scope, singular(word)
    is_known = scope.is_row(word) or noun in scope.side_nouns
    return is_known or any(noun in name_words(name) for name in scope.columns)


# -- rows ------------------------------------------------------------------------------------------


def _check_shown(reading: Rows | TableView, parts: Phrases) -> None:
    """Refuse columns that are shown by a noun alone: ``deaths`` is no ``death_date``.

    A column of yes and no beside conditions is a condition, and questions of yes or no are not
    answered by rows.
    """
    words = parts.words
    if words.says(0, _DOUBTS) and not words.says(1, "there you"):
        raise UnfitError(words.text, "It is a question of yes or no.")
    flags = [name for name in reading.columns if words.scope.flag_value(name) is not None]
    asks = any(mark.kind in ("which", "who") for _, mark in parts.every(Mark))
    if flags and len(flags) == len(reading.columns) and not asks:
        raise UnfitError(flags, "Say whether these rows are meant.")
    for _, operand in parts.every(Operand):
        if operand.distance < 2 or len(operand.names) != 1:
            continue
        name, word = operand.names[0], operand.phrase.casefold().split()[-1]
        is_shown = name in reading.columns and singular(word) != word
        if is_shown and parts.kind(name) == "time":
            raise UnfitError(operand.phrase)


_MOST_DESCRIBING = 2


def check_unused(parts: Phrases) -> tuple[str, ...]:
    """Use the words that may be left unused, and return them.

    Raises:
        UnfitError: If there are words that could change the answer.
    """
    marks = [(atom, mark) for atom, mark in parts.all(Mark) if mark.kind == "unused"]
    blocking = [mark.detail for atom, mark in marks if not _is_harmless(parts, atom)]
    if blocking:
        raise UnfitError(blocking)
    for atom, _ in marks:
        parts.use(atom)
    return tuple(mark.detail for _, mark in marks)


def _is_harmless(parts: Phrases, atom: Atom) -> bool:
    """Return whether a word is the name of some arithmetic."""
    words, at = parts.words, atom.start
    token = words.tokens[at]
    if token.kind != "word" or len(token.text) < 3:
        return False
    if words.senses(at) or words.columns(at) or words.values(at):
        return False
    return _is_described(parts, atom) or (token.text.islower() and _is_label(parts, atom))


def _is_described(parts: Phrases, atom: Atom) -> bool:
    """Return whether a word describes the value or column in parentheses after it."""
    words, opening = parts.words, atom.end
    unused = [other.start for other, mark in parts.every(Mark) if mark.kind == "unused"]
    while opening in unused and opening < atom.end + _MOST_DESCRIBING:
        opening += 1
    if words.lower(opening) != "(":
        return False
    inner = [other for other in parts.atoms if other.start > opening]
    closing = next((at for at, other in enumerate(inner) if words.lower(other.start) == ")"), 0)
    contents = [other.content for other in inner[:closing]]
    named = [content for content in contents if not isinstance(content, Mark)]
    is_only = all(c.kind == "filler" for c in contents if isinstance(c, Mark))
    if len(named) != 1 or not is_only:
        return False
    content = named[0]
    return isinstance(content, Operand) or (isinstance(content, Cond) and not content.is_negative)


def _is_label(parts: Phrases, atom: Atom) -> bool:
    """Return whether a word names the arithmetic that follows it in brackets or after a comma."""
    following = [other for other in parts.atoms if other.start >= atom.end]
    for other in following:
        if isinstance(other.content, Operand) and other.content.is_arithmetic:
            return True
        is_light = isinstance(other.content, Mark) and other.content.kind in ("filler", "unused")
        if not is_light and not isinstance(other.content, Operand | Fn):
            return False
    return False
