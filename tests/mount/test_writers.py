"""Ordinary programs write into the mount; what they wrote is there at once, and on a second mount after commit."""
import concurrent.futures
import errno
import fcntl
import hashlib
import mmap
import os
import random
import shutil
import sqlite3
import subprocess
import time
import zipfile

import pytest

import harness
from harness import MIB, noise, run, tool

pytestmark = pytest.mark.asan


class Pair:
    """One writing mount and one reading mount of the same bucket, used by all tests of this file."""

    def __init__(self, mounts):
        self.writer, self.reader = mounts.mount("writer"), mounts.reader("reader")

    def folder(self, name):
        os.mkdir(self.writer / name)
        return self.writer / name

    def arrives(self, name):
        """Commits and waits until the reader shows that version; returns (commit row, the folder there)."""
        row = self.writer.commit()
        took = harness.wait_for(lambda: self.reader.status()["version"] == row["version"], 5, "the second mount to see the version")
        return row, self.reader / name, took

    def same_on_both(self, name, want):
        """The tree below `name` is `want` ({path: bytes}) here now, and there after a commit."""
        sums = {path: hashlib.sha256(data).hexdigest() for path, data in want.items()}
        assert harness.tree(self.writer / name) == sums
        row, there, _ = self.arrives(name)
        assert harness.tree(there) == sums
        assert harness.tree(self.writer / name) == sums, "the writer's own view after the publish"
        return row


@pytest.fixture(scope="module")
def pair(module_mounts):
    return Pair(module_mounts)


@pytest.fixture
def sources(tmp_path):
    """A plain folder with files of several sizes, one below 64 KiB, one of some blocks, an empty one."""
    folder = tmp_path / "src"
    (folder / "sub" / "deep").mkdir(parents=True)
    contents = {"small.json": b'{"x": 1}\n', "big.bin": noise(900_001, 1), "empty": b"", "sub/deep/b.bin": noise(300_000, 2)}
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    os.utime(folder / "big.bin", ns=(1_700_000_000_000_000_000, 1_700_000_000_123_456_789))
    return folder, contents


def test_cp_r(pair, sources):
    folder, contents = sources
    run(["cp", "-r", folder, pair.writer / "cp-r"], check=True)
    pair.same_on_both("cp-r", contents)


def test_cp_p_keeps_times_and_modes(pair, sources):
    folder, contents = sources
    os.chmod(folder / "small.json", 0o640)
    os.chmod(folder / "big.bin", 0o755)
    run(["cp", "-rp", folder, pair.writer / "cp-p"], check=True)
    here = os.stat(pair.writer / "cp-p" / "big.bin")
    assert here.st_mtime_ns == 1_700_000_000_123_456_789
    assert os.stat(pair.writer / "cp-p" / "small.json").st_mode & 0o777 == 0o640
    pair.same_on_both("cp-p", contents)
    there = os.stat(pair.reader / "cp-p" / "big.bin")
    assert there.st_mtime_ns // 10**9 == 1_700_000_000
    assert there.st_mode & 0o111, "executable or not is kept"
    assert not os.stat(pair.reader / "cp-p" / "small.json").st_mode & 0o111


def test_rsync_a_copies_once(pair, sources):
    folder, contents = sources
    target = pair.folder("rsync")
    run([tool("rsync"), "-a", f"{folder}/", f"{target}/"], check=True)
    again = run(["rsync", "-ai", f"{folder}/", f"{target}/"], check=True)
    assert again.out == "", f"the second rsync must find nothing to do: {again.out}"
    pair.same_on_both("rsync", contents)
    again = run(["rsync", "-ai", f"{folder}/", f"{target}/"], check=True)
    assert again.out == "", f"nor after the publish: {again.out}"


def test_rsync_inplace(pair, sources):
    folder, contents = sources
    target = pair.folder("inplace")
    run([tool("rsync"), "-a", f"{folder}/", f"{target}/"], check=True)
    pair.same_on_both("inplace", contents)
    changed = bytearray(contents["big.bin"])
    changed[400_000:400_100] = bytes(100)
    contents = {**contents, "big.bin": bytes(changed[:700_000])}
    (folder / "big.bin").write_bytes(contents["big.bin"])
    run(["rsync", "-a", "--inplace", "--no-whole-file", f"{folder}/", f"{target}/"], check=True)
    row = pair.same_on_both("inplace", contents)
    assert row["stored_bytes"] < 20_000, "a small change in place is a small delta"


def test_install_mv_and_tar(pair, sources, tmp_path):
    folder, contents = sources
    target = pair.folder("tools")
    run(["install", "-m", "640", folder / "big.bin", target / "big.bin"], check=True)
    shutil.copy(folder / "small.json", tmp_path / "moved")
    run(["mv", tmp_path / "moved", target / "small.json"], check=True)
    run(["tar", "-C", folder, "-cf", tmp_path / "t.tar", "sub", "empty"], check=True)
    run(["tar", "-C", target, "-xf", tmp_path / "t.tar"], check=True)
    pair.same_on_both("tools", contents)


def test_safetensors_save_file_and_saving_over_a_loaded_file(pair):
    """It makes a temporary file, renames it before it closes it; and case 31: load, change, save to the same path."""
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
    path = pair.folder("save") / "model.safetensors"
    tensors = {"a": numpy.arange(200_000, dtype=numpy.float32).reshape(400, 500), "b": numpy.ones(7, dtype=numpy.int8)}
    save_file(tensors, path, metadata={"step": "1"})
    one = path.read_bytes()
    with safe_open(path, framework="np") as old:
        tensors = {name: old.get_tensor(name) for name in old.keys()}
        tensors["a"][0, :10] += 1
        save_file(tensors, path, metadata={"step": "2"})
        assert float(old.get_tensor("a")[0, 1]) == 1.0, "the old map stays valid"
    two = path.read_bytes()
    assert two != one and len(os.listdir(path.parent)) == 1
    row = pair.same_on_both("save", {"model.safetensors": two})
    assert row["files"] >= 1
    loaded = load_file(pair.reader / "save" / "model.safetensors")
    assert (loaded["a"] == tensors["a"]).all()
    assert os.stat(pair.reader / "save" / "model.safetensors").st_mode & 0o044 == 0o044, "case 30: others can read it"


def test_seeking_writers(pair, sources):
    folder, _ = sources
    target = pair.folder("seek")
    with zipfile.ZipFile(target / "z.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "big.bin", "big.bin")
        archive.writestr("x", b"y" * 100_000)
    assert zipfile.ZipFile(target / "z.zip").testzip() is None
    (target / "dd").write_bytes(bytes(200_000))
    run(["dd", f"if={folder}/big.bin", f"of={target}/dd", "conv=notrunc", "bs=1000", "seek=50", "count=10"], check=True)
    run(["dd", f"if={folder}/big.bin", f"of={target}/sparse", "bs=1", "seek=700000", "count=5"], check=True)
    big = (folder / "big.bin").read_bytes()
    pair.same_on_both("seek", {
        "z.zip": (target / "z.zip").read_bytes(),
        "dd": bytes(50_000) + big[:10_000] + bytes(140_000),
        "sparse": bytes(700_000) + big[:5],
    })
    assert zipfile.ZipFile(pair.reader / "seek" / "z.zip").testzip() is None


def test_editors(pair):
    target = pair.folder("edit")
    (target / "a.txt").write_text("one two\nthree\n")
    run(["sed", "-i", "s/two/2/", target / "a.txt"], check=True)
    vim = shutil.which("vim") or tool("vim.tiny")
    run([vim, "-u", "NONE", "-N", "-es", "-c", "1s/one/1/", "-c", "wq", target / "a.txt"], check=True)
    with open(target / "b.txt", "w") as file:
        file.write("to be cut")
    with open(target / "b.txt", "r+") as file:
        file.truncate(0)
    with open(target / "c.txt", "a") as file:
        file.write("x")
    with open(target / "c.txt", "a") as file:
        file.write("y")
    (target / ".c.txt.swp").write_text("an editor's own")
    here = harness.tree(target)
    assert set(here) == {"a.txt", "b.txt", "c.txt", ".c.txt.swp"}
    pair.arrives("edit")
    assert (pair.reader / "edit" / "a.txt").read_text() == "1 2\nthree\n"
    assert (pair.reader / "edit" / "b.txt").read_text() == ""
    assert (pair.reader / "edit" / "c.txt").read_text() == "xy"
    assert sorted(os.listdir(pair.reader / "edit")) == ["a.txt", "b.txt", "c.txt"], "temporary names are never published"
    assert (target / ".c.txt.swp").read_text() == "an editor's own"


def test_sqlite(pair):
    path = pair.folder("sqlite") / "db.sqlite"
    run([tool("sqlite3"), path, "create table t(x); begin; insert into t values(1),(2); commit; delete from t where x=1;"],
        check=True)
    with sqlite3.connect(path) as database:
        database.executemany("insert into t values(?)", [(i,) for i in range(3000)])
    database.close()  # the context manager only commits; an open file would be held back, and rightly
    assert run(["sqlite3", path, "pragma integrity_check; select count(*) from t;"], check=True).out.split() == ["ok", "3001"]
    row, there, _ = pair.arrives("sqlite")
    assert there.joinpath("db.sqlite").read_bytes() == path.read_bytes()
    assert run(["sqlite3", f"file:{there}/db.sqlite?immutable=1", "select count(*) from t;"], check=True).out.split() == ["3001"]


def test_git(pair):
    target = pair.folder("git")
    (target / "file").write_text("content\n")
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"], ["fsck", "--strict"]):
        run([tool("git"), "-C", target, *command], check=True)
    assert run(["git", "-C", target, "status", "--porcelain"], check=True).out == ""
    shutil.rmtree(target / ".git")
    pair.same_on_both("git", {"file": b"content\n"})


def test_a_folder_rename_is_a_commit_step_and_sends_nothing_twice(pair):
    """Case 32: tmp-checkpoint -> checkpoint-1, at once, with dirty files inside."""
    target = pair.folder("rename")
    os.mkdir(target / "tmp-1")
    contents = {f"w{i}.bin": noise(500_000, 50 + i) for i in range(3)}
    for name, data in contents.items():
        (target / "tmp-1" / name).write_bytes(data)
    os.rename(target / "tmp-1", target / "checkpoint-1")
    assert os.listdir(target) == ["checkpoint-1"]
    row = pair.same_on_both("rename", {f"checkpoint-1/{n}": d for n, d in contents.items()})
    assert row["stored_bytes"] <= 1.05 * sum(map(len, contents.values()))
    os.rename(target / "checkpoint-1", target / "best")
    row = pair.same_on_both("rename", {f"best/{n}": d for n, d in contents.items()})
    assert row["stored_bytes"] < 4096, "a rename of published files stores nothing"


def test_a_copy_inside_the_mount_stores_nearly_nothing(pair):
    """Case 42."""
    target = pair.folder("copy")
    data = noise(4 * MIB, 77)
    (target / "a.bin").write_bytes(data)
    pair.arrives("copy")
    run(["cp", target / "a.bin", target / "b.bin"], check=True)
    row = pair.same_on_both("copy", {"a.bin": data, "b.bin": data})
    assert row["stored_bytes"] < 65_536


def test_rename_over_unlink_and_open_descriptors(pair):
    target = pair.folder("posix")
    (target / "a").write_bytes(b"A" * 100_000)
    (target / "b").write_bytes(b"B" * 50_000)
    with open(target / "a", "rb") as old:
        os.replace(target / "b", target / "a")
        assert (target / "a").read_bytes() == b"B" * 50_000
        assert old.read() == b"A" * 100_000
    with open(target / "gone", "w+b") as file:
        file.write(b"x" * 10)
        os.unlink(target / "gone")
        file.seek(0)
        assert file.read() == b"x" * 10
        file.write(b"y")
    with pytest.raises(OSError) as error:
        os.mkdir(target / "a")
    assert error.value.errno == errno.EEXIST
    os.mkdir(target / "d")
    (target / "d" / "x").write_bytes(b"1")
    with pytest.raises(OSError) as error:
        os.rmdir(target / "d")
    assert error.value.errno == errno.ENOTEMPTY
    with pytest.raises(OSError) as error:
        os.open(target / "a", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    assert error.value.errno == errno.EEXIST
    with pytest.raises(OSError) as error:
        os.rename(target / "d", target / "d" / "inner")
    assert error.value.errno == errno.EINVAL
    with pytest.raises(OSError) as error:
        open(target / ("n" * 256), "w")
    assert error.value.errno == errno.ENAMETOOLONG
    pair.same_on_both("posix", {"a": b"B" * 50_000, "d/x": b"1"})


def test_symlinks_links_and_empty_folders(pair):
    target = pair.folder("links")
    (target / "real").write_bytes(b"content")
    os.symlink("real", target / "soft")
    os.makedirs(target / "empty" / "inner")
    try:
        os.link(target / "real", target / "hard")
        assert (target / "hard").read_bytes() == b"content"
    except OSError as error:
        assert error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK), errno.errorcode[error.errno]
    here = harness.tree(target)
    assert here["soft"] == "link -> real" and here["empty/inner"] == "folder"
    _, there, _ = pair.arrives("links")
    assert harness.tree(there) == here


def test_maps_that_write(pair):
    target = pair.folder("mmap")
    (target / "m").write_bytes(bytes(300_000))
    with open(target / "m", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[100_000:100_005] = b"hello"
        view.flush()
    want = bytes(100_000) + b"hello" + bytes(199_995)
    pair.same_on_both("mmap", {"m": want})
    with open(target / "m", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[0:3] = b"abc"
    pair.same_on_both("mmap", {"m": b"abc" + want[3:]})


def test_fallocate_statfs_and_times(pair):
    target = pair.folder("misc")
    with open(target / "f", "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, 100_000)
            assert os.fstat(file.fileno()).st_size == 100_000
        except OSError as error:
            assert error.errno in (errno.ENOTSUP, errno.EINVAL)
    numbers = os.statvfs(target)
    assert numbers.f_bavail > 0 and numbers.f_blocks >= numbers.f_bavail and numbers.f_namemax == 255
    os.utime(target / "f", ns=(5, 1_500_000_000_000_000_007))
    assert os.stat(target / "f").st_mtime_ns == 1_500_000_000_000_000_007
    os.chmod(target / "f", 0o600)
    os.chown(target / "f", os.getuid(), os.getgid())
    assert os.stat(target / "f").st_mode & 0o777 == 0o600


def test_deep_folders_and_many_files(pair):
    """Cases 46 and 53."""
    target = pair.folder("many")
    deep = "/".join(f"level{i}" for i in range(40))
    os.makedirs(target / deep)
    (target / deep / "leaf").write_bytes(b"leaf")
    for i in range(1000):
        (target / f"f{i:04d}").write_bytes(b"%d" % i)
    assert len(os.listdir(target)) == 1001
    _, there, _ = pair.arrives("many")
    assert len(os.listdir(there)) == 1001
    assert all((there / f"f{i:04d}").read_bytes() == b"%d" % i for i in range(0, 1000, 37))
    assert (there / deep / "leaf").read_bytes() == b"leaf"
    shutil.rmtree(target)
    pair.arrives("many")
    harness.wait_for(lambda: not os.path.exists(pair.reader / "many"), 2, "the second mount to forget the folder")


def test_flock_and_fcntl_locks_between_processes(pair):
    """Case 43."""
    target = pair.folder("locks")
    path = target / "l"
    path.write_text("")
    with open(path) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run(["flock", "-n", path, "true"]).code == 1
        fcntl.flock(held, fcntl.LOCK_UN)
        assert run(["flock", "-n", path, "true"]).code == 0
    program = "import fcntl,sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with open(path, "r+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        assert run([harness.python_of_venv(), "-c", program, path]).code == 1
        fcntl.lockf(held, fcntl.LOCK_UN)
        assert run([harness.python_of_venv(), "-c", program, path]).code == 0


def test_a_blocking_flock_waits_without_stopping_other_files(pair):
    target = pair.folder("wait")
    (target / "l").write_text("")
    (target / "other").write_text("free")
    holder = subprocess.Popen(["flock", target / "l", "sleep", "1.5"])
    time.sleep(0.3)
    started = time.monotonic()
    waiters = [subprocess.Popen(["flock", target / "l", "true"]) for _ in range(12)]
    time.sleep(0.2)
    assert (target / "other").read_text() == "free"
    os.listdir(target)
    assert time.monotonic() - started < 1, "waiting lockers must not use up the daemon's threads"
    assert all(w.wait(20) == 0 for w in waiters)
    holder.wait()
    assert time.monotonic() - started > 0.8


def test_writers_at_the_same_time(pair):
    target = pair.folder("parallel")

    def write(i):
        data = noise(200_000 + i, 900 + i)
        temporary = target / f".part{i}.tmp"
        with open(temporary, "wb") as file:
            for at in range(0, len(data), 7001):
                file.write(data[at:at + 7001])
        os.replace(temporary, target / f"p{i}")
        return f"p{i}", data

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        contents = dict(pool.map(write, range(24)))
    pair.same_on_both("parallel", contents)


def random_change(rng, path, want):
    """One random operation on the file and on the model of it; returns the model."""
    kind, offset = rng.randrange(6), rng.randrange(0, 400_000)
    size = rng.randrange(1, 60_000)
    if kind <= 2:
        data = rng.randbytes(size)
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(data)
        want = want.ljust(offset, b"\0")
        return want[:offset] + data + want[offset + size:]
    if kind == 3:
        os.truncate(path, offset)
        return want[:offset].ljust(offset, b"\0")
    if kind == 4 and want:
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
            at = rng.randrange(len(want))
            view[at:at + 1] = b"!"
        return want[:at] + b"!" + want[at + 1:]
    with open(path, "rb") as file:
        assert os.pread(file.fileno(), size, offset) == want[offset:offset + size]
    return want


def test_random_operations_agree_with_a_model(pair):
    """fsx in small: writes, truncations, maps and reads of one file, published now and then."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    path, want = pair.folder("fsx") / "file", b""
    path.write_bytes(b"")
    for step in range(600):
        want = random_change(rng, path, want)
        if step % 20 == 0:
            assert path.read_bytes() == want, f"seed {seed}, step {step}"
        if step % 150 == 149:
            _, there, _ = pair.arrives("fsx")
            assert (there / "file").read_bytes() == want, f"seed {seed}, step {step}, second mount"
    pair.same_on_both("fsx", {"file": want})
