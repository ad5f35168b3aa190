#pragma once

#include <filesystem>
#include <string>

namespace wafersim::apps {

/// Whether an SVG picture can be converted into `format`, the extension of a file without its dot.
bool can_convert_into(const std::string& format);

/// Throws IoError that says what to install when the program that converts is not in PATH.
void require_converter(const std::string& format);

/// Writes an SVG picture as `format` ("pdf", or "png" with 300 dots per inch) into `path`, by rsvg-convert. The file
/// appears when it is complete. Throws IoError when the program fails.
void convert_picture(const std::string& svg, const std::string& format, const std::filesystem::path& path);

}  // namespace wafersim::apps
