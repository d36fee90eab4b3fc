# takt_proto_schema(target file.proto): embeds the binary FileDescriptorSet of a .proto file, imports included, as
# generated/<folder>/<file>.proto.inc for `target`.
find_program(TAKT_PROTOC protoc REQUIRED)

function(takt_proto_schema target proto)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(out ${PROJECT_BINARY_DIR}/generated/${folder}/${proto})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/${folder})
  add_custom_command(OUTPUT ${out}.inc
    COMMAND ${TAKT_PROTOC} --proto_path=${PROJECT_SOURCE_DIR} --include_imports --descriptor_set_out=${out}.bin
      ${folder}/${proto}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${out}.bin -DOUTPUT=${out}.inc -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFile.cmake
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto} ${PROJECT_SOURCE_DIR}/cmake/EmbedFile.cmake ${ARGN}
    COMMENT "Schema of ${folder}/${proto}")
  target_sources(${target} PRIVATE ${out}.inc)
endfunction()
