#!/usr/bin/env python3
"""sanitizer_proof.py PROGRAM heap|overflow|race: passes only when the sanitizer reports the planted fault."""
import subprocess
import sys

REPORTS = {
    "heap": "AddressSanitizer: heap-buffer-overflow",
    "overflow": "runtime error: signed integer overflow",
    "race": "ThreadSanitizer: data race",
}
program, fault = sys.argv[1:3]
run = subprocess.run([program, fault], capture_output=True, text=True)
if REPORTS[fault] not in run.stderr:
    sys.exit(f"the sanitizer did not report {fault!r}: exit {run.returncode}\n{run.stdout}{run.stderr}")
if run.returncode == 0:
    sys.exit(f"{fault!r} was reported but the program ended with 0: the sanitizer must be fatal\n{run.stderr}")
