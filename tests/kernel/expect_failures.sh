#!/bin/sh
# Runs tests with controls left out and compares what failed with what should have.
#
# Usage: expect_failures.sh PROGRAM FAULTS FILTER [TEST...]
#   FAULTS  comma-separated names (engine/base/faults.h); "none" for the control
#   FILTER  of GoogleTest
#   TEST    those that must fail; every other test of the filter must pass or be skipped.
#           "root:TEST" must fail when run by root and is skipped by anybody else.
set -u
program=$1 faults=$2 filter=$3
shift 3
[ "$faults" = none ] && faults=

log=$(mktemp)
trap 'rm -f "$log"' EXIT
PALMSHED_FAULT=$faults "$program" --gtest_filter="$filter" >"$log" 2>&1
if ! grep -q '^\[==========\] [0-9]* tests\{0,1\} from .* ran\.' "$log"; then
  cat "$log"
  echo "the tests did not come to their end"
  exit 1
fi

expected() {
  for test in "$@"; do
    case $test in
      root:*) [ "$(id -u)" -ne 0 ] || echo "${test#root:}" ;;
      *) echo "$test" ;;
    esac
  done
}
wanted=$(expected "$@" | sort -u)
failed=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).* ([0-9]* ms)$/\1/p' "$log" | sort -u)
if [ "$failed" != "$wanted" ]; then
  cat "$log"
  printf 'failed:\n%s\nshould have failed:\n%s\n' "$failed" "$wanted"
  exit 1
fi
