"""A native thread belongs to the file whose code it was started with; an unknown one refuses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from kernels import answers, forked, needs_thread_owners, run

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.kernel.kernel import Kernel

pytestmark = needs_thread_owners

SOURCE = """
#include <pthread.h>
#include <semaphore.h>
static sem_t end;
static pthread_t thread;
static void *routine(void *unused) { sem_wait(&end); return unused; }
int begin(void) { sem_init(&end, 0, 0); return pthread_create(&thread, 0, routine, 0); }
int finish(void) { sem_post(&end); return pthread_join(thread, 0); }
"""


def compiled(compiler: str | None, source: Path) -> Path:
    """Return the shared library of a source with a thread of its own."""
    if compiler is None:
        pytest.skip("there is no compiler")
    made = source.with_suffix(".so")
    subprocess.run([compiler, "-shared", "-fPIC", "-pthread", "-o", made, source], check=True)
    return made


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("library") / "own.c"
    source.write_text(SOURCE)
    return compiled(shutil.which("gcc") or shutil.which("cc"), source)


CPP_SOURCE = """
#include <condition_variable>
#include <mutex>
#include <thread>
static std::mutex mutex; static std::condition_variable woken; static bool ended = false;
static std::thread thread;
extern "C" int begin() {
    thread = std::thread([] {
        std::unique_lock<std::mutex> lock(mutex);
        woken.wait(lock, [] { return ended; });
    });
    return 0;
}
extern "C" int finish() {
    { std::lock_guard<std::mutex> lock(mutex); ended = true; }
    woken.notify_all(); thread.join(); return 0;
}
"""


def test_a_thread_of_the_cpp_library_belongs_to_the_file_that_started_it(
    fresh: Kernel, tmp_path: Path
) -> None:
    (tmp_path / "own.cpp").write_text(CPP_SOURCE)
    made = compiled(shutil.which("g++"), tmp_path / "own.cpp")
    begin(fresh, made)
    for _ in range(2):
        with pytest.raises(ForkRefused, match=f"the library {made} has 1 thread"):
            fresh.snapshot()
    run(fresh, "own.finish()")
    child = forked(fresh, tmp_path.name)
    assert answers(child)
    child.stop()


def begin(client: Kernel, library: Path) -> None:
    code = f"import ctypes; own = ctypes.CDLL({str(library)!r}); own.begin()"
    assert run(client, code).output == 0


@pytest.mark.parametrize("place", ["libarrow.so.2600", "pyarrow/libarrow.so.2600"])
def test_the_name_of_a_known_library_in_another_folder_is_refused(
    fresh: Kernel, tmp_path: Path, library: Path, place: str
) -> None:
    pytest.importorskip("pyarrow")
    copy = tmp_path / place
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(library, copy)
    run(fresh, "import pyarrow.csv, io; pyarrow.csv.read_csv(io.BytesIO(b'a\\n1\\n')).num_rows")
    begin(fresh, copy)
    with pytest.raises(ForkRefused, match=f"the library {copy} has 1 thread"):
        fresh.snapshot()


def test_words_of_an_earlier_thread_on_the_same_stack_do_not_count(
    fresh: Kernel, tmp_path: Path, library: Path
) -> None:
    other = tmp_path / "libother.so"
    shutil.copy(library, other)
    begin(fresh, library)
    run(fresh, "own.finish()")
    begin(fresh, other)
    with pytest.raises(ForkRefused) as refusal:
        fresh.snapshot()
    assert refusal.value.reasons == [f"the library {other} has 1 thread"]
    run(fresh, "own.finish()")
    child = forked(fresh, tmp_path.name)
    begin(child, library)
    with pytest.raises(ForkRefused, match=f"the library {library} has 1 thread"):
        child.snapshot()
    child.stop()


def test_a_version_older_than_the_measured_one_is_refused(fresh: Kernel) -> None:
    pytest.importorskip("pyarrow")
    run(fresh, "import pyarrow.csv, io; pyarrow.csv.read_csv(io.BytesIO(b'a\\n1\\n')).num_rows")
    run(fresh, "pyarrow.__version__ = '9.0.0'")
    with pytest.raises(ForkRefused, match=r"Arrow has \d+ threads: a fork needs pyarrow 26.0"):
        fresh.snapshot()


def test_without_a_calibration_every_native_thread_is_refused(fresh: Kernel) -> None:
    pytest.importorskip("pyarrow")
    run(fresh, "import os; confstr = os.confstr; os.confstr = lambda name: 'another 1.2'")
    run(fresh, "import pyarrow.csv, io; pyarrow.csv.read_csv(io.BytesIO(b'a\\n1\\n')).num_rows")
    with pytest.raises(ForkRefused, match=r"\d+ threads? of an unknown library"):
        fresh.snapshot()
    run(fresh, "os.confstr = confstr")
    fresh.snapshot().close()
