#!/usr/bin/env python3
"""mount_bench.py read|publish --binary HFDELTAFS [--json OUT] [--runs N] BASE STEP...: tools/bench runs it.

read: the last checkpoint through a mount of a local bucket and as a plain file, in turns within one run. Cold: empty cache of
ours, page cache of the objects and of the plain file dropped where that is allowed. Warm: read again.
publish: cp + commit of each checkpoint against reading and sha256-ing the same file, and what was stored.
Rows carry medians of `runs` and the ratio to the plain figure; GB = 1e9 bytes."""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20


def timed_read(path):
    """Seconds for a whole sequential read."""
    buffer = bytearray(MIB)
    started = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - started


def timed_hash(path):
    started = time.perf_counter()
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return time.perf_counter() - started, digest.hexdigest()


def drop_page_cache(*folders):
    """Forgets the cached pages of all files below; True when the kernel took the advice."""
    os.sync()
    for folder in folders:
        paths = [folder] if folder.is_file() else [p for p in folder.rglob("*") if p.is_file()]
        for path in paths:
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Bench:
    def __init__(self, binary, work):
        self.binary, self.work, self.count = binary, work, 0
        self.bucket = work / "bucket"
        self.bucket.mkdir()

    def hfd(self, *arguments):
        done = subprocess.run([self.binary, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"hfdeltafs {' '.join(map(str, arguments))} ended with {done.returncode}")
        return done.stdout

    def mount(self, *options):
        """A mount with an empty cache; returns its folder."""
        self.count += 1
        point = self.work / f"mnt{self.count}"
        point.mkdir()
        self.hfd("mount", self.bucket, point, "--cache-dir", self.work / f"local{self.count}", *options)
        return point

    def umount(self, point):
        self.hfd("umount", point)

    def publish_all(self, checkpoints):
        point = self.mount("--bucket", self.bucket, "-o", "quiet=600")
        rows = []
        for path in checkpoints:
            started = time.perf_counter()
            shutil.copyfile(path, point / "model.safetensors")
            copied = time.perf_counter()
            commit = json.loads(self.hfd("commit", point, "-m", path.stem, "--json"))
            rows.append((path, copied - started, time.perf_counter() - copied, commit))
        self.umount(point)
        return rows


def bench_read(bench, checkpoints, runs):
    bench.publish_all(checkpoints)
    plain, size = checkpoints[-1], checkpoints[-1].stat().st_size
    want = timed_hash(plain)[1]
    seconds = {("plain", "cold"): [], ("plain", "warm"): [], ("mount", "cold"): [], ("mount", "warm"): []}
    verified = True
    for _ in range(runs):
        drop_page_cache(bench.bucket, plain)
        seconds["plain", "cold"].append(timed_read(plain))
        seconds["plain", "warm"].append(timed_read(plain))
        point = bench.mount("--read-only")
        drop_page_cache(bench.bucket)
        seconds["mount", "cold"].append(timed_read(point / "model.safetensors"))
        seconds["mount", "warm"].append(timed_read(point / "model.safetensors"))
        verified = verified and timed_hash(point / "model.safetensors")[1] == want
        bench.umount(point)
    rows = []
    for (what, state), values in seconds.items():
        median = statistics.median(values)
        rows.append({"bench": "read", "what": what, "state": state, "bytes": size, "seconds": median,
                     "gbps": size / median / 1e9, "ratio_to_plain": statistics.median(seconds["plain", state]) / median,
                     "runs": runs, "verified": verified})
    return rows


def bench_publish(bench, checkpoints, runs):
    measured = []
    for number in range(runs):
        shutil.rmtree(bench.bucket)
        bench.bucket.mkdir()
        hashes = []
        for path in checkpoints:
            hashes.append(timed_hash(path)[0])
        measured.append([(hash_seconds, *row) for hash_seconds, row in zip(hashes, bench.publish_all(checkpoints))])
        print(f"run {number + 1} of {runs}", file=sys.stderr)
    rows = []
    for versions in zip(*measured):
        path, commit = versions[0][1], versions[0][4]
        read_hash, copy, publish = (statistics.median(v[i] for v in versions) for i in (0, 2, 3))
        rows.append({"bench": "publish", "version": path.stem, "bytes": path.stat().st_size, "stored_bytes": commit["stored_bytes"],
                     "meta_bytes": commit["meta_bytes"], "stored_share": commit["stored_bytes"] / path.stat().st_size,
                     "read_and_sha256_seconds": read_hash, "cp_seconds": copy, "commit_seconds": publish,
                     "ratio_to_read_and_sha256": (copy + publish) / read_hash, "runs": len(measured)})
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["read", "publish"])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--json")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("checkpoints", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="hfd-bench-"))
    bench = Bench(options.binary, work)
    try:
        run = bench_read if options.what == "read" else bench_publish
        rows = run(bench, options.checkpoints, options.runs)
    finally:
        for point in work.glob("mnt*"):
            if os.path.ismount(point):
                subprocess.run(["umount", "-l", point])
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
