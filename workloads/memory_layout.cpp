#include "workloads/memory_layout.h"

namespace wafersim::workloads {

Bytes SramQuota::through_dram(Bytes moved, Bytes held) const {
  if (bytes_ == 0) return moved;
  if (held <= bytes_) return 0;
  __extension__ using Wide = unsigned __int128;
  return static_cast<Bytes>((Wide{moved} * (held - bytes_) + held - 1) / held);
}

}  // namespace wafersim::workloads
