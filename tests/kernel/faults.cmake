# Which tests notice that a control is missing. Where two controls refuse the same thing, both are
# left out, and the entries with one alone show that the other still holds.
function(palmshed_fault faults filter)
  add_test(NAME fault.${faults} COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/expect_failures.sh
    $<TARGET_FILE:kernel_test_faulty> ${faults} ${filter} ${ARGN})
  set_tests_properties(fault.${faults} PROPERTIES TIMEOUT 120)
endfunction()

set(guarantees "Escape.*:EscapeProcesses.*:Network.*:SystemCalls.*:Attributes.*:Identity.*")

palmshed_fault(none "${guarantees}:Crash.*:Files.*")
