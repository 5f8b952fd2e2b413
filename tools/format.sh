#!/usr/bin/env bash
# format.sh [--check] [FILE...]: clang-format-14 over the files given, or over all C++ sources.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_packages clang-format-14
cd "$hfd_root"
mode=-i
if [ "${1:-}" = --check ]; then
  mode="--dry-run -Werror"
  shift
fi
[ $# -gt 0 ] || mapfile -t all < <(find src include tests -name '*.cpp' -o -name '*.hpp' | sort)
# shellcheck disable=SC2086: the mode is one or two words
clang-format-14 $mode --style=file "${@:-${all[@]}}"
