// SPDX-License-Identifier: Apache-2.0
// The main() of all unit tests. Run `unit_tests --help`; `-ts=format/*` picks the suites of a layer.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
