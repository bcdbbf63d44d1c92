# The whole engine on the kernel of this machine, through its public API. CTest runs each test in a
# process of its own.

# Runs inside sandboxes, so it brings its own C library.
add_executable(kernel_probe
  ../fixtures/probe.cc ../fixtures/probe_files.cc ../fixtures/probe_network.cc
  ../fixtures/probe_processes.cc ../fixtures/probe_attributes.cc ../fixtures/probe_limits.cc)
target_compile_options(kernel_probe PRIVATE
  -Wall -Wextra -Wshadow -Wconversion -Wswitch-enum -Werror -O1 -fno-exceptions -fno-rtti)
target_link_options(kernel_probe PRIVATE -static)
set_target_properties(kernel_probe PROPERTIES POSITION_INDEPENDENT_CODE OFF)

# Beside the programs, so that a copy of the build tree's bin is complete.
configure_file(allowed_skips.txt ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/allowed_skips.txt COPYONLY)
configure_file(expect_failures.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/expect_failures.sh COPYONLY)

file(GLOB engine_kernel_tests CONFIGURE_DEPENDS *_test.cc)
list(FILTER engine_kernel_tests EXCLUDE REGEX "/helper_[a-z_]*_test\\.cc$")
file(GLOB engine_kernel_support CONFIGURE_DEPENDS ../support/*.cc)
list(FILTER engine_kernel_support EXCLUDE REGEX "/helper_[a-z_]*\\.cc$")
add_library(engine_kernel_support OBJECT ${engine_kernel_support})
target_include_directories(engine_kernel_support PRIVATE
  ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/engine/include)
target_link_libraries(engine_kernel_support PRIVATE palmshed_options GTest::gmock GTest::gtest)
target_compile_features(engine_kernel_support PRIVATE cxx_std_23)
add_library(engine_kernel_tests OBJECT ${engine_kernel_tests})
target_include_directories(engine_kernel_tests PRIVATE
  ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/engine/include)
target_link_libraries(engine_kernel_tests PUBLIC palmshed_options Threads::Threads
  GTest::gmock GTest::gtest)
target_compile_features(engine_kernel_tests PRIVATE cxx_std_23)
palmshed_precompile(engine_kernel_tests
  <gmock/gmock.h> <gtest/gtest.h> ${PROJECT_SOURCE_DIR}/engine/include/palmshed/palmshed.h)

add_executable(kernel_test)
target_link_libraries(kernel_test PRIVATE engine_kernel_tests engine_kernel_support palmshed_engine GTest::gtest_main)
add_dependencies(kernel_test kernel_probe)
# Those that want every processor would hold up the others, whose bounds on time are for less; and the
# others those that bound how far a program gets before the engine looks.
set(alone "LimitsStorm*:LimitsLife*:LimitsOfFiles*:*Flood*")
gtest_discover_tests(kernel_test TEST_PREFIX kernel. TEST_LIST kernel_tests
  TEST_FILTER "-${alone}" DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
gtest_discover_tests(kernel_test TEST_PREFIX kernel. TEST_LIST kernel_tests_alone
  TEST_FILTER "${alone}" DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 240 RUN_SERIAL TRUE)

# The same tests against an engine that can be told to leave out a control (base/faults.h): each
# guarantee's tests must then fail, and no others of their suite.
add_executable(kernel_test_faulty)
target_link_libraries(kernel_test_faulty PRIVATE
  engine_kernel_tests engine_kernel_support palmshed_engine_faulty GTest::gtest_main)
add_dependencies(kernel_test_faulty kernel_probe)
include(faults.cmake)
include(filtered.cmake)
