"""Fixtures of the mount tests, and the rules for all of them: skip loudly without /dev/fuse, a time limit for each test,
nothing left mounted, no report of a sanitizer."""
import os
import pathlib
import shutil
import subprocess

import pytest

import harness
from harness import HFD, SHARED, Mount, hfd


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="long tests too")
    parser.addoption("--sanitizer", action="store_true", help="the program is built with sanitizers: slower limits, reports fail")


def pytest_configure(config):
    if config.getoption("--sanitizer"):
        config.sanitizer_logs = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"hfd-sanitizer-{os.getpid()}"
        config.sanitizer_logs.mkdir(mode=0o777, exist_ok=True)
        config.sanitizer_logs.chmod(0o777)
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            os.environ[name] = f"{os.environ.get(name, '')}:log_path={config.sanitizer_logs}/report".lstrip(":")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if not os.path.exists("/dev/fuse"):
            item.add_marker(pytest.mark.skip(reason="/dev/fuse is missing: mount tests cannot run here"))
        if item.get_closest_marker("full") and not config.getoption("--full"):
            item.add_marker(pytest.mark.skip(reason="long: runs with tools/test --full"))


def pytest_sessionfinish(session):
    for mount in list(Mount.live):
        mount.end()
    logs = getattr(session.config, "sanitizer_logs", None)
    if logs and not any(logs.iterdir()):
        logs.rmdir()


@pytest.fixture(scope="session", autouse=True)
def program():
    assert HFD.exists(), f"the program is missing: {HFD} (HFD_BINARY names it)"
    return HFD


@pytest.fixture(autouse=True)
def limits(request):
    """A time limit, and the sanitizers' reports."""
    marker = request.node.get_closest_marker("limit")
    slower = 4 if request.config.getoption("--sanitizer") else 1
    seconds = slower * (marker.args[0] if marker else 120)
    logs = getattr(request.config, "sanitizer_logs", None)
    before = set(logs.iterdir()) if logs else set()
    watchdog = harness.Watchdog(seconds)
    yield
    watchdog.stop()
    assert not watchdog.fired, f"no end after {seconds} s: the daemons of this test were killed"
    if logs:
        for report in sorted(set(logs.iterdir()) - before):
            text = report.read_text(errors="replace")
            pytest.fail(f"the sanitizer reported ({report}):\n{text[:6000]}")


class Mounts:
    """Makes mounts in a folder of the test; ends them all."""

    def __init__(self, folder):
        self.folder, self.made = pathlib.Path(folder), []
        self.bucket = self.folder / "bucket"
        self.bucket.mkdir()

    def mount(self, name="m", *, bucket=None, source=None, options=(), quiet=True, cache=None, **keywords):
        """A mount of the bucket with a cache folder of its own, started."""
        bucket = bucket or self.bucket
        options = [*options, *(["-o", harness.NO_QUIET] if quiet else [])]
        if source is None:
            source, options = bucket, [*options, "--bucket", bucket]
        mount = Mount(source, self.folder / name, cache or self.folder / f"{name}.local", *options, **keywords)
        self.made.append(mount)
        return mount.start()

    def reader(self, name="n", **keywords):
        """A second, read-only mount with an empty cache."""
        keywords.setdefault("source", self.bucket)
        return self.mount(name, options=["--read-only", *keywords.pop("options", [])], quiet=False, **keywords)

    def end(self):
        for mount in reversed(self.made):
            mount.end()


@pytest.fixture
def mounts(tmp_path):
    made = Mounts(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="module")
def module_mounts(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("shared-mounts")
    made = Mounts(folder)
    yield made
    made.end()
    if not request.session.testsfailed:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cases():
    folder = SHARED / "cases"
    if not (folder / "inputs" / "expected.json").exists():
        pytest.skip(f"the cases are not there: {folder} (HFD_SHARED names the folder)")
    return folder


CORPUS_NAMES = ["base", "rl1e6_s1", "rl1e6_s8", "rl1e6_s24", "rl1e6_s39", "rl1e6_s40", "rl1e6_s41"]


class Corpus:
    """The small real model and its steps, unpacked."""

    def __init__(self, folder):
        self.names, self.steps = CORPUS_NAMES, folder
        self.model = SHARED / "corpus" / "qwen3-tiny"
        sums = (SHARED / "corpus" / "SHA256SUMS").read_text().split("\n")
        self.sha256 = {line.split()[1]: line.split()[0] for line in sums if line.strip()}

    def weights(self, name):
        return self.model / "model.safetensors" if name == "base" else self.steps / f"{name}.safetensors"

    def folder(self, name, where):
        """A whole model folder of a version, made of hard links or copies."""
        where.mkdir(parents=True, exist_ok=True)
        for path in self.model.iterdir():
            source = self.weights(name) if path.name == "model.safetensors" else path
            shutil.copyfile(source, where / path.name)
        return where


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    if not (SHARED / "corpus" / "unpack.py").exists():
        pytest.skip(f"the corpus is not there: {SHARED / 'corpus'} (HFD_SHARED names the folder)")
    folder = tmp_path_factory.mktemp("corpus")
    subprocess.run(["python3", SHARED / "corpus" / "unpack.py", folder, *CORPUS_NAMES[1:]], check=True,
                   stdout=subprocess.DEVNULL)
    yield Corpus(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def one_version(tmp_path):
    """A bucket with one small published version: (bucket, source folder, version id)."""
    folder, bucket = tmp_path / "source", tmp_path / "published"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(
        harness.safetensors_bytes({"w": ("BF16", [512, 1024], harness.noise(1 << 20, 1))}))
    (folder / "config.json").write_text('{"a": 1}\n')
    version = hfd("publish", folder, bucket, "-m", "first").out.strip()
    return bucket, folder, version
