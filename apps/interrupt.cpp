#include "apps/interrupt.h"

#include <csignal>

namespace wafersim::apps {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

/// Also gives both signals back to the system, so that any second one ends the program.
void note_interrupt(int) {
  interrupt_seen = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupt_seen = 0;
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::interrupted() { return interrupt_seen != 0; }
void InterruptGuard::interrupt() { interrupt_seen = 1; }

}  // namespace wafersim::apps
