# cmake -DINPUT=file -DOUTPUT=file.inc -P EmbedFile.cmake: the bytes of a file as a comma-separated initialiser list.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes
  "${bytes}")
file(WRITE ${OUTPUT} "${bytes}\n")
