#!/usr/bin/env python3
"""The parts of tools/test (which see): builds, unit tests with and without sanitizers, checks of the source tree,
fuzzing, mount tests. Every part runs; results are counted from meson's, doctest's and pytest's own reports."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("HFD_SHARED", ROOT.parent / "shared"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
VENV = CACHE / "hfdeltafs-test-venv"
FUZZ_TARGETS = ["safetensors_header_fuzz", "delta_object_fuzz", "manifest_fuzz"]
FUZZ_SECONDS, FUZZ_SECONDS_FULL = 20, 600
CLANG = {"CC": "clang-14", "CXX": "clang++-14"}
BUILDS = {  # folder: (environment, meson options, targets)
    "build": ({}, ["--buildtype=release"], []),
    "build-asan": (CLANG, ["--buildtype=debugoptimized", "-Doptimization=1", "-Db_sanitize=address,undefined",
                           "-Db_lundef=false", "-Dfuzz=true", "-Dcpp_args=-fno-sanitize-recover=all"], []),
    "build-tsan": ({}, ["--buildtype=debugoptimized", "-Doptimization=1", "-Db_sanitize=thread"],
                   ["tests/unit/unit_tests", "tests/unit/sanitizer_proof"]),
}
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66",
}


class Tally:
    """What passed, failed and was skipped; prints as it goes."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def passed_some(self, count):
        self.passed += count

    def fail(self, name, why=""):
        self.failed.append(name)
        print(f"FAILED  {name}" + (f"\n{indent(why)}" if why else ""), flush=True)

    def skip(self, name, reason, count=1):
        self.skipped += [(name, reason)] * count
        print(f"SKIPPED {name}: {reason}", flush=True)

    def check(self, name, ok, why=""):
        if ok:
            self.passed += 1
        else:
            self.fail(name, why)


def indent(text, lines_max=60):
    lines = text.strip().split("\n")
    return "\n".join("        " + line for line in lines[-lines_max:])


def run(arguments, timeout=None, **options):
    """subprocess.run that returns (exit code, output) and never raises for a time-out."""
    environment = {**os.environ, **options.pop("env", {})}
    try:
        done = subprocess.run([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, timeout=timeout, env=environment, **options)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        return 124, (output.decode(errors="replace") if isinstance(output, bytes) else output) + f"\ntime-out after {timeout} s"
    except OSError as error:
        return 127, str(error)


def build(folder, tally):
    environment, options, targets = BUILDS[folder]
    where = ROOT / folder
    name = f"build: {folder}"
    if not (where / "build.ninja").exists():
        code, output = run(["meson", "setup", where, ROOT, *options], env=environment)
        if code != 0:
            tally.fail(name, output)
            return
    code, output = run(["ninja", "-C", where, *targets], env=environment)
    errors = "\n".join(line for line in output.split("\n") if re.search(r"error|FAILED|undefined reference", line))
    tally.check(name, code == 0, f"{errors}\n…\n{indent(output, 40)}")


def meson_tests(folder, tally, names=(), environment=None):
    where = ROOT / folder
    log = where / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    code, output = run(["meson", "test", "-C", where, "--no-rebuild", *names],
                       env={**SANITIZER_ENV, **(environment or {})}, timeout=1800)
    if not log.exists():
        tally.fail(f"{folder}: meson test", output)
        return
    for line in log.read_text().split("\n"):
        if not line.strip():
            continue
        result = json.loads(line)
        name = f"{folder}: {result['name'].split(' / ')[-1]}"
        text = (result.get("stdout") or "") + (result.get("stderr") or "")
        ok = result["result"] in ("OK", "EXPECTEDFAIL")
        cases = re.search(r"\[doctest\] test cases:\s*(\d+) \|\s*(\d+) passed \|\s*(\d+) failed \|\s*(\d+) skipped", text)
        if cases and int(cases[1]) > 0:
            passed, failed = int(cases[2]), int(cases[3])
            tally.passed_some(passed)
            if failed or not ok:
                tally.fail(f"{name} ({max(failed, 1)} cases)", text)
        elif result["result"] == "SKIP":
            tally.skip(name, text.strip() or "skipped by itself")
        elif ok and name.endswith("unit_tests"):
            tally.fail(name, "no test case ran\n" + text)
        else:
            tally.check(name, ok, f"{result['result']}\n{text}")


def unit_release(tally, _):
    meson_tests("build", tally)


def unit_asan(tally, _):
    meson_tests("build-asan", tally)


def unit_tsan(tally, _):
    # Without the corpus: 71 MB files run in the other two builds; under TSan they take minutes and show no other threads.
    meson_tests("build-tsan", tally, ["unit_tests", "sanitizer_thread_is_on"], {"HFD_SHARED": "/nonexistent"})


def fuzz(tally, full):
    seconds = FUZZ_SECONDS_FULL if full else FUZZ_SECONDS
    where = ROOT / "build-asan"
    seeds = where / "fuzz-seeds"
    binary = ROOT / "build" / "hfdeltafs"
    if binary.exists():
        code, output = run([sys.executable, ROOT / "tests/fuzz/make_seeds.py", binary, seeds], timeout=300)
        tally.check("fuzz: seeds from real objects", code == 0, output)
    else:
        tally.fail("fuzz: seeds from real objects", "build/hfdeltafs is missing")

    def one(target):
        program = where / "tests" / "fuzz" / target
        if not program.exists():
            return target, None, f"{program} was not built"
        corpus = where / "fuzz-corpus" / target
        corpus.mkdir(parents=True, exist_ok=True)
        folders = [f for f in (seeds / target, ROOT / "tests/fuzz/corpus" / target) if f.is_dir()]
        arguments = [program, corpus, *folders, f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=20",
                     "-print_final_stats=1", f"-artifact_prefix={where}/{target}-"]
        code, output = run(arguments, env=SANITIZER_ENV, timeout=seconds + 240)
        return target, code, output

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for target, code, output in pool.map(one, FUZZ_TARGETS):
            executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
            if code == 0 and executed:
                print(f"        {target}: {executed[1]} inputs in {seconds} s, nothing found")
            tally.check(f"fuzz: {target}", code == 0 and executed is not None, output)


def make_venv(tally):
    """A Python environment for mount tests. Returns its python, or None."""
    core = (ROOT / "tests/mount/requirements.txt").read_text()
    engine = (ROOT / "tests/mount/requirements-engine.txt").read_text()
    stamp, wanted = VENV / "ready", hashlib.sha256((core + engine).encode()).hexdigest()
    python = VENV / "bin" / "python"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.parent.mkdir(parents=True, exist_ok=True)
    code, output = run([sys.executable, "-m", "venv", VENV])
    if code != 0:
        tally.fail("python environment for mount tests", output)
        return None
    complete = True
    for file, needed in (("requirements.txt", True), ("requirements-engine.txt", False)):
        for attempt in range(3):
            code, output = run([python, "-m", "pip", "install", "-q", "-r", ROOT / "tests/mount" / file], timeout=900)
            if code == 0:
                break
            time.sleep(3 * (attempt + 1))
        if code != 0 and needed:
            tally.fail("python environment for mount tests", output)
            return None
        complete &= code == 0
    if complete:
        stamp.write_text(wanted)
    return python


def pytest(tally, name, binary, extra):
    if not binary.exists():
        tally.fail(f"{name}: {binary.relative_to(ROOT)} was not built")
        return
    python = make_venv(tally)
    if python is None:
        return
    report = ROOT / "build" / f"pytest-{name}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    environment = {"HFD_BINARY": str(binary), "HFD_SHARED": str(SHARED), **SANITIZER_ENV}
    arguments = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}", *extra,
                 ROOT / "tests/mount"]
    code, output = run(arguments, env=environment, cwd=ROOT / "tests/mount", timeout=3000)
    if not report.exists():
        tally.fail(f"{name}: pytest", output)
        return
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    for case in cases:
        title = f"{name}: {case.get('classname')}.{case.get('name')}"
        problem = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
        skipped = case.find("skipped")
        if problem is not None:
            tally.fail(title, f"{problem.get('message', '')[:1500]}\n{(problem.text or '')[-4000:]}")
        elif skipped is not None:
            tally.skip(title, skipped.get("message", "no reason given"))
        else:
            tally.passed_some(1)
    if not cases or (code not in (0, 1) and not tally.failed):
        tally.fail(f"{name}: pytest ended with {code}", output)


def mount_release(tally, full):
    pytest(tally, "mount", ROOT / "build" / "hfdeltafs", ["--full"] if full else [])


def mount_asan(tally, full):
    pytest(tally, "mount-asan", ROOT / "build-asan" / "hfdeltafs", ["-m", "asan", "--sanitizer"])


PARTS = {
    "build": lambda tally, _: build("build", tally),
    "build-asan": lambda tally, _: build("build-asan", tally),
    "build-tsan": lambda tally, _: build("build-tsan", tally),
    "unit": unit_release,
    "unit-asan": unit_asan,
    "unit-tsan": unit_tsan,
    "fuzz": fuzz,
    "mount": mount_release,
    "mount-asan": mount_asan,
}


def main():
    parser = argparse.ArgumentParser(prog="tools/test", description="installs, builds and runs all tests")
    parser.add_argument("--full", action="store_true", help="long fuzzing and crash rounds too")
    parser.add_argument("--only", default="", help="some parts only, with commas between")
    parser.add_argument("--list", action="store_true", help="names the parts")
    options = parser.parse_args()
    if options.list:
        print("\n".join(PARTS))
        return 0
    chosen = [p for p in options.only.split(",") if p] or list(PARTS)
    unknown = [p for p in chosen if p not in PARTS]
    if unknown:
        print(f"tools/test: no such part: {' '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    tally, times = Tally(), []
    for name in chosen:
        print(f"== {name}", flush=True)
        started = time.monotonic()
        try:
            PARTS[name](tally, options.full)
        except Exception as error:  # noqa: BLE001: a part that breaks is a failure, and the next one still runs
            tally.fail(f"{name}: the test script broke", repr(error))
        times.append((name, time.monotonic() - started))
        print(f"   {name}: {times[-1][1]:.0f} s", flush=True)
    print("\ntimes: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in times))
    for name, reason in tally.skipped:
        print(f"skipped: {name}: {reason}")
    for name in tally.failed:
        print(f"failed: {name}")
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
