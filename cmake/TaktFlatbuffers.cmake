# takt_flatbuffer(target file.fbs): generates <folder>/<file>_generated.h for `target`, included by that path.
find_program(TAKT_FLATC flatc REQUIRED)

function(takt_flatbuffer target schema)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  get_filename_component(stem ${schema} NAME_WE)
  set(out ${PROJECT_BINARY_DIR}/generated/${folder})
  file(MAKE_DIRECTORY ${out})
  add_custom_command(OUTPUT ${out}/${stem}_generated.h
    COMMAND ${TAKT_FLATC} --cpp --scoped-enums -o ${out} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
    COMMENT "FlatBuffers of ${folder}/${schema}")
  target_sources(${target} PRIVATE ${out}/${stem}_generated.h)
  set_source_files_properties(${out}/${stem}_generated.h PROPERTIES SKIP_LINTING ON)
endfunction()
