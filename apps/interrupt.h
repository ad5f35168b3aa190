#pragma once

namespace wafersim::apps {

/// From construction on, the first SIGINT or SIGTERM sets a flag instead of ending the program; the second
/// one ends it. The former handling comes back with destruction. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();
  /// As if a signal had come, for an interrupt of another process that this one works with.
  static void interrupt();
};

}  // namespace wafersim::apps
