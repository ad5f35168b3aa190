# xxHash, as xxHash::xxhash.
include(PlainLibrary)
wafersim_plain_library(xxHash xxHash::xxhash xxhash.h xxhash)
