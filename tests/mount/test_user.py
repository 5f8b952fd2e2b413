"""A mount as an ordinary user, through fusermount3."""
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

import pytest

import harness
from harness import HFD, run

UID = GID = 65534
pytestmark = pytest.mark.asan


@pytest.fixture
def open_dev_fuse():
    """/dev/fuse for everybody, as on most systems; put back afterwards."""
    mode = stat.S_IMODE(os.stat("/dev/fuse").st_mode)
    if mode & 0o006 == 0o006:
        yield
        return
    try:
        os.chmod("/dev/fuse", mode | 0o666)
    except OSError as error:
        pytest.skip(f"/dev/fuse is closed to ordinary users and cannot be opened: {error}")
    yield
    os.chmod("/dev/fuse", mode)


@pytest.fixture
def home():
    """A folder that an ordinary user owns and can reach, with a copy of the program."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hfd-user-", dir="/tmp"))
    folder.chmod(0o755)
    shutil.copy(HFD, folder / "hfdeltafs")
    (folder / "hfdeltafs").chmod(0o755)
    for name in ("home", "bucket", "point", "run"):
        (folder / name).mkdir()
        os.chown(folder / name, UID, GID)
    yield folder
    harness.detach(folder / "point")
    for pid in harness.processes_about(folder):
        harness.stop_process(pid)
    shutil.rmtree(folder, ignore_errors=True)


def test_an_ordinary_user_mounts_publishes_and_unmounts(open_dev_fuse, home):
    if os.getuid() != 0:
        as_user, environment = [], {}
    else:
        if not shutil.which("setpriv"):
            pytest.skip("setpriv (util-linux) is missing: no way to become an ordinary user")
        as_user = ["setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups", "--"]
        environment = {"HOME": str(home / "home"), "USER": "nobody", "XDG_RUNTIME_DIR": str(home / "run")}
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            environment[name] = str(home / "home" / name.lower())
    helper = shutil.which("fusermount3")
    if not helper or (os.getuid() == 0 and not os.stat(helper).st_mode & stat.S_ISUID):
        pytest.skip("fusermount3 is missing or not set-uid root: ordinary users cannot mount here")

    def user(*arguments, code=0):
        done = run([*as_user, *arguments], env=environment, cwd="/")
        assert done.code == code, (arguments, done.code, done.out, done.err)
        return done

    program, bucket, point = home / "hfdeltafs", home / "bucket", home / "point"
    # No --cache-dir: the default places below the user's home must work too.
    user(program, "mount", bucket, point, "--bucket", bucket, "-o", harness.NO_QUIET)
    assert harness.mount_type(point) == "fuse.hfdeltafs"
    user("sh", "-c", f"printf hello > {point}/a.txt && mkdir {point}/d && head -c 300000 /dev/urandom > {point}/d/b.bin")
    version = user(program, "commit", point).out.strip()
    assert len(version) == 64
    assert user("cat", point / "a.txt").out == "hello"
    assert user("cat", f"{point}/.hfdelta/versions/{version}/a.txt").out == "hello"
    assert version in user(program, "status", point, "--json").out
    owner = user("stat", "-c", "%u %a", point / "a.txt").out.split()
    assert owner[0] == str(UID if os.getuid() == 0 else os.getuid())
    if os.getuid() == 0:
        # Without allow_other even root cannot look in; that is the kernel's rule for a user's own mount.
        assert subprocess.run(["ls", point], stderr=subprocess.DEVNULL).returncode != 0
        caches = [p for p in (home / "home").rglob("*") if p.is_dir() and p.name == "hfdeltafs"]
        assert caches, "cache and staging belong below the user's home"
        for folder in caches:
            assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0, f"{folder} is private to the user"
            assert folder.stat().st_uid == UID
    user(program, "umount", point)
    assert not harness.is_mounted(point)
    assert not harness.processes_about(point)

