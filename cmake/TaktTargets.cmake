# Compiler settings and the one way to declare a library of takt.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(takt_options INTERFACE)
target_include_directories(takt_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
# Inside a program of somebody else (docs/cpp_api.md) warnings are that program's to choose.
if(PROJECT_IS_TOP_LEVEL)
  set(takt_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
endif()
target_compile_options(takt_options INTERFACE ${takt_warnings} -ffp-contract=off -fno-math-errno)
# g++-11 sees impossible lengths in comparisons of string views that it has inlined, and empty optionals and initialised
# arrays as uninitialised.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  target_compile_options(takt_options INTERFACE -Wno-stringop-overread -Wno-stringop-overflow
    -Wno-maybe-uninitialized)
endif()
target_link_libraries(takt_options INTERFACE Threads::Threads)
if(TAKT_SANITIZE)
  # Instrumented, standard headers look uninitialised to g++.
  target_compile_options(takt_options INTERFACE -fsanitize=${TAKT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all -Wno-error=maybe-uninitialized)
  target_link_options(takt_options INTERFACE -fsanitize=${TAKT_SANITIZE})
  target_compile_definitions(takt_options INTERFACE TAKT_SANITIZED=1)
endif()

if(TAKT_FUZZ)
  # The code under test reports its branches to libFuzzer. Warnings of clang are not ours to judge.
  target_compile_options(takt_options INTERFACE -fsanitize=fuzzer-no-link -Wno-error)
endif()

# takt_library(runtime_base SOURCES a.cpp DEPENDS takt::x PRIVATE_DEPENDS y): static library takt_runtime_base, alias
# takt::runtime_base. DEPENDS are the only takt folders it may include, so CMake and the link enforce the arrows.
function(takt_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(takt_${name} STATIC ${arg_SOURCES})
  add_library(takt::${name} ALIAS takt_${name})
  target_link_libraries(takt_${name} PUBLIC takt_options ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
endfunction()

# takt_interface(name DEPENDS ...): a header-only folder.
function(takt_interface name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  add_library(takt_${name} INTERFACE)
  add_library(takt::${name} ALIAS takt_${name})
  target_link_libraries(takt_${name} INTERFACE takt_options ${arg_DEPENDS})
endfunction()

# Adds those of the named folders that exist already.
function(takt_folders)
  foreach(folder ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()
