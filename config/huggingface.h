#pragma once

#include <optional>
#include <string>

#include "config/node.h"
#include "config/problems.h"

namespace wafersim::config {

/// Reads a HuggingFace config.json as the `model` section of a scenario (all but the sequence). Supported
/// model types: gpt2, gpt_neox, llama, mistral, opt, qwen2. Absent keys take the defaults of the transformers
/// configuration class; keys without a meaning here (dropout, token ids, RoPE scaling, sliding windows, ...)
/// are ignored, as the file is not ours. Reports what cannot be represented; empty when nothing useful can be
/// read. Throws IoError when the file cannot be read.
std::optional<ConfigNode> read_huggingface(const std::string& file, Problems& problems);

}  // namespace wafersim::config
