"""Wrong uses: each ends in one clear line and its exit code. And damage: never wrong bytes, always named."""
import errno
import json
import os
import pathlib
import subprocess

import pytest

import harness
from harness import HFD, fails, hfd, run

pytestmark = pytest.mark.asan
UNKNOWN = "0123456789abcdef" * 4


def test_a_missing_source_folder(mounts):
    fails(3, "mount", mounts.folder / "none", mounts.folder, says="none")
    fails(3, "publish", mounts.folder / "none", mounts.bucket, says="none")
    fails(3, "pull", mounts.folder / "none", mounts.folder / "out", says="none")
    fails(3, "verify", mounts.folder / "none", says="none")


def test_a_missing_mount_point(mounts):
    fails(3, "mount", mounts.bucket, mounts.folder / "nowhere", "--bucket", mounts.bucket, says="nowhere")


def test_a_mount_point_that_is_not_empty(mounts):
    point = mounts.folder / "full"
    point.mkdir()
    (point / "file").write_text("x")
    fails(2, "mount", mounts.bucket, point, "--bucket", mounts.bucket, "--cache-dir", mounts.folder / "local", says="full")
    assert not harness.is_mounted(point)
    assert (point / "file").read_text() == "x"


def test_a_mount_point_that_is_a_file(mounts):
    point = mounts.folder / "file"
    point.write_text("x")
    fails((2, 3), "mount", mounts.bucket, point, "--bucket", mounts.bucket, says="file")


def test_a_mount_point_that_is_mounted_already(mounts):
    first = mounts.mount()
    fails((1, 2), "mount", mounts.bucket, first.point, "--bucket", mounts.bucket, "--cache-dir", mounts.folder / "other",
          says=str(first.point))
    assert first.status()["pid"] == first.pid


def test_a_dead_mount_point_is_cleaned_up_and_mounted_over(mounts):
    first = mounts.mount("m")
    (first / "a").write_text("kept")
    first.kill()
    with pytest.raises(OSError) as error:
        os.listdir(first.point)
    assert error.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)  # the second while the kernel still tears down
    second = mounts.mount("m", cache=first.cache_dir)
    assert second.pid != first.pid
    assert (second / "a").read_text() == "kept", "after close() data survives a crash of the daemon"
    second.umount()
    assert not harness.is_mounted(second.point), "nothing may be left beneath"


def test_an_unknown_version(one_version, tmp_path):
    bucket, _, version = one_version
    for unknown in (UNKNOWN, UNKNOWN[:10], "no-such-tag", "v999", "head~7"):
        fails(3, "pull", bucket, tmp_path / "out", "--version", unknown, says=unknown)
        assert not (tmp_path / "out" / "model.safetensors").exists()
    fails(3, "diff", bucket, version, UNKNOWN, says=UNKNOWN[:12])
    fails(3, "tag", bucket, "mine", UNKNOWN, says=UNKNOWN[:12])


def test_a_wrong_base(tmp_path):
    base, target, wrong = (tmp_path / name for name in ("base", "target", "wrong"))
    base.write_bytes(harness.noise(1 << 20, 1))
    target.write_bytes(base.read_bytes()[:700_000] + harness.noise(1000, 3))
    wrong.write_bytes(harness.noise(1 << 20, 2))
    hfd("delta", "encode", base, target, tmp_path / "delta")
    assert (tmp_path / "delta").stat().st_size < 100_000
    for bad in (wrong, target):
        fails(1, "delta", "apply", bad, tmp_path / "delta", tmp_path / "out")
        assert not (tmp_path / "out").exists(), "a wrong base leaves no OUT"
    assert not list(tmp_path.glob("out*")), "no temporary file either"
    hfd("delta", "apply", base, tmp_path / "delta", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == target.read_bytes()


@pytest.mark.parametrize("where", ["start", "middle", "end"])
def test_a_damaged_delta_file(tmp_path, where):
    base, target = tmp_path / "base", tmp_path / "target"
    base.write_bytes(harness.noise(1 << 20, 1))
    target.write_bytes(harness.noise(300_000, 4) + base.read_bytes()[1000:])
    delta = tmp_path / "delta"
    hfd("delta", "encode", base, target, delta)
    size = delta.stat().st_size
    harness.flip_byte(delta, {"start": 40, "middle": size // 2, "end": size - 5}[where])
    fails(1, "delta", "apply", base, delta, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_delta_at_all(tmp_path):
    for data in (b"", b"x", bytes(200), b"\xff" * 5000):
        (tmp_path / "delta").write_bytes(data)
        (tmp_path / "base").write_bytes(b"base")
        fails(1, "delta", "apply", tmp_path / "base", tmp_path / "delta", tmp_path / "out")
        fails(1, "delta", "info", tmp_path / "delta")
    fails(3, "delta", "info", tmp_path / "none", says="none")


def two_versions(tmp_path):
    """A bucket whose second version of a 3 MiB file is a delta."""
    folder, bucket = tmp_path / "two", tmp_path / "two-bucket"
    folder.mkdir()
    first = harness.noise(3 << 20, 9)
    changed = bytearray(first)
    for at in range(0, len(first), 50_000):
        changed[at:at + 300] = harness.noise(300, at)
    for data in (first, bytes(changed)):
        (folder / "model.bin").write_bytes(data)
        (folder / "config.json").write_text("{}")
        hfd("publish", folder, bucket)
    deltas = harness.objects(bucket, "deltas")
    assert len(deltas) == 1, deltas
    return bucket, bytes(changed), deltas[0]


def test_a_damaged_object_gives_eio_and_is_named(mounts, tmp_path):
    bucket, _, delta = two_versions(tmp_path)
    for offset in range(200, delta.stat().st_size - 1, 1000):
        harness.flip_byte(delta, offset)
    reader = mounts.reader(source=bucket)
    with pytest.raises(OSError) as error:
        (reader / "model.bin").read_bytes()
    assert error.value.errno == errno.EIO
    assert (reader / "config.json").read_text() == "{}", "other files go on"
    counters = reader.counters()
    assert counters["blocks_bad"] > 0
    assert any(delta.stem in e["object"] or "model.bin" in e["object"] or delta.stem in e["message"]
               for e in reader.status()["errors"]), reader.status()["errors"]
    fails(1, "verify", bucket, says=delta.stem[:12])
    done = hfd("verify", bucket, "--json", check=False)
    assert done.code == 1
    report = json.loads(done.out)
    assert report["ok"] is False
    assert [bad for bad in report["bad"] if delta.stem in bad["object"] and bad["reason"]], report
    fails(1, "pull", bucket, tmp_path / "out")
    assert not (tmp_path / "out" / "model.bin").exists()


def test_a_missing_object_is_an_error_never_zeros(mounts, tmp_path):
    bucket, _, delta = two_versions(tmp_path)
    delta.unlink()
    reader = mounts.reader(source=bucket)
    with pytest.raises(OSError) as error:
        (reader / "model.bin").read_bytes()
    assert error.value.errno == errno.EIO
    fails(1, "verify", bucket, says=delta.stem[:12])


def test_a_short_object_is_an_error_never_zeros(mounts, tmp_path):
    """Case 4."""
    bucket, _, _ = two_versions(tmp_path)
    for path in harness.objects(bucket, "deltas") + harness.objects(bucket, "blobs"):
        os.chmod(path, 0o644)
        os.truncate(path, path.stat().st_size - 1)
    reader = mounts.reader(source=bucket)
    with pytest.raises(OSError):
        (reader / "model.bin").read_bytes()
    fails(1, "verify", bucket)


def test_a_damaged_manifest_is_refused(tmp_path, mounts):
    bucket, _, _ = two_versions(tmp_path)
    for path in harness.objects(bucket, "versions"):
        harness.flip_byte(path, 20)
    fails(1, "pull", bucket, tmp_path / "out")
    point = mounts.folder / "point"
    point.mkdir()
    fails(1, "mount", bucket, point, "--read-only", "--cache-dir", mounts.folder / "local")
    assert not harness.is_mounted(point)
    fails(1, "verify", bucket)


def test_an_unknown_layout_version_is_refused(tmp_path, mounts):
    bucket, _, _ = two_versions(tmp_path)
    path = bucket / "hfdelta" / "format"
    os.chmod(path, 0o644)
    path.write_text("hfdeltafs 999\n")
    fails(1, "pull", bucket, tmp_path / "out", says="999")
    fails(1, "publish", tmp_path / "two", bucket, says="999")


def no_fuse(*command):
    """Runs a command in a mount namespace whose /dev has no fuse."""
    script = ("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9 && "
              "mknod -m 666 /dev/random c 1 8 && mknod -m 666 /dev/zero c 1 5 && exec \"$@\"")
    return run(["unshare", "-m", "sh", "-c", script, "sh", *command], timeout=30)


def test_no_dev_fuse(one_version, tmp_path):
    if os.getuid() != 0 or no_fuse("true").code != 0:
        pytest.skip("no right to make a mount namespace: a /dev without fuse cannot be made here")
    point = tmp_path / "point"
    point.mkdir()
    done = no_fuse(HFD, "mount", one_version[0], point, "--cache-dir", tmp_path / "local")
    lines = [line for line in done.err.split("\n") if line]
    assert done.code == 7, (done.code, done.out, done.err)
    assert len(lines) == 1 and lines[0].startswith("hfdeltafs: ") and "/dev/fuse" in lines[0], done.err


@pytest.mark.parametrize("arguments", [
    ["--nonsense"],
    ["frobnicate"],
    ["mount"],
    ["mount", "SOURCE"],
    ["mount", "SOURCE", "POINT", "--nonsense"],
    ["mount", "SOURCE", "POINT", "-o", "nosuchoption"],
    ["mount", "SOURCE", "POINT", "-o", "quiet=soon"],
    ["mount", "SOURCE", "POINT", "-o", "quiet=-1"],
    ["mount", "SOURCE", "POINT", "--cache-size", "10 elephants"],
    ["mount", "SOURCE", "POINT", "--ref", "head"],
    ["mount", "SOURCE", "POINT", "--ref", "12"],
    ["mount", "SOURCE", "POINT", "--ref", "a/../b"],
    ["commit"],
    ["pull", "SOURCE"],
    ["diff", "SOURCE", "head"],
    ["delta"],
    ["delta", "encode", "SOURCE"],
    ["publish", "SOURCE"],
    ["tag", "SOURCE", "head"],
    ["umount"],
], ids=" ".join)
def test_a_bad_command_line(arguments, one_version, tmp_path):
    (tmp_path / "point").mkdir()
    places = {"SOURCE": one_version[0], "POINT": tmp_path / "point"}
    fails(2, *[places.get(a, a) for a in arguments])
    assert not harness.is_mounted(tmp_path / "point")


def test_a_second_daemon_on_one_staging(mounts):
    first = mounts.mount("m")
    (first / "a").write_text("one")
    (mounts.folder / "other").mkdir()
    fails(1, "mount", mounts.bucket, mounts.folder / "other", "--bucket", mounts.bucket, "--cache-dir", first.cache_dir,
          says="staging")
    assert not harness.is_mounted(mounts.folder / "other")
    assert (first / "a").read_text() == "one"
    assert first.commit()["files"] == 1


@pytest.mark.parametrize("command", ["commit", "status", "umount"])
def test_a_folder_that_is_no_mount(command, tmp_path):
    fails((2, 3), command, tmp_path, says=tmp_path.name)


def test_errors_as_json(one_version, tmp_path):
    done = fails(3, "pull", one_version[0], tmp_path / "out", "--version", UNKNOWN, "--json")
    error = json.loads(done.out)["error"]
    assert set(error) >= {"code", "message", "object", "hint"}
    assert error["code"] == "not_found" and error["message"]


def test_version_and_help():
    version = hfd("--version").out.strip()
    assert any(part[0].isdigit() for part in version.split()), version
    overview = hfd("--help").out
    for command in ("mount", "umount", "status", "commit", "log", "diff", "publish", "pull", "verify", "tag", "delta"):
        assert command in overview
        text = hfd(command, "--help").out
        assert f"hfdeltafs {command}" in text, f"the help of {command} has no example"


def test_a_source_without_bucket_is_read_only(tmp_path, mounts):
    folder = tmp_path / "plain"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.bin").write_bytes(harness.noise(700_000, 3))
    (folder / "config.json").write_text("{}")
    mount = mounts.mount(source=folder, quiet=False)
    assert harness.tree(mount.point) == harness.tree(folder)
    for change in (lambda: (mount / "new").write_text("x"), lambda: (mount / "config.json").write_text("x"),
                   lambda: os.mkdir(mount / "d"), lambda: os.unlink(mount / "config.json"),
                   lambda: os.rename(mount / "config.json", mount / "c2")):
        with pytest.raises(OSError) as error:
            change()
        assert error.value.errno == errno.EROFS
    status = mount.status()
    assert status["read_only"] is True and status["seq"] == 0
    assert "read-only" in mount.said


def test_a_read_only_mount_of_a_bucket(one_version, mounts):
    reader = mounts.reader(source=one_version[0])
    with pytest.raises(OSError) as error:
        (reader / "new").write_text("x")
    assert error.value.errno == errno.EROFS
    done = run(["touch", reader / "config.json"])
    assert done.code == 1 and "Read-only file system" in done.err
    fails((1, 2), "commit", reader.point)


def test_a_daemon_in_the_foreground(one_version, tmp_path):
    point = tmp_path / "point"
    point.mkdir()
    with subprocess.Popen([HFD, "mount", one_version[0], point, "-f", "--cache-dir", tmp_path / "local"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            harness.wait_for(lambda: harness.is_mounted(point), 20, "the mount")
            assert harness.sha256(point / "model.safetensors") == harness.sha256(one_version[1] / "model.safetensors")
            daemon.terminate()
            assert daemon.wait(20) == 0, "SIGTERM drains and ends well"
            assert not harness.is_mounted(point)
        finally:
            harness.detach(pathlib.Path(point))
            daemon.kill()
