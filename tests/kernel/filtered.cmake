# The rung without namespaces, in an engine that can be told to leave out a control.
add_executable(old_landlock_test old_landlock.cc)
target_include_directories(old_landlock_test PRIVATE
  ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/engine/include)
target_link_libraries(old_landlock_test PRIVATE
  engine_kernel_support palmshed_engine_faulty palmshed_options Threads::Threads
  GTest::gmock GTest::gtest_main)
gtest_discover_tests(old_landlock_test TEST_PREFIX kernel. DISCOVERY_TIMEOUT 60)

# For whatever is not a test of ours: the conformance kit's drivers.
add_executable(without_namespaces
  ../fixtures/without_namespaces.cc ../support/refuse_namespaces.cc)
target_include_directories(without_namespaces PRIVATE
  ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/engine/include)
target_link_libraries(without_namespaces PRIVATE palmshed_options GTest::gtest)
target_compile_features(without_namespaces PRIVATE cxx_std_23)

# palmshed_filtered_fault(<fault> <tests that must notice>...)
function(palmshed_filtered_fault fault)
  add_test(NAME fault.filtered.${fault}
    COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/expect_failures.sh
    $<TARGET_FILE:kernel_test_faulty> ${fault} "Filtered.*" ${ARGN})
  set_tests_properties(fault.filtered.${fault} PROPERTIES TIMEOUT 120)
endfunction()

palmshed_filtered_fault(none)
palmshed_filtered_fault(host-view
  Filtered.HostFilesAreOutOfReach
  Filtered.IsWhatAnOrdinaryUserGetsWithoutNamespaces
  Filtered.SandboxesAreClosedToEachOther)
palmshed_filtered_fault(no-seccomp
  Filtered.AttributesOfHostFilesStayAsTheyAre
  Filtered.HostSocketsAreOutOfReach
  Filtered.IsWhatAnOrdinaryUserGetsWithoutNamespaces
  Filtered.NetworkAllowOpensTheNetworkAndNoUnixSocket)
