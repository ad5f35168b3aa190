#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace wafersim::test {

/// Runs `work` in a child process and returns what it returned. SystemC allows one simulation in a process,
/// so a test that compares several runs each of them in a child. An exception of `work`, or a child that
/// dies, is thrown here as std::runtime_error with the same message.
std::string isolated_text(const std::function<std::string()>& work);
std::vector<std::uint64_t> isolated_numbers(const std::function<std::vector<std::uint64_t>()>& work);
std::uint64_t isolated_number(const std::function<std::uint64_t()>& work);

}  // namespace wafersim::test
