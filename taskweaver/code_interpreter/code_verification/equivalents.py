"""Functions of libraries that do the same as a forbidden function.

A policy names functions; the same act has other doors. The table is advice, like the whole check:
it warns the model early, and is neither complete nor a wall.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from taskweaver.tables.names import KERNEL_FUNCTIONS

_FILE_MODULES = frozenset("builtins io os pathlib shutil codecs tempfile".split())
_NETWORK_MODULES = frozenset("socket ssl http urllib requests httpx aiohttp ftplib".split())
ADDRESS = re.compile(r"(?:https?|ftps?|s3|gs|az|abfss?|hdfs)://", re.IGNORECASE)
_PATH_KEYWORDS = frozenset("path path_or_buf path_or_buffer buf fname file filepath".split())


class _Act(NamedTuple):
    """Something that a policy may forbid.

    Attributes:
        does: Verb and object.
        signs: Functions of which a policy that forbids the act blocks one.
        doors: Functions that do it: the last two parts of a dotted name, or ``.method``.
    """

    does: str
    signs: frozenset[str]
    doors: frozenset[str]


_EVALUATE = _Act(
    "runs text as code",
    frozenset("eval exec compile execfile".split()),
    frozenset(
        "testing.runstring testing.rundocs utils.runstring typing.get_type_hints typing.ForwardRef"
        " typing._eval_type cProfile.run cProfile.runctx profile.run profile.runctx pdb.run"
        " pdb.runeval pdb.runcall bdb.Bdb doctest.testfile doctest.testmod code.interact"
        " code.InteractiveInterpreter code.InteractiveConsole codeop.compile_command"
        " imp.load_source util.spec_from_file_location machinery.SourceFileLoader"
        " .run_line_magic .run_cell_magic .exec_module".split()
    ),
)
_UNPICKLE = _Act(
    "reads a pickle, which may run code",
    _EVALUATE.signs | frozenset("pickle.load pickle.loads .read_pickle".split()),
    frozenset(
        "pickle.load pickle.loads pickle.Unpickler pickle._loads marshal.loads marshal.load"
        " joblib.load dill.load dill.loads cloudpickle.load cloudpickle.loads torch.load"
        " shelve.open yaml.unsafe_load yaml.full_load jsonpickle.decode .read_pickle".split()
    ),
)
_OPEN = _Act(
    "opens a file",
    frozenset({"open"}),
    frozenset(
        "io.open io.open_code io.FileIO _io.open _io.FileIO codecs.open os.open os.fdopen"
        " tokenize.open fileinput.input fileinput.FileInput linecache.getline"
        " linecache.getlines".split()
    ),
)
_READ = _Act(
    "reads a file",
    frozenset(
        ".read_csv pandas.read_csv .read_excel pandas.read_excel .read_table"
        " pandas.read_table".split()
    ),
    frozenset(KERNEL_FUNCTIONS),
)
_DELETE = _Act(
    "takes files away or writes over them",
    frozenset("os.remove os.unlink .unlink shutil.rmtree".split()),
    frozenset(
        "os.remove os.unlink os.rmdir os.removedirs os.rename os.renames os.replace os.truncate"
        " os.ftruncate shutil.rmtree shutil.move .unlink .rmdir send2trash.send2trash"
        " dir_util.remove_tree file_util.move_file".split()
    ),
)
_WRITE = _Act(
    "writes a file",
    frozenset({"open"}),
    frozenset(
        ".write_text .write_bytes .touch .symlink_to .hardlink_to .save .savez .savez_compressed"
        " .savetxt .savefig .tofile .to_excel .to_parquet .to_feather .to_orc .to_hdf .to_stata"
        " .to_pickle .to_file .write_csv .write_parquet .write_ipc .write_image .extractall"
        " numpy.memmap lib.format pandas.ExcelWriter pandas.HDFStore joblib.dump torch.save"
        " shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.mkdir os.makedirs os.link"
        " os.symlink os.write logging.FileHandler sqlite3.connect zipfile.ZipFile"
        " tarfile.open".split()
    ),
)
_TEXT_WRITERS = frozenset(
    "to_csv to_json to_html to_latex to_markdown to_string to_xml write_html write_json".split()
)
"""Methods that return a text unless they are given a path."""
_TEXT_FUNCTIONS = frozenset(
    "print str repr len startswith endswith contains removeprefix removesuffix replace split"
    " partition match fullmatch search findall sub compile count find join format eq ne".split()
)
"""Functions that take an address as a text, and connect to nothing."""


class ForbiddenDoors:
    """The functions equivalent to the functions that a policy forbids."""

    def __init__(
        self,
        blocked_functions: Collection[str],
        blocked_modules: Collection[str],
        allowed_modules: Collection[str] | None,
        allowed_functions: Collection[str] | None,
    ) -> None:
        """Find the acts that a policy forbids.

        Writing counts as forbidden if the policy blocks ``open`` and lets no module of files be
        imported; connecting, if it lets no module of networks be imported.
        """
        blocked = set(blocked_functions)

        def has_none(modules: frozenset[str]) -> bool:
            if allowed_modules is not None:
                return modules.isdisjoint(allowed_modules)
            return modules <= set(blocked_modules)

        self._forbids_writing = "open" in blocked and has_none(_FILE_MODULES - {"builtins"})
        self.forbids_network = has_none(_NETWORK_MODULES)
        acts = [act for act in (_EVALUATE, _UNPICKLE, _OPEN, _READ, _DELETE) if act.signs & blocked]
        acts += [_WRITE] if self._forbids_writing else []
        allowed = set(allowed_functions or ())
        self._doors = {
            door: act.does
            for act in acts
            for door in act.doors
            if door.removeprefix(".").rpartition(".")[2] not in allowed
        }

    def problems(self, place: str) -> Iterator[str]:
        """Yield the reason why a function or attribute with this dotted name is not allowed."""
        parts = place.split(".")
        for name in (".".join(parts[-2:]), f".{parts[-1]}"):
            if name in self._doors:
                yield f"{name.removeprefix('.')!r} {self._doors[name]}, which the policy forbids"
                return

    def call_problems(
        self, name: str | None, first: object, keywords: Collection[str | None], *, has_args: bool
    ) -> Iterator[str]:
        """Yield the reasons why a call is not allowed, from the arguments.

        `name` is the last part of the function's name, `first` the first argument if constant.
        """
        has_path = has_args or not _PATH_KEYWORDS.isdisjoint(item or "" for item in keywords)
        if self._forbids_writing and name in _TEXT_WRITERS and has_path:
            yield f"{name!r} with a path writes a file, which the policy forbids"
        is_address = isinstance(first, str) and ADDRESS.match(first) is not None
        if self.forbids_network and is_address and name not in _TEXT_FUNCTIONS:
            yield "reading from an address on the network is not allowed by the policy"
