# palmshed::libarchive: libarchive, liblzma and what they need. Statically where there is such a
# library: the shared one brings a dozen others along, which every program would load at its start.
# Also part of the installed package.
if(NOT TARGET palmshed::libarchive)
  find_library(PALMSHED_LIBARCHIVE NAMES libarchive.a archive REQUIRED)
  set(palmshed_archive_libraries archive lzma)
  if(PALMSHED_LIBARCHIVE MATCHES "\\.a$")
    list(APPEND palmshed_archive_libraries zstd bz2 z nettle)
  endif()
  add_library(palmshed::libarchive INTERFACE IMPORTED)
  set(PALMSHED_LIBARCHIVE_FLAGS "")
  foreach(name IN LISTS palmshed_archive_libraries)
    find_library(PALMSHED_LIBRARY_${name} NAMES lib${name}.a ${name} REQUIRED)
    set_property(TARGET palmshed::libarchive APPEND PROPERTY
      INTERFACE_LINK_LIBRARIES ${PALMSHED_LIBRARY_${name}})
    if(PALMSHED_LIBRARY_${name} MATCHES "\\.a$")
      string(APPEND PALMSHED_LIBARCHIVE_FLAGS " -l:lib${name}.a")
    else()
      string(APPEND PALMSHED_LIBARCHIVE_FLAGS " -l${name}")
    endif()
  endforeach()
endif()
