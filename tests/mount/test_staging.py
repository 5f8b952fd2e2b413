"""From written to published: quiet time, sets that are incomplete, what is left at umount, crashes of the daemon."""
import contextlib
import json
import os
import pathlib
import random
import threading
import time

import pytest

import harness
from harness import fails, hfd, hfd_json, noise, safetensors_bytes

pytestmark = pytest.mark.asan
QUIET = ["-o", "quiet=1"]


def log_of(bucket):
    """[] while the bucket is empty."""
    done = hfd("log", bucket, "--json", check=False)
    return json.loads(done.out) if done.code == 0 else []


def test_the_quiet_time_makes_one_version_of_several_files(mounts):
    writer = mounts.mount(options=QUIET, quiet=False)
    for i in range(5):
        (writer / f"part{i}").write_bytes(noise(200_000, i))
        time.sleep(0.4)
    harness.wait_for(lambda: log_of(mounts.bucket), 10, "the quiet time to publish")
    time.sleep(1.5)
    log = log_of(mounts.bucket)
    assert len(log) == 1, "one version, not one for each file"
    assert log[0]["files"] == 5
    status = writer.status()
    assert status["version"] == log[0]["id"] and status["staging"]["files"] == []
    assert status["last_publish"]["version"] == log[0]["id"]
    (writer / "part0").write_bytes(b"again")
    harness.wait_for(lambda: len(log_of(mounts.bucket)) == 2, 10, "the second version")


def test_an_open_writer_holds_the_version_back(mounts):
    writer = mounts.mount(options=QUIET, quiet=False)
    (writer / "done").write_text("x")
    with open(writer / "open", "wb") as file:
        file.write(b"half")
        file.flush()
        time.sleep(3)
        assert log_of(mounts.bucket) == []
        states = {f["path"]: f["state"] for f in writer.status()["staging"]["files"]}
        assert states["open"] == "writing" and "done" in states
        fails(4, "commit", writer.point, says="open")
        file.write(b" whole")
    harness.wait_for(lambda: log_of(mounts.bucket), 10, "the version after close")
    assert (mounts.reader() / "open").read_bytes() == b"half whole"


def test_commit_with_a_file_open_and_partial(mounts):
    writer = mounts.mount()
    with open(writer / "open", "wb") as file:
        file.write(b"half")
        file.flush()
        (writer / "other").write_text("x")
        error = fails(4, "commit", writer.point, "--json", says="open")
        assert json.loads(error.out)["error"]["code"] == "incomplete"
    row = writer.commit()
    assert row["files"] == 2


def test_commit_of_nothing_gives_the_current_id(mounts):
    writer = mounts.mount()
    (writer / "a").write_text("x")
    version = hfd("commit", writer.point).out.strip()
    assert len(version) == 64
    assert hfd("commit", writer.point).out.strip() == version
    assert writer.commit()["version"] == version
    assert len(log_of(mounts.bucket)) == 1
    (writer / "a").write_text("x")
    again = writer.commit()
    assert log_of(mounts.bucket)[0]["id"] == again["version"]


def shards(folder, count, of):
    """Shard files 1..count of `of`, and an index that names all of them."""
    weight_map = {}
    for i in range(1, of + 1):
        name = f"model-{i:05d}-of-{of:05d}.safetensors"
        weight_map[f"t{i}"] = name
        if i <= count:
            (folder / name).write_bytes(safetensors_bytes({f"t{i}": ("U8", [100_000], noise(100_000, i))}))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_a_set_whose_index_names_a_missing_shard_is_held_back(mounts):
    writer = mounts.mount(options=QUIET, quiet=False)
    shards(writer.point, 2, 3)
    time.sleep(4)
    assert log_of(mounts.bucket) == [], "an incomplete set is not published by the quiet time"
    files = writer.status()["staging"]["files"]
    held = [f for f in files if f["state"] == "incomplete"]
    assert held and all("model-00003-of-00003.safetensors" in f["reason"] for f in held if f["reason"]), files
    assert any(f["reason"] for f in held)
    fails(4, "commit", writer.point, says="model-00003-of-00003.safetensors")
    assert log_of(mounts.bucket) == []
    shards(writer.point, 3, 3)
    writer.commit()
    reader = mounts.reader()
    assert len(os.listdir(reader.point)) == 4
    assert harness.tree(reader.point) == harness.tree(writer.point)
    assert writer.status()["staging"]["files"] == []


def test_a_truncated_safetensors_file_is_held_back(mounts):
    writer = mounts.mount()
    whole = safetensors_bytes({"w": ("F32", [100, 100], noise(40_000, 5))})
    (writer / "model.safetensors").write_bytes(whole[:-1])
    (writer / "config.json").write_text("{}")
    fails(4, "commit", writer.point, says="model.safetensors")
    held = {f["path"]: f for f in writer.status()["staging"]["files"]}
    assert held["model.safetensors"]["state"] == "incomplete" and held["model.safetensors"]["reason"]
    (writer / "model.safetensors").write_bytes(whole)
    writer.commit()
    assert (mounts.reader() / "model.safetensors").read_bytes() == whole


def test_an_incomplete_folder_does_not_hold_back_another(mounts):
    writer = mounts.mount(options=QUIET, quiet=False)
    os.mkdir(writer / "bad")
    os.mkdir(writer / "good")
    shards(writer / "good", 2, 2)
    shards(writer / "bad", 1, 2)
    harness.wait_for(lambda: log_of(mounts.bucket), 15, "the complete folder to be published")
    reader = mounts.reader()
    harness.wait_for(lambda: os.path.exists(reader / "good"), 3, "good")
    assert len(os.listdir(reader / "good")) == 3
    assert not os.path.exists(reader / "bad") or os.listdir(reader / "bad") == []
    assert all(f["path"].startswith("bad") for f in writer.status()["staging"]["files"])


def test_commit_partial_publishes_an_incomplete_set(mounts):
    writer = mounts.mount()
    shards(writer.point, 1, 2)
    fails(4, "commit", writer.point)
    writer.commit("--partial")
    assert harness.tree(mounts.reader().point) == harness.tree(writer.point)


def test_umount_publishes_what_is_left_and_ends_the_daemon(mounts):
    writer = mounts.mount()
    (writer / "late").write_bytes(noise(300_000, 8))
    pid = writer.pid
    done = writer.umount()
    assert done.code == 0
    assert not harness.is_mounted(writer.point)
    harness.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists() or harness.is_zombie(pid), 5, "the daemon to end")
    assert (mounts.reader() / "late").read_bytes() == noise(300_000, 8)


def test_umount_says_what_it_had_to_leave_and_a_remount_goes_on(mounts):
    writer = mounts.mount()
    (writer / "a").write_bytes(noise(300_000, 8))
    away = mounts.folder / "bucket-away"
    os.rename(mounts.bucket, away)
    mounts.bucket.write_text("no folder")  # nothing can be written below it
    done = writer.umount("--timeout", "3", check=False)
    assert done.code == 6, (done.code, done.out, done.err)
    assert "left in staging: 1 files, 300000 bytes" in done.out + done.err
    assert not harness.is_mounted(writer.point)
    mounts.bucket.unlink()
    os.rename(away, mounts.bucket)
    again = mounts.mount("m", cache=writer.cache_dir)
    assert (again / "a").read_bytes() == noise(300_000, 8)
    again.commit()
    assert (mounts.reader() / "a").read_bytes() == noise(300_000, 8)


def test_umount_with_an_incomplete_set(mounts):
    writer = mounts.mount()
    shards(writer.point, 1, 2)
    done = writer.umount("--timeout", "5", check=False)
    assert done.code == 6 and "left in staging: " in done.out + done.err, (done.code, done.out, done.err)
    again = mounts.mount("m", cache=writer.cache_dir)
    assert len(os.listdir(again.point)) == 2
    shards(again.point, 2, 2)
    again.commit()
    assert len(os.listdir(mounts.reader().point)) == 3


def test_umount8_detaches_and_the_daemon_drains(mounts):
    writer = mounts.mount()
    (writer / "a").write_bytes(noise(300_000, 8))
    pid = writer.pid
    harness.run(["umount", writer.point], check=True)
    harness.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists() or harness.is_zombie(pid), 35, "the daemon to end")
    assert (mounts.reader() / "a").read_bytes() == noise(300_000, 8)


def test_a_bucket_that_is_away_for_a_while_loses_nothing(mounts):
    writer = mounts.mount(options=QUIET, quiet=False)
    (writer / "before").write_text("x")
    writer.commit()
    away = mounts.folder / "bucket-away"
    os.rename(mounts.bucket, away)
    mounts.bucket.write_text("no folder")
    (writer / "a").write_bytes(noise(300_000, 8))
    fails(1, "commit", writer.point, "--timeout", "3")
    assert writer.status()["errors"], "the failure shows in status"
    assert (writer / "a").read_bytes() == noise(300_000, 8)
    mounts.bucket.unlink()
    os.rename(away, mounts.bucket)
    writer.commit()
    assert (mounts.reader() / "a").read_bytes() == noise(300_000, 8)


def test_closed_files_survive_a_crash_and_open_ones_are_kept_as_incomplete(mounts):
    writer = mounts.mount()
    (writer / "published").write_text("one")
    first = writer.commit()["version"]
    (writer / "closed").write_bytes(noise(400_000, 1))
    os.mkdir(writer / "d")
    os.rename(writer / "closed", writer / "d" / "moved")
    file = open(writer / "open", "wb")
    file.write(b"half")
    file.flush()
    writer.kill()
    with contextlib.suppress(OSError):  # close() tells that the mount is gone
        file.close()
    writer.end()
    again = mounts.mount("m", cache=writer.cache_dir)
    assert again.status()["version"] == first
    assert (again / "d" / "moved").read_bytes() == noise(400_000, 1)
    assert not os.path.exists(again / "closed")
    assert (again / "published").read_text() == "one"
    states = {f["path"]: f["state"] for f in again.status()["staging"]["files"]}
    assert states.get("open") == "incomplete", states
    fails(4, "commit", again.point, says="open")
    again.commit("--partial")
    reader = mounts.reader()
    assert (reader / "d" / "moved").read_bytes() == noise(400_000, 1)
    assert os.path.exists(reader / "open")


def crash_round(mounts, number, rng):
    """A writer is killed at a random moment while a thread writes files; every closed file must be there afterwards."""
    cache = mounts.folder / "crash.local"
    mount = mounts.mount(f"round{number}", options=["-o", f"quiet={rng.choice((1, 600))}"], quiet=False, cache=cache)
    written, stop = {}, threading.Event()

    def write():
        i = 0
        while not stop.is_set():
            name, data = f"r{number}-{i}", rng.randbytes(rng.randrange(1, 300_000))
            try:
                (mount / name).write_bytes(data)
                written[name] = data
            except OSError:
                return
            i += 1

    thread = threading.Thread(target=write)
    thread.start()
    time.sleep(rng.uniform(0.3, 2.5))
    mount.kill()
    stop.set()
    thread.join(20)
    mount.end()
    return written


@pytest.mark.limit(400)
def test_kill_9_in_rounds_loses_no_closed_file(mounts, request):
    rounds = 30 if request.config.getoption("--full") else 4
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng, all_written = random.Random(seed), {}
    for number in range(rounds):
        all_written.update(crash_round(mounts, number, rng))
        after = mounts.mount(f"after{number}", cache=mounts.folder / "crash.local")
        missing = [n for n, data in all_written.items() if not os.path.exists(after / n) or (after / n).read_bytes() != data]
        assert not missing, f"seed {seed}, round {number}: {missing[:5]}"
        after.commit("--partial")
        after.umount()
    reader = mounts.reader()
    assert all((reader / n).read_bytes() == data for n, data in all_written.items())
    assert hfd_json("verify", mounts.bucket)["ok"] is True
