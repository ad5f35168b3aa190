// The only main of all tests: SystemC defines main() itself and calls sc_main. Any SystemC warning is a failure.
#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char* argv[]) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_THROW);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
