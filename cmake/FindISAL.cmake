# Intel's Intelligent Storage Acceleration Library, as ISAL::isal.
include(PlainLibrary)
wafersim_plain_library(ISAL ISAL::isal isa-l/igzip_lib.h isal)
