# Flags of everything of ours: warnings, sanitizers, hardening, and the tools that only save time.
add_library(palmshed_options INTERFACE)
target_compile_options(palmshed_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wswitch-enum -Werror)

if(PALMSHED_FUZZ AND NOT (PALMSHED_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
  message(FATAL_ERROR "PALMSHED_FUZZ wants PALMSHED_SANITIZE and Clang, which libFuzzer comes with")
endif()
if(PALMSHED_SANITIZE)
  target_compile_options(palmshed_options INTERFACE
    -fsanitize=${PALMSHED_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(palmshed_options INTERFACE -fsanitize=${PALMSHED_SANITIZE})
  # For tests of what the sanitizer itself takes; compilers have no common name for it.
  target_compile_definitions(palmshed_options INTERFACE PALMSHED_SANITIZED)
  if(PALMSHED_SANITIZE MATCHES "thread")
    target_compile_definitions(palmshed_options INTERFACE PALMSHED_SANITIZED_THREAD)
    # The sanitizer does not see fences; Asio's handlers are ordered by its locks without them.
    target_compile_definitions(palmshed_options INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
  if(PALMSHED_FUZZ)
    target_compile_options(palmshed_options INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(palmshed_options INTERFACE -fsanitize=fuzzer-no-link)
  endif()
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  # The compiler hardening guide of the OpenSSF, as far as g++ 12 knows it.
  target_compile_options(palmshed_options INTERFACE
    -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong -fstack-clash-protection
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection=full>)
  target_link_options(palmshed_options INTERFACE
    -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--gc-sections)
  target_compile_options(palmshed_options INTERFACE -ffunction-sections -fdata-sections)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Once inlined, GCC 12 takes copies of its own containers for overlapping and overflowing
    # ones. Builds without optimisation, and Clang, keep both warnings.
    target_compile_options(palmshed_options INTERFACE
      -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  endif()
endif()

# By which a build is told from others (base/build_id.h); not every linker makes one unasked.
target_link_options(palmshed_options INTERFACE -Wl,--build-id)

find_program(MOLD mold)
if(MOLD)
  target_link_options(palmshed_options INTERFACE -fuse-ld=mold)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

# Most of what a source costs is reading these.
function(palmshed_precompile target)
  if(PALMSHED_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <chrono> <expected> <filesystem> <functional> <future> <map> <memory> <mutex>
      <optional> <set> <span> <string> <string_view> <thread> <utility> <vector> ${ARGN})
  endif()
endfunction()
