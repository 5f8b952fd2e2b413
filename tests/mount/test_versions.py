"""Versions as a reader sees them: fixed views, switches to a new version, old descriptors and maps, attributes."""
import errno
import json
import mmap
import os
import re
import time

import pytest

import harness
from harness import MIB, fails, hfd, hfd_json, noise, run

pytestmark = pytest.mark.asan
SEEN_WITHIN_SECONDS = 2


def publish_steps(writer, count, size=700_000):
    """Versions 0..count-1 of model.bin and config.json; [(id, {name: bytes})]."""
    steps = []
    data = bytearray(noise(size, 11))
    for step in range(count):
        data[step * 1000:step * 1000 + 10] = noise(10, 500 + step)
        contents = {"model.bin": bytes(data), "config.json": b'{"step": %d}' % step}
        for name, value in contents.items():
            (writer / name).write_bytes(value)
        steps.append((writer.commit("-m", f"step {step}")["version"], contents))
    return steps


def test_a_second_mount_sees_a_new_version_within_two_seconds(mounts):
    writer, reader = mounts.mount(), mounts.reader()
    worst = 0.0
    for step in range(4):
        data = b"%d" % step * 1000
        (writer / "a").write_bytes(data)
        version = writer.commit()["version"]
        worst = max(worst, harness.wait_for(lambda: os.path.exists(reader / "a") and (reader / "a").read_bytes() == data,
                                            SEEN_WITHIN_SECONDS, f"step {step} on the second mount"))
        assert os.getxattr(reader / "a", "user.hfdeltafs.version").decode() == version
    print(f"seen after {worst:.2f} s at worst")
    os.unlink(writer / "a")
    writer.commit()
    harness.wait_for(lambda: not os.path.exists(reader / "a"), SEEN_WITHIN_SECONDS, "the file to go")
    assert os.listdir(reader.point) == []


def test_old_descriptors_and_maps_keep_the_old_bytes_across_a_switch(mounts):
    writer, reader = mounts.mount(), mounts.reader()
    first, second = noise(3 * MIB, 1), noise(2 * MIB, 2)
    (writer / "m").write_bytes(first)
    writer.commit()
    harness.wait_for(lambda: os.path.exists(reader / "m"), SEEN_WITHIN_SECONDS, "the first version")
    with open(reader / "m", "rb") as old, open(reader / "m", "rb") as mapped:
        view = mmap.mmap(mapped.fileno(), 0, prot=mmap.PROT_READ)
        assert view[:10] == first[:10]
        inode = os.fstat(old.fileno()).st_ino
        (writer / "m").write_bytes(second)
        writer.commit()
        harness.wait_for(lambda: os.stat(reader / "m").st_size == len(second), SEEN_WITHIN_SECONDS, "the second version")
        assert (reader / "m").read_bytes() == second
        assert os.stat(reader / "m").st_ino != inode, "a new content is a new inode"
        assert os.fstat(old.fileno()).st_size == len(first)
        assert old.read() == first
        assert view[:] == first
        view.close()


def test_a_writers_own_descriptors_survive_the_switch_of_its_publish(mounts):
    writer = mounts.mount()
    data = noise(2 * MIB, 3)
    (writer / "m").write_bytes(data)
    with open(writer / "m", "rb") as old:
        head = old.read(1000)
        writer.commit()
        assert head + old.read() == data
    with open(writer / "m", "r+b") as again:
        again.seek(5)
        again.write(b"changed")
    assert (writer / "m").read_bytes() == data[:5] + b"changed" + data[12:]
    writer.commit()
    assert harness.tree(mounts.reader().point) == harness.tree(writer.point)


def test_fixed_views_hold_every_version(mounts):
    writer = mounts.mount()
    steps = publish_steps(writer, 5)
    reader = mounts.reader()
    assert set(os.listdir(reader / ".hfdelta" / "versions")) >= {version for version, _ in steps}
    for mount in (writer, reader):
        for version, contents in steps:
            folder = mount.version_folder(version)
            assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == contents
    with pytest.raises(FileNotFoundError):
        os.stat(reader.version_folder("0" * 64))
    with pytest.raises(FileNotFoundError):
        os.stat(reader.version_folder("nonsense"))


def test_fixed_views_do_not_move(mounts):
    writer = mounts.mount()
    steps = publish_steps(writer, 2)
    reader = mounts.reader()
    folder = reader.version_folder(steps[0][0])
    with open(folder / "model.bin", "rb") as file:
        assert file.read(100) == steps[0][1]["model.bin"][:100]
        publish_steps(writer, 1)
        time.sleep(1)
        assert file.read() == steps[0][1]["model.bin"][100:]
    assert (folder / "config.json").read_bytes() == steps[0][1]["config.json"]


def test_fixed_views_are_read_only_even_on_a_writing_mount(mounts):
    writer = mounts.mount()
    version = publish_steps(writer, 1)[0][0]
    folder = writer.version_folder(version)
    changes = {
        "create": lambda: open(folder / "new", "w"),
        "open for writing": lambda: open(folder / "model.bin", "r+b"),
        "truncate": lambda: os.truncate(folder / "model.bin", 0),
        "unlink": lambda: os.unlink(folder / "model.bin"),
        "mkdir": lambda: os.mkdir(folder / "d"),
        "rename": lambda: os.rename(folder / "model.bin", folder / "m2"),
        "symlink": lambda: os.symlink("x", folder / "s"),
        "chmod": lambda: os.chmod(folder / "model.bin", 0o600),
        "mkdir in .hfdelta": lambda: os.mkdir(writer / ".hfdelta" / "d"),
        "create in .hfdelta/versions": lambda: open(writer / ".hfdelta" / "versions" / "x", "w"),
        "unlink status.json": lambda: os.unlink(writer / ".hfdelta" / "status.json"),
    }
    for name, change in changes.items():
        with pytest.raises(OSError) as error:
            change()
        assert error.value.errno == errno.EROFS, f"{name}: {errno.errorcode[error.value.errno]}"
    run(["cp", folder / "model.bin", writer / "copy.bin"], check=True)
    assert (writer / "copy.bin").read_bytes() == (folder / "model.bin").read_bytes()


def test_the_hidden_folder_is_reachable_but_not_listed(mounts):
    writer = mounts.mount()
    version = publish_steps(writer, 1)[0][0]
    assert ".hfdelta" not in os.listdir(writer.point)
    assert sorted(os.listdir(writer / ".hfdelta")) == ["refs", "status.json", "versions"]
    assert version in os.readlink(writer / ".hfdelta" / "refs" / "main")
    assert (writer / ".hfdelta" / "refs" / "main" / "config.json").read_bytes() == b'{"step": 0}'
    document = json.loads((writer / ".hfdelta" / "status.json").read_text())
    status = document["mounts"][0] if "mounts" in document else document
    assert status["version"] == version and status["mount_point"] == str(writer.point)
    hfd("tag", writer.point, "nice")
    harness.wait_for(lambda: os.path.lexists(writer / ".hfdelta" / "refs" / "tags" / "nice") or
                     os.path.lexists(writer / ".hfdelta" / "refs" / "nice"), 5, "the tag below refs")
    with pytest.raises(OSError):
        open(writer / ".hfdelta", "w")


def test_attributes_tell_version_and_hash(mounts):
    writer = mounts.mount()
    version, contents = publish_steps(writer, 1)[0]
    path = writer / "model.bin"
    assert os.getxattr(path, "user.hfdeltafs.version").decode() == version
    assert os.getxattr(path, "user.hfdeltafs.sha256").decode() == harness.sha256(path)
    assert set(os.listxattr(path)) >= {"user.hfdeltafs.version", "user.hfdeltafs.sha256"}
    assert os.getxattr(writer.point, "user.hfdeltafs.version").decode() in (version, "staging")
    view = writer.version_folder(version) / "model.bin"
    assert os.getxattr(view, "user.hfdeltafs.version").decode() == version
    done = run([harness.tool("getfattr"), "-n", "user.hfdeltafs.version", "--only-values", "--absolute-names", path], check=True)
    assert done.out == version
    (writer / "new").write_text("x")
    assert os.getxattr(writer / "new", "user.hfdeltafs.version") == b"staging"
    with open(path, "r+b") as file:
        file.write(b"dirty")
    assert os.getxattr(path, "user.hfdeltafs.version") == b"staging"
    with pytest.raises(OSError) as error:
        os.getxattr(path, "user.hfdeltafs.sha256")
    assert error.value.errno == errno.ENODATA
    for name in ("user.mine", "user.hfdeltafs.version", "user.hfdeltafs.other"):
        with pytest.raises(OSError) as error:
            os.setxattr(path, name, b"x")
        assert error.value.errno in (errno.ENOTSUP, errno.EPERM, errno.EACCES), errno.errorcode[error.value.errno]
    with pytest.raises(OSError) as error:
        os.setxattr(path, "user.mine", b"x")
    assert error.value.errno == errno.ENOTSUP
    with pytest.raises(OSError) as error:
        os.getxattr(path, "user.mine")
    assert error.value.errno in (errno.ENODATA, errno.ENOTSUP)


def test_the_type_of_the_mount(one_version, mounts):
    reader = mounts.reader(source=one_version[0])
    assert run([harness.tool("findmnt"), "-no", "FSTYPE", reader.point], check=True).out.strip() == "fuse.hfdeltafs"
    options = run(["findmnt", "-no", "OPTIONS", reader.point], check=True).out.split(",")
    assert "ro" in [o.strip() for o in options]
    df = run(["df", "--output=avail", reader.point], check=True).out.split()
    assert re.fullmatch(r"\d+", df[-1])


def test_the_fstab_helper_mounts_as_mount8_calls_it(one_version, mounts):
    bucket, folder, _ = one_version
    helper = harness.HFD.parent / "mount.hfdeltafs"
    mount = harness.Mount(bucket, mounts.folder / "fstab", mounts.folder / "fstab.local")
    mounts.made.append(mount)
    harness.Mount.live.append(mount)
    mount.point.mkdir()
    # What mount(8) runs for an fstab line of type hfdeltafs.
    run([helper, bucket, mount.point, "-o", f"rw,nofail,noatime,cache_dir={mount.cache_dir},quiet=60"], check=True)
    mount.pid = mount.status()["pid"]
    assert harness.tree(mount.point) == harness.tree(folder)
    assert mount.status()["read_only"] is False


def test_mount_says_what_it_did(one_version, mounts):
    bucket, _, version = one_version
    reader = mounts.reader(source=bucket)
    line = reader.said.strip()
    assert line.startswith(f"mounted {bucket} at {reader.point} (version {version[:6]}"), line
    assert line.endswith("read-only)"), line


def test_a_base_folder_with_a_bucket_shows_the_base_until_the_first_publish(mounts, tmp_path):
    base = tmp_path / "base"
    (base / "sub").mkdir(parents=True)
    contents = {"model.bin": noise(2 * MIB, 21), "sub/x.bin": noise(300_000, 22), "config.json": b"{}"}
    for name, data in contents.items():
        (base / name).write_bytes(data)
    writer = mounts.mount(source=base, options=["--bucket", mounts.bucket])
    status = writer.status()
    assert status["seq"] == 0 and status["read_only"] is False
    assert harness.tree(writer.point) == harness.tree(base)
    with open(writer / "model.bin", "r+b") as file:
        file.seek(1000)
        file.write(b"one small change")
    os.unlink(writer / "config.json")
    row = writer.commit()
    assert row["seq"] == 1 and row["parent"] == status["version"]
    assert row["stored_bytes"] < 20_000, "only the difference from the base is stored"
    assert not [p for p in harness.objects(mounts.bucket, "blobs") if p.stat().st_size > 65_536]
    want = contents["model.bin"][:1000] + b"one small change" + contents["model.bin"][1016:]
    assert (base / "model.bin").read_bytes() == contents["model.bin"], "the base itself is never written"
    reader = mounts.reader("second")
    assert (reader / "model.bin").read_bytes() == want
    assert (reader / "sub" / "x.bin").read_bytes() == contents["sub/x.bin"]
    assert sorted(os.listdir(reader.point)) == ["model.bin", "sub"], "a removed file of the base stays removed"
    zero = reader.version_folder(status["version"])
    assert (zero / "model.bin").read_bytes() == contents["model.bin"]


def test_a_changed_base_is_an_error_never_a_mix(mounts, tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    (base / "model.bin").write_bytes(noise(1 * MIB, 31))
    writer = mounts.mount(source=base, options=["--bucket", mounts.bucket])
    with open(writer / "model.bin", "r+b") as file:
        file.write(b"change")
    writer.commit()
    writer.umount()
    (base / "model.bin").write_bytes(noise(1 * MIB, 32))
    reader = mounts.reader("second")
    with pytest.raises(OSError) as error:
        (reader / "model.bin").read_bytes()
    assert error.value.errno == errno.EIO


def test_shorter_versions_have_no_old_tail(mounts):
    """Case 49."""
    writer, reader = mounts.mount(), mounts.reader()
    for data in (noise(1 * MIB, 41), noise(MIB // 2, 42), b"", noise(10, 43)):
        (writer / "x").write_bytes(data)
        version = writer.commit()["version"]
        harness.wait_for(lambda: reader.status()["version"] == version, 5, "the version")
        assert (reader / "x").read_bytes() == data
        assert os.stat(reader / "x").st_size == len(data)


def test_other_refs(mounts, tmp_path):
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "a").write_text("main")
    hfd("publish", folder, mounts.bucket)
    (folder / "a").write_text("variant")
    hfd("publish", folder, mounts.bucket, "--ref", "variants/one")
    assert (mounts.reader("r1") / "a").read_text() == "main"
    assert (mounts.reader("r2", options=["--ref", "variants/one"]) / "a").read_text() == "variant"
    assert len(hfd_json("log", mounts.bucket)) == 1
    assert hfd_json("log", mounts.bucket, "--ref", "variants/one")[0]["ref"] == "variants/one"
    fails(3, "log", mounts.bucket, "--ref", "nosuch", says="nosuch")


def test_two_writers_of_different_files_both_land(mounts):
    """Case 38, as far as one host goes."""
    one, two = mounts.mount("one"), mounts.mount("two")
    (one / "a").write_bytes(noise(100_000, 1))
    one.commit()
    (two / "b").write_bytes(noise(100_000, 2))
    two.commit()
    (one / "c").write_bytes(noise(100_000, 3))
    one.commit()
    reader = mounts.reader()
    assert sorted(os.listdir(reader.point)) == ["a", "b", "c"]
    assert [e["seq"] for e in hfd_json("log", mounts.bucket)] == [3, 2, 1]
