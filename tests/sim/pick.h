#pragma once

#include <vector>

#include "base/random.h"

namespace wafersim::test {

template <class T>
T pick(RandomStream& random, const std::vector<T>& choices) {
  return choices[random.below(choices.size())];
}

}  // namespace wafersim::test
