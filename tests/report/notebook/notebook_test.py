"""The Python example of docs/results.md, run on a directory that wafersim just wrote.

Environment: WAFERSIM the program, DOCUMENT docs/results.md. Without pandas the status is 77: skipped.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import pandas
except ImportError:
    print("skipped: no pandas")
    sys.exit(77)

SCENARIO = """name: small
wafer:
  mesh: 2x2
  clock: 1 GHz
  sram: {capacity: 64 MiB}
  link: {bandwidth: 64 B/cycle, latency: 1 cycles}
network: {packet_bytes: 4 KiB}
model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 128, context: 32, sequence: 32}
training: {global_batch: 2, microbatch: 1}
plan: {tp: 2, pp: 2}
"""

with open(os.environ["DOCUMENT"], encoding="utf-8") as file:
    text = file.read()
section = text[text.index("## In a notebook"):]
examples = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
assert len(examples) == 1, "docs/results.md has one example"

with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    with open("small.yaml", "w", encoding="utf-8") as file:
        file.write(SCENARIO)
    subprocess.run([os.environ["WAFERSIM"], "run", "small.yaml", "-o", "runs/my-first", "--quiet", "--messages", "--critical-path"], check=True)
    names = {}
    exec(compile(examples[0], "example", "exec"), names)  # pylint: disable=exec-used
    with open("runs/my-first/summary.json", encoding="utf-8") as file:
        summary = json.load(file)

# What the example made says what the summary says.
shares = names["shares"]
assert list(shares.index) == [0, 1], shares
assert ((shares.sum(axis=1) - 1).abs() < 1e-12).all(), shares
assert abs(shares["compute_cycles"].mean() - summary["breakdown"]["compute"]) < 1e-12
assert names["hottest"].iloc[0]["link"] == summary["network"]["hotspots"][0]["link"]
assert names["grid"].shape == (2, 2)
assert names["layers"].index.names == ["stage", "pass"]
assert set(names["latency"].index) <= {"tp", "pp", "dp", "none"}
assert len(names["messages"]) == summary["network"]["messages"]
assert names["segments"]["cycles"].sum() == summary["cycles"]
print(f"ok with pandas {pandas.__version__}")
