"""Laziness and bounds: what a first read costs, the memory of daemon and commands, the cap of the cache."""
import mmap
import os
import shutil

import pytest

import harness
from harness import MIB, hfd, hfd_json

GIB = 1 << 30
RSS_MAX = 512 * MIB
CACHE_CAP = 256 * MIB


@pytest.fixture(scope="module")
def gigabyte(tmp_path_factory):
    """A bucket with a made-up 1 GiB file: version 1 whole, version 2 with 0.5 % of the elements changed."""
    folder = tmp_path_factory.mktemp("gigabyte")
    source, bucket = folder / "source", folder / "bucket"
    source.mkdir()
    path = source / "model.safetensors"
    ids = []
    for seed, change_of in ((1, None), (2, 1)):
        harness.write_big_checkpoint(path, GIB, seed, change_of)
        ids.append(hfd("publish", source, bucket, timeout=400).out.strip())
    yield bucket, ids, path
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.limit(600)
@pytest.mark.parametrize("version", [0, 1], ids=["whole", "delta"])
@pytest.mark.parametrize("offset", [0, GIB // 2 + 12_345, GIB - 4096], ids=["start", "middle", "end"])
def test_a_first_small_read_of_a_cold_file_is_cheap(gigabyte, mounts, version, offset):
    bucket, ids, source = gigabyte
    reader = mounts.reader(source=bucket)
    path = reader.version_folder(ids[version]) / "model.safetensors"
    before = reader.counters()
    descriptor = os.open(path, os.O_RDONLY)
    got = os.pread(descriptor, 4096, offset)
    after = reader.counters()
    os.close(descriptor)
    if version == 1:
        with open(source, "rb") as file:
            assert got == os.pread(file.fileno(), 4096, offset)
    assert len(got) == 4096
    cost = {name: after[name] - before[name] for name in ("blocks_rebuilt", "remote_bytes_in", "fuse_reads")}
    print(cost)
    assert after["fuse_reads"] > before["fuse_reads"]
    assert 1 <= cost["blocks_rebuilt"] <= 2, cost
    assert 0 < cost["remote_bytes_in"] <= 4 * MIB, cost


@pytest.mark.limit(600)
def test_a_mount_of_a_large_version_brings_little(gigabyte, mounts):
    bucket, _, _ = gigabyte
    reader = mounts.reader(source=bucket)
    assert os.stat(reader / "model.safetensors").st_size > GIB
    assert reader.counters()["remote_bytes_in"] <= 4 * MIB
    assert reader.status()["cache"]["bytes"] <= 8 * MIB


@pytest.mark.limit(600)
def test_a_second_read_asks_neither_the_remote_nor_the_daemon(mounts, tmp_path):
    """Case 8: the page cache outlives close."""
    source = tmp_path / "source"
    source.mkdir()
    harness.write_big_checkpoint(source / "model.safetensors", 64 * MIB, 5)
    hfd("publish", source, mounts.bucket)
    reader = mounts.reader()
    first = harness.sha256(reader / "model.safetensors")
    before = reader.counters()
    assert harness.sha256(reader / "model.safetensors") == first == harness.sha256(source / "model.safetensors")
    after = reader.counters()
    assert after["remote_bytes_in"] == before["remote_bytes_in"]
    assert after["fuse_reads"] - before["fuse_reads"] <= 8


@pytest.mark.limit(900)
def test_two_gigabytes_within_bounded_memory_and_cache(mounts, tmp_path):
    source = tmp_path / "model.safetensors"
    harness.write_big_checkpoint(source, 2 * GIB, 3)
    want = harness.sha256(source)
    writer = mounts.mount("writer", options=["--cache-size", "256M"])
    watch = harness.DuWatch(writer.cache_dir / "cache")
    harness.run(["cp", source, writer.point], check=True, timeout=300)
    command = hfd("commit", writer.point, "--json", timeout=500)
    watch.stop()
    peaks = {"publishing daemon": harness.rss_peak(writer.pid), "commit": command.rss_max}
    assert watch.samples > 3 and watch.most <= CACHE_CAP, f"cache took {watch.most} bytes while publishing"
    writer.umount()

    reader = mounts.reader("reader", options=["--cache-size", "256M"])
    watch = harness.DuWatch(reader.cache_dir / "cache")
    assert harness.sha256_cat(reader / "model.safetensors") == want
    with open(source, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        harness.compare_preads(reader / "model.safetensors", content, 30, 1)
    watch.stop()
    assert watch.samples > 10 and watch.most <= CACHE_CAP, f"cache took {watch.most} bytes while reading"
    assert reader.status()["cache"]["limit_bytes"] == CACHE_CAP
    peaks["reading daemon"] = harness.rss_peak(reader.pid)
    reader.umount()

    pull = hfd("pull", mounts.bucket, tmp_path / "pulled", timeout=400)
    peaks["pull"] = pull.rss_max
    assert harness.sha256(tmp_path / "pulled" / "model.safetensors") == want
    shutil.rmtree(tmp_path / "pulled")
    (tmp_path / "folder").mkdir()
    os.rename(source, tmp_path / "folder" / "model.safetensors")
    publish = hfd("publish", tmp_path / "folder", tmp_path / "bucket2", timeout=400)
    peaks["publish"] = publish.rss_max
    peaks["verify"] = hfd("verify", mounts.bucket, timeout=400).rss_max
    print({name: f"{bytes_ / MIB:.0f} MiB" for name, bytes_ in peaks.items()})
    over = {name: bytes_ for name, bytes_ in peaks.items() if not 0 < bytes_ < RSS_MAX}
    assert not over, f"resident memory over 512 MiB (or not measured): {over}"


@pytest.mark.limit(300)
def test_a_stat_of_a_busy_reader_stays_quick_and_many_readers_are_bounded(mounts, tmp_path):
    """Case 7: 16 readers of different files at once."""
    source = tmp_path / "source"
    source.mkdir()
    for i in range(16):
        harness.write_big_checkpoint(source / f"part-{i}.safetensors", 16 * MIB, 100 + i)
    hfd("publish", source, mounts.bucket)
    reader = mounts.reader()
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        sums = list(pool.map(lambda p: harness.sha256_cat(reader / p.name), sorted(source.iterdir())))
    assert sums == [harness.sha256(p) for p in sorted(source.iterdir())]
    assert harness.rss_peak(reader.pid) < RSS_MAX
    assert hfd_json("status", reader.point)["mounts"][0]["rss_bytes"] > 0
