"""What mount tests are made of: running the real program, mounts that always go away, and small helpers.

HFD_BINARY names the program (default build/hfdeltafs), HFD_SHARED the folder with corpus and cases (default ../shared)."""
import dataclasses
import hashlib
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HFD = pathlib.Path(os.environ.get("HFD_BINARY", ROOT / "build" / "hfdeltafs")).resolve()
SHARED = pathlib.Path(os.environ.get("HFD_SHARED", ROOT.parent / "shared")).resolve()
MIB = 1 << 20
NO_QUIET = "quiet=600"  # tests decide themselves when a version is made


@dataclasses.dataclass
class Done:
    """A finished program."""
    code: int
    out: str
    err: str
    rss_max: int = 0
    seconds: float = 0

    def json(self):
        return json.loads(self.out)


def run(arguments, *, timeout=110, check=False, env=None, cwd=None, text_in=None):
    """Runs a program to its end; rss_max is its peak resident memory in bytes."""
    started = time.monotonic()
    process = subprocess.Popen([os.fspath(a) if isinstance(a, os.PathLike) else a for a in arguments], text=True,
                               errors="surrogateescape", stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                               stdin=subprocess.PIPE if text_in is not None else subprocess.DEVNULL,
                               env={**os.environ, **(env or {})})
    peak = PeakRss(process.pid)
    try:
        out, err = process.communicate(text_in, timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"no end after {timeout} s: {arguments}\n{out}\n{err}") from None
    finally:
        peak.stop()
    done = Done(process.returncode, out, err, peak.bytes, time.monotonic() - started)
    if check and done.code != 0:
        raise AssertionError(f"exit {done.code}: {' '.join(map(str, arguments))}\nstdout: {out[-3000:]}\nstderr: {err[-3000:]}")
    return done


def hfd(*arguments, check=True, **options):
    """Runs hfdeltafs with these arguments."""
    return run([HFD, *arguments], check=check, **options)


def hfd_json(*arguments, **options):
    return hfd(*arguments, "--json", **options).json()


def fails(code, *arguments, says=(), **options):
    """hfdeltafs must end with `code` and ONE line on stderr that starts with its name and holds each text of `says`."""
    codes = code if isinstance(code, tuple) else (code,)
    done = hfd(*arguments, check=False, **options)
    told = f"exit {done.code}, wanted {code}: hfdeltafs {' '.join(map(str, arguments))}\nstdout: {done.out}\nstderr: {done.err}"
    assert done.code in codes, told
    lines = [line for line in done.err.split("\n") if line]
    assert len(lines) == 1, f"one line wanted on stderr\n{told}"
    assert lines[0].startswith("hfdeltafs: "), told
    for text in [says] if isinstance(says, str) else says:
        assert text in lines[0], f"{text!r} is not named\n{told}"
    return done


def rss_peak(pid):
    """VmHWM of a process in bytes; 0 when it is gone."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().split("\n"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class PeakRss:
    """Samples VmHWM of a process until stop()."""

    def __init__(self, pid):
        self.bytes, self._end = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(pid,), daemon=True)
        self._thread.start()

    def _watch(self, pid):
        while not self._end.is_set():
            self.bytes = max(self.bytes, rss_peak(pid))
            self._end.wait(0.02)

    def stop(self):
        self._end.set()
        self._thread.join()


class DuWatch:
    """Samples the allocated bytes of a folder until stop(); `most` is the largest sum seen."""

    def __init__(self, folder):
        self.folder, self.most, self.samples, self._end = folder, 0, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._end.is_set():
            self.most = max(self.most, disk_usage(self.folder))
            self.samples += 1
            self._end.wait(0.05)

    def stop(self):
        self._end.set()
        self._thread.join()
        self.most = max(self.most, disk_usage(self.folder))


def disk_usage(folder):
    """Like `du -s --block-size=1`, each inode once."""
    seen, total = set(), 0
    for where, folders, files in os.walk(folder):
        for name in [".", *files]:
            try:
                status = os.lstat(os.path.join(where, name))
            except OSError:
                continue
            if status.st_ino not in seen:
                seen.add(status.st_ino)
                total += status.st_blocks * 512
    return total


def is_mounted(point):
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        return any(line.split(" ")[4] == str(point) for line in table)


def mount_type(point):
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as table:
        types = [line.split(" ")[2] for line in table if line.split(" ")[1] == str(point)]
    return types[-1] if types else None


def processes_about(text):
    """Pids of hfdeltafs processes whose command line holds `text` (a folder that only one test has)."""
    pids = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words and b"hfdeltafs" in words[0] and any(os.fsencode(str(text)) in word for word in words[1:]):
            pids.append(int(entry.name))
    return pids


class Mount:
    """One mount of hfdeltafs. start() mounts, end() removes it whatever happened."""

    live = []  # all that were started and not ended: the watchdog and the last clean-up look here

    def __init__(self, source, point, cache_dir, *options, env=None, prefix=()):
        self.source, self.point, self.cache_dir = source, pathlib.Path(point), pathlib.Path(cache_dir)
        self.options, self.env, self.prefix, self.pid = options, env or {}, list(prefix), None

    def start(self):
        if not is_mounted(self.point):  # a dead mount cannot even be looked at
            self.point.mkdir(parents=True, exist_ok=True)
        Mount.live.append(self)
        done = run([*self.prefix, HFD, "mount", self.source, self.point, "--cache-dir", self.cache_dir, *self.options],
                   env=self.env, timeout=60)
        assert done.code == 0, f"mount ended with {done.code}\nstdout: {done.out}\nstderr: {done.err}"
        assert is_mounted(self.point), f"mount returned 0 but nothing is mounted at {self.point}"
        self.said = done.out
        self.pid = self.status()["pid"]
        return self

    def __truediv__(self, name):
        return self.point / name

    def status(self):
        mounts = hfd_json("status", self.point, env=self.env)["mounts"]
        assert len(mounts) == 1, mounts
        return mounts[0]

    def counters(self):
        return self.status()["counters"]

    def commit(self, *options, timeout=110):
        return hfd_json("commit", self.point, *options, timeout=timeout, env=self.env)

    def version_folder(self, version):
        return self.point / ".hfdelta" / "versions" / version

    def umount(self, *options, check=True):
        return hfd("umount", self.point, *options, check=check, env=self.env)

    def kill(self):
        """Like a crash: SIGKILL, then wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not pathlib.Path(f"/proc/{self.pid}").exists() or is_zombie(self.pid), 10, "the daemon to die")

    def end(self):
        if is_mounted(self.point):
            if self.pid is not None and not is_zombie(self.pid) and pathlib.Path(f"/proc/{self.pid}").exists():
                try:
                    run([HFD, "umount", self.point, "--timeout", "2"], env=self.env, timeout=20)
                except AssertionError:
                    pass
            detach(self.point)
        for pid in {self.pid, *processes_about(self.point)} - {None}:
            stop_process(pid)
        if self in Mount.live:
            Mount.live.remove(self)


def detach(point):
    while is_mounted(point):
        if subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL).returncode != 0 and \
                subprocess.run(["fusermount3", "-uz", point], stderr=subprocess.DEVNULL).returncode != 0:
            break


def is_zombie(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return False


def stop_process(pid):
    """Ends one process of ours: asks, waits 5 s, insists."""
    for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"hfdeltafs" not in words:
                return
            os.kill(pid, number)
        except OSError:
            return
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not pathlib.Path(f"/proc/{pid}").exists() or is_zombie(pid):
                return
            time.sleep(0.05)


class Watchdog:
    """A test that hangs in a file call can only be freed by ending the daemon: SIGKILL to those of this run."""

    def __init__(self, seconds):
        self.fired = False
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def _fire(self):
        self.fired = True
        for mount in list(Mount.live):
            for pid in {mount.pid, *processes_about(mount.point)} - {None}:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass

    def stop(self):
        self._timer.cancel()


def wait_for(condition, seconds, what, pause=0.05):
    """Waits until condition() is true and returns how long that took."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < seconds, f"waited {seconds} s for {what}"
        time.sleep(pause)
    return time.monotonic() - started


# --- bytes ---------------------------------------------------------------------------------------

def sha256(path):
    """By read(2) in pieces of 1 MiB."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()


def sha256_cat(path):
    """By `cat`, in another process."""
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        digest = hashlib.sha256()
        while piece := cat.stdout.read(MIB):
            digest.update(piece)
    assert cat.returncode == 0, f"cat {path} ended with {cat.returncode}"
    return digest.hexdigest()


def sha256_mmap(path):
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
            return hashlib.sha256(view).hexdigest()


def compare_preads(path, want, count, seed, size_max=300_000):
    """Random preads of `path` against the bytes-like `want`, the ends of the file among them."""
    rng = random.Random(seed)
    places = [(0, 1), (0, 8), (len(want) - 1, 10), (max(0, len(want) - 70_000), 100_000), (len(want), 10)]
    places += [(rng.randrange(len(want)), rng.randrange(1, size_max)) for _ in range(count)]
    rng.shuffle(places)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for offset, size in places:
            got = os.pread(descriptor, size, offset)
            assert got == want[offset:offset + size], f"{path}: wrong bytes in [{offset}, {offset + size})"
    finally:
        os.close(descriptor)


def tree(folder, *, hidden=True):
    """{relative path: sha256, "link -> target" or "folder" when empty} of all that is below."""
    out = {}
    folder = os.fspath(folder)
    for where, folders, files in os.walk(folder):
        if where == folder and ".hfdelta" in folders:
            folders.remove(".hfdelta")
        for name in files + [f for f in folders if os.path.islink(os.path.join(where, f))]:
            path = os.path.join(where, name)
            key = os.path.relpath(path, folder)
            out[key] = f"link -> {os.readlink(path)}" if os.path.islink(path) else sha256(path)
        if not files and not folders and where != folder:
            out[os.path.relpath(where, folder)] = "folder"
    return out


def safetensors_bytes(tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)}."""
    header = {"__metadata__": metadata} if metadata else {}
    body = b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def noise(size, seed):
    return random.Random(seed).randbytes(size)


def write_big_checkpoint(path, size, seed, change_of=None):
    """A safetensors file of about `size` bytes of bf16 noise, in tensors of 16 MiB, made at disk speed. With `change_of`
    (a seed), the file of that seed with about 0.5 % of its elements moved by one unit."""
    import numpy

    piece = 16 * MIB
    count = size // piece
    names = {f"layer.{i}.weight": {"dtype": "BF16", "shape": [4096, 2048], "data_offsets": [i * piece, (i + 1) * piece]}
             for i in range(count)}
    text = json.dumps(names).encode()
    text += b" " * (-len(text) % 8)
    rng = numpy.random.default_rng(seed if change_of is None else change_of)
    floats = rng.normal(0, 0.02, piece // 2).astype(numpy.float32)
    words = (floats.view(numpy.uint32) >> 16).astype(numpy.uint16)
    changes = numpy.random.default_rng(seed)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(count):
            # Another mantissa pattern and another start for each tensor, so that tensors do not repeat each other.
            layer = numpy.roll(words, 7919 * i) ^ numpy.uint16((i * 37) & 0x7F)
            if change_of is not None:
                where = changes.integers(0, layer.size, layer.size // 200)
                layer[where] ^= numpy.uint16(1)
            file.write(layer.tobytes())


# --- a bucket seen from outside -------------------------------------------------------------------

def objects(bucket, kind):
    folder = pathlib.Path(bucket) / "hfdelta" / kind
    return sorted(p for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []


def delta_between(bucket, source_sha256, target_sha256):
    """The stored delta object that makes `target` from `source` alone or among others; with its `delta info`."""
    found = []
    for path in objects(bucket, "deltas"):
        info = hfd_json("delta", "info", path)
        if info["target"]["sha256"] == target_sha256 and source_sha256 in [s["sha256"] for s in info["sources"]]:
            found.append((path.stat().st_size, path, info))
    assert found, f"no delta from {source_sha256[:12]} to {target_sha256[:12]} in {bucket}"
    return min(found, key=lambda entry: entry[0])[1:]


def flip_byte(path, offset):
    path = pathlib.Path(path)
    os.chmod(path, 0o644)
    with open(path, "r+b") as file:
        file.seek(offset if offset >= 0 else path.stat().st_size + offset)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0x40]))


def python_of_venv():
    return sys.executable


def tool(name):
    """The path of a program that a test needs; tools/test installs it."""
    path = shutil.which(name)
    assert path, f"{name} is missing: tools/install_deps --tests"
    return path
